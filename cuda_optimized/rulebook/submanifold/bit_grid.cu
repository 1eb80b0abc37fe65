/// @file bit_grid.cu
/// @brief rulebook, submanifold: bitmap of cells; a row is the prefix count of its bit (its rank).
///
/// - Before: occupancy_bits.cu
/// - After: paged_bricks.cu, cooperative_launch.cu
/// - The look-ups: shared/runs.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** A bitmap makes the dense grid of rows unnecessary. The number of set bits before a
/// cell, in cell order, is its *rank*. In an input sorted by site, the rank is the row itself.
///
///     cells   . # # . . # . .   . . # # # . . #   . . . . # . . #     eight a block, here
///     ranks   0                 3                 7                   sites before each block
///     rank of the cell marked           ^         3 + 2 bits in the block before it = 5
///
/// The number of sites before each block of 256 cells is stored: an eighth more memory. Eight words
/// are one sector of 32 bytes. There is no hash and no sort. The kernel that sets the bits compares
/// each row with its predecessor; for an unsorted input, a list maps ranks to rows, one more load a
/// pair. A bit that was already set is a duplicate.
///
/// **Expect.** In a LiDAR sweep (sweep-subm3-table), 80 x 1600 x 1600 cells, 25.6 MB are cleared
/// and then read twice to count, from L2: 5 + 2 x 7 us on an H200. With the launches 45 us for
/// 125,562 sites, and 110 us for 913,903 (large-subm3-table).
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 6
/// @expect footprint.workspace 4 * (2048 + 256 + 512) + 24 = 11288, words, ranks, rows
/// @expect lanes.coords.load 2 * 512 - 1 + 2 * 512 + 3 * 512 = 3583, with the list of rows
/// @expect lanes.nbr.store 27 * 512 = 13824
/// **Costs.** 4.5 bytes for 32 cells. Up to 2^26 runs of 32 cells.
/// **Try.** Use blocks of 1024 cells. What does it cost a look-up?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/runs.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using runs::State;

constexpr int kThreads = 384;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a tile: three threads each.
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< Upper bound of the grid; threads stride over
                                                 ///< more work.
constexpr int kBlockWords = 8;                   ///< Of a block of cells: one sector of memory.
constexpr int kCountThreads = 256;               ///< Of a thread block that counts; a power of 2.
constexpr int kTileWords = kCountThreads * kBlockWords;  ///< A block of cells for each of them.
constexpr std::int64_t kMaxRuns = std::int64_t{1} << 26;

/// The grid: an index for look_up().
struct BitGrid {
  using Answer = std::uint32_t;

  std::uint32_t* words;  ///< [whole tiles]: a bit for each cell, a word for each run
  std::int32_t* ranks;   ///< [blocks]: the sites before each block
  std::int32_t* rows;    ///< [sites], by rank; only where the input is not sorted

  struct Found {
    std::uint32_t word;
    std::uint32_t run;
  };

  __device__ Answer ask(std::uint32_t run) const { return words[run]; }
  __device__ Found settle(std::uint32_t run, Answer word) const { return {word, run}; }
  /// The sites before a cell.
  __device__ std::int32_t rank_at(const Found& found, int bit) const {
    std::int32_t rank = ranks[found.run / kBlockWords];
    for (std::uint32_t before = found.run / kBlockWords * kBlockWords; before < found.run; ++before)
      rank += __popc(words[before]);
    return rank + __popc(found.word & ((1u << bit) - 1));
  }
  __device__ std::int32_t row_at(const Found& found, int bit, bool sorted) const {
    if ((found.word >> bit & 1) == 0) return -1;
    const std::int32_t rank = rank_at(found, bit);
    return sorted ? rank : rows[rank];
  }
};

/// Copies coords [N][1 + ndim], looks at their order, and sets the bits of all sites. Words and
/// state must be zero. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void rulebook_submanifold_bit_grid_set_bits(runs::Problem grid,
                                                       const std::int32_t* coords, BitGrid bits,
                                                       State* state, std::int32_t* out_coords) {
  if (!runs::copy_sites<kCube>(grid, coords, thread_of_grid(), threads_of_grid(), out_coords))
    state->unsorted = 1;
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (row < grid.sites && !site.inside) atomicAdd(&state->bad, 1);
    const runs::Group group(site.inside, site.run, site.bit);
    if (!site.inside || !group.leads) return;
    const std::uint32_t old = atomicOr(&bits.words[site.run], group.bits);
    const int repeated = group.lanes - __popc(group.bits) + __popc(old & group.bits);
    if (repeated != 0) atomicAdd(&state->bad, repeated);
  });
}

/// The bits of a block of cells.
__device__ int bits_of_block(const std::uint32_t* words, std::int64_t block) {
  int bits = 0;
#pragma unroll
  for (int i = 0; i < kBlockWords; ++i) bits += __popc(words[block * kBlockWords + i]);
  return bits;
}

/// The sum over a block of kCountThreads, and over the threads before each one.
/// @param sums shared memory of the block
struct Counted {
  std::int32_t before, all;
};
__device__ Counted count_in_block(std::int32_t own, std::int32_t (&sums)[2][kCountThreads]) {
  const int thread = static_cast<int>(threadIdx.x);
  int from = 0;
  sums[from][thread] = own;
  __syncthreads();  // all have written before any adds up
  for (int distance = 1; distance < kCountThreads; distance *= 2) {
    const std::int32_t more = thread >= distance ? sums[from][thread - distance] : 0;
    sums[1 - from][thread] = sums[from][thread] + more;
    from = 1 - from;
    __syncthreads();  // the sums of a step are stored before the next one reads them
  }
  return {sums[from][thread] - own, sums[from][kCountThreads - 1]};
}

/// counts [tiles]: the bits of each tile. Any one-dimensional grid of kCountThreads.
__global__ void __launch_bounds__(kCountThreads)
    rulebook_submanifold_bit_grid_count_tiles(std::int64_t tiles, const std::uint32_t* words,
                                              std::int32_t* counts) {
  __shared__ std::int32_t sums[kCountThreads / 32];
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int bits = bits_of_block(words, tile * kCountThreads + threadIdx.x);
    for (int distance = 16; distance > 0; distance /= 2)
      bits += __shfl_down_sync(runs::kWholeWarp, bits, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = bits;
    __syncthreads();  // all warps have counted before one thread adds up
    if (threadIdx.x == 0) {
      int all = 0;
      for (const int of_warp : sums) all += of_warp;
      counts[tile] = all;
    }
    __syncthreads();  // all counts are added up before the next tile's counts overwrite these
  }
}

/// ranks [tiles * kCountThreads]. first [tiles]: the bits before each tile. Any one-dimensional
/// grid of kCountThreads.
__global__ void __launch_bounds__(kCountThreads)
    rulebook_submanifold_bit_grid_rank_blocks(std::int64_t tiles, const std::uint32_t* words,
                                              const std::int64_t* first, std::int32_t* ranks) {
  __shared__ std::int32_t sums[2][kCountThreads];
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t block = tile * kCountThreads + threadIdx.x;
    const Counted counted = count_in_block(bits_of_block(words, block), sums);
    ranks[block] = static_cast<std::int32_t>(first[tile]) + counted.before;
    __syncthreads();  // all have read the sums before the next tile's overwrite them
  }
}

/// rows [N], by rank, unless the input is sorted. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void rulebook_submanifold_bit_grid_list_rows(runs::Problem grid,
                                                        const std::int32_t* coords, BitGrid bits,
                                                        const State* state) {
  if (state->unsorted == 0) return;
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (!site.inside) return;
    // Duplicate sites race here: the result is then not used.
    bits.rows[bits.rank_at(bits.settle(site.run, bits.ask(site.run)), site.bit)] =
        static_cast<std::int32_t>(row);
  });
}

/// nbr [KV][N] and mask [N][mask_words(KV)]. Any one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    rulebook_submanifold_bit_grid_find_neighbours(runs::Problem grid, const std::int32_t* coords,
                                                  BitGrid bits, const State* state,
                                                  std::int32_t* nbr, std::int32_t* mask) {
  const bool sorted = state->unsorted == 0;
  if constexpr (kCube) {
    __shared__ std::uint32_t mask_bits[runs::kPlanes][kRows];
    const int row_of_tile = static_cast<int>(threadIdx.x) % kRows;
    const int plane = static_cast<int>(threadIdx.x) / kRows;
    const auto sites = static_cast<unsigned>(grid.sites);
    for (unsigned first = blockIdx.x * kRows; first < sites; first += gridDim.x * kRows) {
      const unsigned row = first + static_cast<unsigned>(row_of_tile);
      // look_up_plane() stands for
      //
      //     for the 9 taps k of the plane:  cell = site + (k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1)
      //       nbr[k][row] = is the cell's bit set? ranks of its block + bits before it : -1
      //
      // with one word for the three taps of a line, and all loads of a plane in flight together.
      if (row < sites)
        mask_bits[plane][row_of_tile] = runs::look_up_plane(
            grid, runs::cell_of<true>(grid, coords, row), bits, sorted, plane, row, nbr);
      __syncthreads();  // the bits of all planes are stored before one thread per row joins them
      if (plane == 0 && row < sites)
        mask[row] = static_cast<std::int32_t>(
            mask_bits[0][row_of_tile] | mask_bits[1][row_of_tile] | mask_bits[2][row_of_tile]);
      __syncthreads();  // the bits are joined before those of the next tile overwrite them
    }
  } else {
    for (std::int64_t row = thread_of_grid(); row < grid.sites; row += threads_of_grid())
      runs::look_up(grid, runs::cell_of<false>(grid, coords, row), bits, sorted, row,
                    grid.tap_lines, nbr, mask);
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only";
  if (runs::run_count(book) > kMaxRuns) return "grids of at most 2^26 runs of 32 cells only";
  return {};
}

/// Layout of the workspace.
struct Workspace {
  BitGrid bits;
  State* state;
  std::size_t zeroed_bytes;  ///< Of words and state, which must be zero before the first launch.
  std::int32_t* counts;      ///< [tiles]: the sites of each
  std::int64_t* first;       ///< [tiles + 1]: the sites before each
  std::int64_t tiles;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.tiles = ceil_div<std::int64_t>(runs::run_count(book), kTileWords);
  work.bits.words = cutter.take<std::uint32_t>(work.tiles * kTileWords);
  work.state = cutter.take<State>(1);
  work.zeroed_bytes = cutter.bytes();
  work.first = cutter.take<std::int64_t>(work.tiles + 1);
  work.counts = cutter.take<std::int32_t>(work.tiles);
  work.bits.ranks = cutter.take<std::int32_t>(work.tiles * kCountThreads);
  work.bits.rows = cutter.take<std::int32_t>(book.sites);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

template <bool kCube>
void launch_steps(const RulebookProblem& book, const std::int32_t* coords, const Workspace& work,
                  std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  const runs::Problem grid(book);
  const BitGrid& bits = work.bits;
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned find_blocks = kCube ? blocks_for(book.sites, kRows, kMaxBlocks) : row_blocks;
  const unsigned tile_blocks = blocks_for(work.tiles, 1, kMaxBlocks);
  check(cudaMemsetAsync(bits.words, 0, work.zeroed_bytes, current_stream()));
  launch(rulebook_submanifold_bit_grid_set_bits<kCube>, {row_blocks, kThreads}, grid, coords, bits,
         work.state, out_coords);
  launch(rulebook_submanifold_bit_grid_count_tiles, {tile_blocks, kCountThreads}, work.tiles,
         bits.words, work.counts);
  exclusive_sum(work.counts, work.first, work.tiles);
  launch(rulebook_submanifold_bit_grid_rank_blocks, {tile_blocks, kCountThreads}, work.tiles,
         bits.words, work.first, bits.ranks);
  launch(rulebook_submanifold_bit_grid_list_rows<kCube>, {row_blocks, kThreads}, grid, coords, bits,
         work.state);
  launch(rulebook_submanifold_bit_grid_find_neighbours<kCube>, {find_blocks, kThreads}, grid,
         coords, bits, work.state, nbr, mask);
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and the form.
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  auto* nbr = arrays.create("nbr", {book.KV, book.sites});
  auto* mask = arrays.create("mask", {book.sites, mask_words(book.KV)});
  if (book.sites > 0) {
    const bool cube = runs::is_cube_of_3(book, coords, out_coords);
    const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
    (cube ? launch_steps<true> : launch_steps<false>)(book, coords, work, out_coords, nbr, mask);
  }
  create_form(book, book.sites, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  runs::require_no_bad_rows(book, arrays.coords, &work.state->bad);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(runs::kernel_in_words(book), ", ",
              how_many(workspace_at(book, nullptr).tiles, "tile"), ", ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_bit_grid = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
