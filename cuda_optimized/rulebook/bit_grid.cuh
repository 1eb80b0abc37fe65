/// @file bit_grid.cuh
/// @brief A bit for each cell of a grid, and the rank of a set bit among all: its row.
#pragma once

#include "core/cuda/host_message.hpp"
#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

namespace bit_grid {

inline constexpr int kThreads = 256;                 ///< Of all kernels here. A multiple of 32.
inline constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: blocks stride.
inline constexpr int kWarps = kThreads / 32;         ///< Of a block.
inline constexpr unsigned kWholeWarp = 0xffffffff;   ///< All lanes take part.
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
  std::uint32_t placed;      ///< Given rows that have a place in the index (gather.cu).
  unsigned long long pairs;  ///< Of all taps (lists_of_inputs.cu).
};
inline constexpr std::int64_t kProgressWords = 64;  ///< Room for it, with what follows aligned.
static_assert(sizeof(Progress) <= kProgressWords * sizeof(std::uint32_t));

/// Tiles of kTileWords words that hold a bit for each cell.
inline std::int64_t tiles_for(std::int64_t cells) {
  return ceil_div<std::int64_t>(cells, std::int64_t{32} * kTileWords);
}
/// Words of a bit for each cell, and one behind them, so many that what follows is aligned.
inline std::int64_t words_for(std::int64_t cells) {
  return ceil_div<std::int64_t>(cells + 32, std::int64_t{32} * 64) * 64;
}
/// Hands out a workspace front to back. Without one it hands out null, and still counts: so the
/// same lines say how much workspace there must be and where everything is in it.
class Cutter {
 public:
  /// @param begin  the workspace, or null
  explicit Cutter(std::uint32_t* begin) : begin_(begin) {}

  /// The next `words` words.
  std::uint32_t* take(std::int64_t words) {
    std::uint32_t* const place = begin_ == nullptr ? nullptr : begin_ + taken_;
    taken_ += words;
    return place;
  }

  /// Bytes handed out so far.
  std::size_t bytes() const { return static_cast<std::size_t>(taken_) * sizeof(std::uint32_t); }

 private:
  std::uint32_t* begin_;
  std::int64_t taken_ = 0;  ///< Words.
};

/// A cell's bit in its word.
__device__ inline std::uint32_t bit_of(std::uint32_t cell) { return 1u << cell % 32; }

/// How many bits of four words are set.
__device__ inline int bits_in(const uint4& words) {
  return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}

/// Sets the bit of a given site; false if the site lies outside, or if its bit was there.
__device__ inline bool mark_given(const Lattice& lattice, const LatticeSite& site,
                                  std::uint32_t* given) {
  if (!is_inside(lattice, site)) return false;
  const std::uint32_t cell = given_cell(lattice, site);
  return (atomicOr(&given[cell / 32], bit_of(cell)) & bit_of(cell)) == 0;
}

/// Sets bits of a word. Most are there already, as neighbouring sites lead to the same cells, and a
/// load is cheaper than an atomic: one from the L2, where other blocks' bits are. Bits that another
/// thread sets between the load and the atomic are set twice, which does no harm.
__device__ inline void set_in_word(std::uint32_t* word, std::uint32_t bits) {
  if ((__ldcg(word) & bits) != bits) atomicOr(word, bits);
}

/// Sets the bits of `pattern`, the first at a cell.
__device__ inline void set_bits(std::uint32_t* bits, std::uint32_t cell, std::uint32_t pattern) {
  const std::uint64_t both = std::uint64_t{pattern} << cell % 32;
  set_in_word(&bits[cell / 32], static_cast<std::uint32_t>(both));
  if (both >> 32 != 0) set_in_word(&bits[cell / 32 + 1], static_cast<std::uint32_t>(both >> 32));
}

/// Sets the bits of all found cells that a given site leads to, line by line: those of a line are
/// the same pattern everywhere, which mostly lies in one word.
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
        break;  // too far off: for the next round
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

/// Sets the bit of a given site, and those of all that its taps lead to. A site outside leads
/// nowhere; it is counted, and so is one whose bit is there already.
__device__ inline void mark_site(const Lattice& lattice, const LatticeSite& site,
                                 std::uint32_t* given, std::uint32_t* found, Progress* progress) {
  // The atomic's answer takes as long as all that mark_found() does: it is asked for first, and
  // needed last. A repeated site sets the same bits again.
  const bool usable = mark_given(lattice, site, given);
  if (is_inside(lattice, site)) mark_found(lattice, site, found);
  if (!usable) atomicAdd(&progress->unusable, 1u);
}

/// mark_site() for all given sites. Any one-dimensional grid.
/// @param given, found bits, all zero
[[maybe_unused]] static __global__ void mark_sites(Lattice lattice, const std::int32_t* coords,
                                                   std::uint32_t* given, std::uint32_t* found,
                                                   Progress* progress) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads)
    mark_site(lattice, lattice_site(lattice, coords, row), given, found, progress);
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

}  // namespace bit_grid

/// Bits and the rows of the first bit of each word: an index from cells to rows.
struct BitIndex {
  const std::uint32_t* bits;   ///< A bit for each cell.
  const std::uint32_t* first;  ///< By word; only where the word has bits.
  /// The row of a cell whose bit is set in its word.
  __device__ std::uint32_t rank(std::uint32_t cell, std::uint32_t word) const {
    return first[cell / 32] +
           static_cast<std::uint32_t>(__popc(word & (bit_grid::bit_of(cell) - 1)));
  }
};

namespace bit_grid {

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

// What bit_grid_of_outputs.cu, which explains it, and one_output_each.cu have in common: all but
// the walk from an input to its outputs.

/// sums [tiles]: the bits of all tiles before; and their number, in the host's memory. A block of
/// kThreads, any one-dimensional grid.
[[maybe_unused]] static __global__ void count_bits(std::int64_t tiles, const std::uint32_t* found,
                                                   std::uint32_t* sums, Progress* progress,
                                                   Letter<Count>* count) {
  __shared__ int warp_sums[kWarps];
  count_tiles(tiles, gridDim.x, found, sums, warp_sums);
  scan_tiles(tiles, gridDim.x, sums, progress, count, warp_sums);
}

/// first [words], and the cells of the found sites in order: cells [found]. A block of kThreads,
/// any one-dimensional grid.
[[maybe_unused]] static __global__ void number_sites(std::int64_t tiles, const std::uint32_t* found,
                                                     const std::uint32_t* sums,
                                                     std::uint32_t* first, std::uint32_t* cells) {
  __shared__ TileInShared shared;
  number_bits(
      tiles, gridDim.x, found, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
}

/// out_coords [M][1 + ndim] of cells [M]. Any one-dimensional grid.
[[maybe_unused]] static __global__ void write_sites(Lattice lattice, std::int64_t M,
                                                    const std::uint32_t* cells,
                                                    std::int32_t* out_coords) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < M; row += grid_threads)
    write_lattice_site(lattice, found_site(lattice, cells[row]), out_coords, row);
}

/// Creates out_coords [M][1 + ndim] and fills it: under `inverse` with coords, else with the sites
/// of the found cells [M].
inline void create_out_coords(const RulebookProblem& book, const Lattice& lattice,
                              const Arguments& arrays, std::int64_t M, const std::uint32_t* cells) {
  auto* out_coords = arrays.create<std::int32_t>("out_coords", {M, 1 + book.ndim});
  if (M == 0) return;
  if (book.mode == SparseMode::inverse) {
    check(cudaMemcpyAsync(
        out_coords, arrays.in<std::int32_t>("coords"),
        static_cast<std::size_t>(M) * static_cast<std::size_t>(1 + book.ndim) * sizeof *out_coords,
        cudaMemcpyDeviceToDevice));
  } else {
    launch(write_sites, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, lattice, M, cells,
           out_coords);
  }
}

/// The workspace, front to back.
struct Workspace {
  Progress* progress;        ///< Of the kernels.
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid.
  std::uint32_t* found;      ///< The same for the found sites, in whole tiles.
  std::uint32_t* sums;       ///< By tile.
  std::uint32_t* first;      ///< By word of the found sites' bits.
  std::uint32_t* cells;      ///< Of the found sites, in order.
  std::size_t zeroed_bytes;  ///< Of the first places, which must be zero before the first launch.
  std::size_t bytes;         ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
inline Workspace workspace_at(const RulebookProblem& book, std::uint32_t* begin) {
  const std::int64_t tiles = tiles_for(key_count(book, book.out_shape));
  Workspace all{};
  Cutter cutter(begin);
  all.progress = reinterpret_cast<Progress*>(cutter.take(kProgressWords));
  all.given = cutter.take(words_for(key_count(book, book.shape)));
  all.found = cutter.take(tiles * kTileWords);
  all.zeroed_bytes = cutter.bytes();
  all.sums = cutter.take(tiles + 1);
  all.first = cutter.take(tiles * kTileWords);
  all.cells = cutter.take(most_found(book));
  all.bytes = cutter.bytes();
  return all;
}

/// Bytes of it.
inline std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// A table whose outputs are known, but not yet its pairs.
struct Table {
  BitIndex found;      ///< From cells to the rows of found sites.
  bool inverse;        ///< Found sites are inputs, and given ones outputs.
  std::int64_t M;      ///< Outputs.
  int words;           ///< Of a mask.
  std::int32_t* nbr;   ///< [KV][M], -1 at first.
  std::int32_t* mask;  ///< [M][words], 0 at first.

  /// Stores the pair of a given row with the found site in a cell.
  __device__ void store(std::int64_t given, int tap, std::uint32_t cell) const {
    const std::int64_t row = found.rank(cell, found.bits[cell / 32]);
    const std::int64_t in = inverse ? row : given, out = inverse ? given : row;
    nbr[tap * M + out] = static_cast<std::int32_t>(in);
    atomicOr(&mask[out * words + tap / 32], static_cast<std::int32_t>(1u << tap % 32));
  }
};

/// Finds the outputs, and creates out_coords [M][1 + ndim], nbr and mask. The host waits once.
/// @param mark a kernel that sets the bits of all given sites, and of all that they lead to, as
/// mark_sites() does
/// @throws BadInput for sites outside of the grid, and for duplicates
inline Table create_table(const RulebookProblem& book, const Lattice& lattice,
                          const Arguments& arrays, decltype(&mark_sites) mark) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  auto* const begin = arrays.workspace<std::uint32_t>();
  const Workspace work = workspace_at(book, begin);
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t tiles = tiles_for(key_count(book, book.out_shape));
  const unsigned tile_blocks = blocks_for(tiles, 1, kMaxBlocks);
  HostMessage<Count> message;

  check(cudaMemsetAsync(begin, 0, work.zeroed_bytes));
  launch(mark, {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, lattice, coords,
         work.given, work.found, work.progress);
  launch(count_bits, {tile_blocks, kThreads}, tiles, work.found, work.sums, work.progress,
         message.letter());
  message.expect();
  launch(number_sites, {tile_blocks, kThreads}, tiles, work.found, work.sums, work.first,
         work.cells);
  const Count count = message.received();  // number_sites() runs on
  if (count.unusable > 0) report_site_errors(book, coords);

  const std::int64_t M = inverse ? book.sites : count.found;
  create_out_coords(book, lattice, arrays, M, work.cells);
  const Table table{{work.found, work.first},
                    inverse,
                    M,
                    mask_words(book.KV),
                    arrays.create<std::int32_t>("nbr", {book.KV, M}),
                    arrays.create<std::int32_t>("mask", {M, mask_words(book.KV)})};
  if (M == 0) return table;
  const auto rows = static_cast<std::size_t>(M);
  check(cudaMemsetAsync(table.nbr, 0xff,
                        static_cast<std::size_t>(book.KV) * rows * sizeof *table.nbr));
  check(cudaMemsetAsync(table.mask, 0,
                        static_cast<std::size_t>(table.words) * rows * sizeof *table.mask));
  return table;
}

}  // namespace bit_grid

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
