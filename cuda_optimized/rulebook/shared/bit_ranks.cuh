/// @file bit_ranks.cuh
/// @brief The number of set bits before each: sums over tiles of words, then over a tile's words.
#pragma once

#include "core/cuda/host_message.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/block_sum.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Words of a bit for each cell, and one behind them, which may be read with the last.
inline std::int64_t words_for(std::int64_t cells) { return ceil_div<std::int64_t>(cells + 32, 32); }

/// A cell's bit in its word.
__device__ inline std::uint32_t bit_of(std::uint32_t cell) { return 1u << cell % 32; }

/// Bits and the rows of the first bit of each word: an index from cells to rows.
struct BitIndex {
  const std::uint32_t* bits;   ///< A bit for each cell.
  const std::uint32_t* first;  ///< By word; only where the word has bits.
  /// The row of a cell whose bit is set in its word.
  __device__ std::uint32_t rank(std::uint32_t cell, std::uint32_t word) const {
    return first[cell / 32] + static_cast<std::uint32_t>(__popc(word & (bit_of(cell) - 1)));
  }
};

namespace bit_ranks {

inline constexpr int kThreads = 256;                 ///< Of all kernels here. A multiple of 32.
inline constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.
inline constexpr int kWarps = kThreads / 32;         ///< Of a block.
inline constexpr int kTileWords = 4 * kThreads;      ///< A thread loads four words at once.
inline constexpr int kTilesEach = 8;  ///< Tiles whose sums a thread of the last block adds.

/// What the host is told in the middle of a run.
struct Count {
  std::int64_t found;      ///< Bits set in what was counted: the found sites' grid, or both.
  std::uint32_t unusable;  ///< As Progress::unusable.
  std::int64_t pairs;      ///< As Progress::pairs.
};

/// What blocks agree on. Starts as zeros.
struct Progress {
  std::uint32_t unusable;    ///< Rows of coords outside of the grid, and repeated ones.
  std::uint32_t tickets;     ///< Blocks that have counted their tiles.
  std::uint32_t placed;      ///< Given rows that have a place in the index (strided/gather.cu).
  unsigned long long pairs;  ///< Of all taps (strided/input_lists.cu).
};

/// Tiles of kTileWords words that hold a bit for each cell.
inline std::int64_t tiles_for(std::int64_t cells) {
  return ceil_div<std::int64_t>(cells, std::int64_t{32} * kTileWords);
}
/// How many bits of four words are set.
__device__ inline int bits_in(const uint4& words) {
  return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}

/// sums [tiles]: the bits of each tile of words. The first `blocks` blocks, of kThreads, share the
/// work.
__device__ inline void count_tiles(std::int64_t tiles, unsigned blocks, const std::uint32_t* words,
                                   std::uint32_t* sums, int* warp_sums) {
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += blocks) {
    const auto* quads = reinterpret_cast<const uint4*>(words + tile * kTileWords);
    int total;
    block_exclusive_sum<kWarps>(bits_in(quads[threadIdx.x]), warp_sums, &total);
    if (threadIdx.x == 0) sums[tile] = static_cast<std::uint32_t>(total);
  }
}

/// The block that comes last replaces the sums by those of all tiles before, and puts the sum of
/// all behind them: sums [tiles + 1]. All `blocks` blocks call it when they have counted.
/// @param count in the host's memory: it is told that sum; null where it does not ask
__device__ inline void scan_tiles(std::int64_t tiles, unsigned blocks, std::uint32_t* sums,
                                  Progress* progress, Letter<Count>* count, int* warp_sums) {
  __shared__ bool is_last;
  __threadfence();  // the block's sums are there for all to see before its ticket is
  __syncthreads();  // those of all its threads
  if (threadIdx.x == 0) is_last = atomicAdd(&progress->tickets, 1u) == blocks - 1;
  __syncthreads();  // thread 0 has drawn
  if (!is_last) return;
  __threadfence();  // no sum is read before the last ticket was drawn
  std::uint32_t before = 0;
  for (std::int64_t first = 0; first < tiles; first += kThreads * kTilesEach) {
    const std::int64_t own = first + std::int64_t{threadIdx.x} * kTilesEach;
    int of_tile[kTilesEach], of_thread = 0;
#pragma unroll
    for (int i = 0; i < kTilesEach; ++i) {
      // Not from this SM's L1 cache, which may hold what was there before others wrote.
      of_tile[i] = own + i < tiles ? static_cast<int>(__ldcg(&sums[own + i])) : 0;
      of_thread += of_tile[i];
    }
    int total;
    auto sum = before + static_cast<std::uint32_t>(
                            block_exclusive_sum<kWarps>(of_thread, warp_sums, &total));
#pragma unroll
    for (int i = 0; i < kTilesEach; ++i) {
      if (own + i < tiles) sums[own + i] = sum;
      sum += static_cast<std::uint32_t>(of_tile[i]);
    }
    before += static_cast<std::uint32_t>(total);
  }
  if (threadIdx.x == 0) {
    sums[tiles] = before;
    if (count != nullptr)
      count->send({before, progress->unusable, static_cast<std::int64_t>(progress->pairs)});
  }
}

/// What a block knows of its tile while it numbers the bits.
struct TileInShared {
  std::uint32_t words[kTileWords];  ///< The words of a tile.
  int before[kThreads];             ///< By thread: bits in the words before its four.
  int warp_sums[kWarps];            ///< The sums of its warps.
};

/// Goes through the bits of all tiles: begin(word, row) for each word that has some, with the row
/// of its first one; visit(cell, row) for each bit. One thread a word; neighbours have neighbouring
/// words, since full ones stand together, and the fullest of a warp is waited for. The first
/// `blocks` blocks, of kThreads, share the work.
/// @param sums [tiles + 1], of scan_tiles()
template <class Begin, class Visit>
__device__ void number_bits(std::int64_t tiles, unsigned blocks, const std::uint32_t* words,
                            const std::uint32_t* sums, TileInShared* tile_in_shared,
                            const Begin& begin, const Visit& visit) {
  const int thread = static_cast<int>(threadIdx.x);
  TileInShared& shared = *tile_in_shared;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += blocks) {
    const std::uint32_t first_row = sums[tile];
    if (sums[tile + 1] == first_row) continue;  // most tiles are empty
    const std::int64_t first_word = tile * kTileWords;
    const uint4 quad = reinterpret_cast<const uint4*>(words + first_word)[thread];
    int total;
    const int before = block_exclusive_sum<kWarps>(bits_in(quad), shared.warp_sums, &total);
    shared.words[thread * 4] = quad.x;
    shared.words[thread * 4 + 1] = quad.y;
    shared.words[thread * 4 + 2] = quad.z;
    shared.words[thread * 4 + 3] = quad.w;
    shared.before[thread] = before;
    __syncthreads();  // all words are in shared memory
    for (int at = thread; at < kTileWords; at += kThreads) {
      const std::uint32_t word = shared.words[at];
      if (word == 0) continue;
      std::uint32_t row = first_row + static_cast<std::uint32_t>(shared.before[at / 4]);
      for (int other = at & ~3; other < at; ++other)
        row += static_cast<std::uint32_t>(__popc(shared.words[other]));
      const auto number = static_cast<std::uint32_t>(first_word + at);
      begin(number, row);
      for (std::uint32_t rest = word; rest != 0; rest &= rest - 1)
        visit(number * 32 + static_cast<std::uint32_t>(__ffs(static_cast<int>(rest)) - 1), row++);
    }
    __syncthreads();  // all have read the words before the next tile's come
  }
}

/// For a rung's choice: scan_tiles() takes kThreads * kTilesEach of them in a round.
inline const char* tiles_in_words(std::int64_t tiles) {
  return tiles == 1                       ? "one tile"
         : tiles <= kThreads * kTilesEach ? "several tiles"
                                          : "tiles in several rounds";
}

/// For a rung's choice: whose rows are found, and in how many tiles.
inline std::string found_in_words(const RulebookProblem& book) {
  return text(book.mode == SparseMode::inverse ? "inputs found in " : "outputs found in ",
              tiles_in_words(tiles_for(key_count(book, book.out_shape))));
}

}  // namespace bit_ranks

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
