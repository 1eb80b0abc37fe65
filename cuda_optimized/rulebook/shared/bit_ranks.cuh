/// @file bit_ranks.cuh
/// @brief A bit for each cell of a grid: how sites set them, prefix sums over a block, and the rank
/// of a bit, which is the number of set bits before it. strided/bit_grid.cu explains them.
#pragma once

#include "core/cuda/host_message.hpp"
#include "core/cuda/launch.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The sum of the values of the threads before this one, and of all: `total`. All threads of a
/// block of kWarps warps call it; warp_sums [kWarps] is shared memory, free again at the next call.
///
///     a warp:    3 1 0 2        shuffle_up 1     3 4 1 2       2     3 4 4 6     inclusive
///     the block: each warp adds the sums of the warps before it
template <int kWarps>
__device__ int block_exclusive_sum(int value, int* warp_sums, int* total) {
  constexpr unsigned kWholeWarp = 0xffffffff;  // mask of all lanes
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int inclusive = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int before = __shfl_up_sync(kWholeWarp, inclusive, distance);
    if (lane >= distance) inclusive += before;
  }
  __syncthreads();  // all warps have read the sums of the previous call
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();  // all warps have stored their sums
  int before = 0, all = 0;
#pragma unroll
  for (int other = 0; other < kWarps; ++other) {
    before += other < warp ? warp_sums[other] : 0;
    all += warp_sums[other];
  }
  *total = all;
  return before + inclusive - value;
}

/// Replaces the values [rows][columns] by the sums of those before in their row, and writes the sum
/// of each row: totals [rows]. The first `blocks` blocks, of kThreads, share the work: a row each.
template <int kThreads>
__device__ void row_exclusive_sums(int rows, std::int64_t columns, unsigned blocks,
                                   std::int32_t* values, std::int32_t* totals) {
  constexpr int kWarps = kThreads / 32;
  __shared__ int warp_sums[kWarps];
  for (std::int64_t row = blockIdx.x; row < rows; row += blocks) {
    std::int32_t before = 0;  // in the columns of earlier rounds
    for (std::int64_t first = 0; first < columns; first += kThreads) {
      const std::int64_t column = first + threadIdx.x;
      const int own = column < columns ? values[row * columns + column] : 0;
      int total;
      const int sum = block_exclusive_sum<kWarps>(own, warp_sums, &total);
      if (column < columns) values[row * columns + column] = before + sum;
      before += total;
    }
    if (threadIdx.x == 0) totals[row] = before;
  }
}

/// Words with one bit per cell, and one more after them, which may be read together with the last.
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
inline constexpr int kWarps = kThreads / 32;         ///< Per block.
inline constexpr int kTileWords = 4 * kThreads;      ///< A thread loads four words at once.
inline constexpr int kTilesEach = 8;  ///< Tiles whose sums a thread of the last block adds.

/// What the kernel sends to the host during a run.
struct Count {
  std::int64_t found;      ///< Bits set in what was counted: the found sites' grid, or both.
  std::uint32_t unusable;  ///< As Progress::unusable.
  std::int64_t pairs;      ///< As Progress::pairs.
};

/// State shared by the blocks; zero at first.
struct Progress {
  std::uint32_t unusable;    ///< Rows of coords outside of the grid, and repeated ones.
  std::uint32_t tickets;     ///< Blocks that have counted their tiles.
  std::uint32_t placed;      ///< Given rows that have an index (strided/gather.cu).
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

/// The last block to finish replaces the sums by those of all previous tiles, and stores the total
/// after them: sums [tiles + 1]. All `blocks` blocks call it when they have counted.
/// @param count in the host's memory: the sum is sent there; null: it is not
__device__ inline void scan_tiles(std::int64_t tiles, unsigned blocks, std::uint32_t* sums,
                                  Progress* progress, Letter<Count>* count, int* warp_sums) {
  __shared__ bool is_last;
  __threadfence();  // makes the block's sums visible to all blocks before its ticket
  __syncthreads();  // the sums of all threads of the block
  if (threadIdx.x == 0) is_last = atomicAdd(&progress->tickets, 1u) == blocks - 1;
  __syncthreads();  // thread 0 has stored its ticket
  if (!is_last) return;
  __threadfence();  // orders the ticket before the reads of the sums
  std::uint32_t before = 0;
  for (std::int64_t first = 0; first < tiles; first += kThreads * kTilesEach) {
    const std::int64_t own = first + std::int64_t{threadIdx.x} * kTilesEach;
    int of_tile[kTilesEach], of_thread = 0;
#pragma unroll
    for (int i = 0; i < kTilesEach; ++i) {
      // Bypasses this SM's L1 cache, which may hold values from before the stores of other blocks.
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

/// Shared memory of a block while it numbers the bits of its tile.
struct TileInShared {
  std::uint32_t words[kTileWords];  ///< The words of a tile.
  int before[kThreads];             ///< By thread: bits in the words before its four.
  int warp_sums[kWarps];            ///< The sums of its warps.
};

/// Goes through the bits of all tiles: begin(word, row) for each word that has some, with the row
/// of its first one; visit(cell, row) for each bit. One thread a word; neighbouring threads have
/// neighbouring words: full words are clustered, and a warp takes as long as its fullest word. The
/// first `blocks` blocks, of kThreads, share the work.
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
    __syncthreads();  // all words are stored in shared memory
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
    __syncthreads();  // all threads have read the words before the next tile overwrites them
  }
}

/// For the description of a rung's choice: scan_tiles() takes kThreads * kTilesEach of them at
/// once.
inline const char* tiles_in_words(std::int64_t tiles) {
  return tiles == 1                       ? "one tile"
         : tiles <= kThreads * kTilesEach ? "several tiles"
                                          : "tiles in several rounds";
}

/// For the description of a rung's choice: whose rows are found, and in how many tiles.
inline std::string found_in_words(const RulebookProblem& book) {
  return text(book.mode == SparseMode::inverse ? "inputs found in " : "outputs found in ",
              tiles_in_words(tiles_for(key_count(book, book.out_shape))));
}

}  // namespace bit_ranks

/// Sets the bit of a given site; false if the site is outside, or if its bit was already set.
__device__ inline bool mark_given(const Lattice& lattice, const LatticeSite& site,
                                  std::uint32_t* given) {
  if (!is_inside(lattice, site)) return false;
  const std::uint32_t cell = given_cell(lattice, site);
  return (atomicOr(&given[cell / 32], bit_of(cell)) & bit_of(cell)) == 0;
}

/// Sets bits of a word. Most are already set, as neighbouring sites lead to the same cells, and a
/// load is cheaper than an atomic: one from the L2, where other blocks' bits are. Bits that another
/// thread sets between the load and the atomic are set twice, which is harmless.
__device__ inline void set_in_word(std::uint32_t* word, std::uint32_t bits) {
  if ((__ldcg(word) & bits) != bits) atomicOr(word, bits);
}

/// Sets the bits of `pattern`, the first at a cell.
__device__ inline void set_bits(std::uint32_t* bits, std::uint32_t cell, std::uint32_t pattern) {
  const std::uint64_t both = std::uint64_t{pattern} << cell % 32;
  set_in_word(&bits[cell / 32], static_cast<std::uint32_t>(both));
  if (both >> 32 != 0) set_in_word(&bits[cell / 32 + 1], static_cast<std::uint32_t>(both >> 32));
}

/// Sets the bits of all found cells that a given site leads to, line by line: the bits of a line
/// have the same pattern everywhere, which is mostly within one word.
__device__ inline void mark_found(const Lattice& lattice, const LatticeSite& site,
                                  std::uint32_t* found) {
  const SiteRuns runs(lattice, site);
  const LatticeAxis& last = lattice.axes[kMaxAxes - 1];
  int tap = runs.axes[kMaxAxes - 1].tap, at = runs.axes[kMaxAxes - 1].found;
  while (tap < last.kernel) {
    // Cells ascend, or they descend: as many as 32 bits hold.
    std::uint32_t pattern = 0;
    int low = 0;
    for (; tap < last.kernel; tap += last.tap_step, at += last.found_step) {
      if (at < 0 || at >= last.found) continue;
      if (pattern == 0) {
        low = at;
        pattern = 1;
      } else if (at > low && at - low < 32) {
        pattern |= 1u << (at - low);
      } else if (at < low && low - at <= __clz(static_cast<int>(pattern))) {
        pattern = pattern << (low - at) | 1;
        low = at;
      } else {
        break;  // too far away: left to the next iteration
      }
    }
    if (pattern == 0) continue;
    const auto set = [&](int, std::uint32_t line) {
      set_bits(found,
               line * static_cast<std::uint32_t>(last.found) + static_cast<std::uint32_t>(low),
               pattern);
    };
    visit_found<0, kMaxAxes - 1>(lattice, runs, 0, runs.batch, set);
  }
}

/// Sets the bit of a given site, and those of all that its taps lead to. A site outside of the grid
/// has no found cells; it is counted as unusable, and so is one whose bit is already set.
__device__ inline void mark_site(const Lattice& lattice, const LatticeSite& site,
                                 std::uint32_t* given, std::uint32_t* found,
                                 std::uint32_t* unusable) {
  // The latency of the atomic is about that of mark_found(): it is issued first, and its result is
  // used last. A repeated site sets the same bits again.
  const bool usable = mark_given(lattice, site, given);
  if (is_inside(lattice, site)) mark_found(lattice, site, found);
  if (!usable) atomicAdd(unusable, 1u);
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
