/// @file bit_grid.cu
/// @brief rulebook, submanifold: one bit a cell, and a site's row is the number of bits before.
///
/// - Before: symmetric.cu
/// - After: two_level_grid.cu
/// - The look-ups: runs.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** Whether a cell is a site takes one bit. And which site it is can be counted: the
/// bits set before it, in the order of cells, are the sites before it. That number is its *rank*,
/// and in an input sorted by site it is the row itself.
///
///     cells   . # # . . # . .   . . # # # . . #   . . . . # . . #     eight a block, here
///     ranks   0                 3                 7                   sites before each block
///     rank of the cell marked           ^         3 + 2 bits in the block before it = 5
///
/// To count from the grid's beginning would take too long, so the sites before each block of 256
/// cells are stored: an eighth more memory. Eight words are one sector of 32 bytes, the least that
/// is loaded anyway. There is no hash and no sort: the places of the bits sort the sites.
///
/// The kernel that sets the bits compares each row with the one before. If the input is not sorted,
/// a list leads from ranks to rows: one more load a pair. A bit that was set before is a duplicate.
/// **Expect.** In a LiDAR sweep (sweep-subm3-table), 80 x 1600 x 1600 cells, 25.6 MB are cleared
/// and then read twice to count, all in the L2 cache, whatever the number of sites: 5 + 2 x 7 us on
/// an H200. The look-ups read words side by side, where a hash scatters them. With the launches
/// 45 us for 125,562 sites, and 110 us for 913,903 (large-subm3-table).
/// **Costs.** Memory and time by the volume: 4.5 bytes for 32 cells. A sum over all blocks, with
/// temporary memory. Declined: other modes than subm, more than 2^26 runs of 32 cells.
/// **Try.** Count the sites before each block of 1024 cells: a thirty-second more memory. What does
/// it cost a look-up, and in which scenes does that show?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/runs.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 384;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a block's tile in look_up_cube().
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< More work than these take: threads stride.
constexpr int kBlockWords = 8;                   ///< Of a block of cells: one sector of memory.
constexpr int kCountThreads = 256;               ///< Of a thread block that counts; a power of 2.
constexpr int kTileWords = kCountThreads * kBlockWords;  ///< A block of cells for each of them.
constexpr std::int64_t kMaxRuns = std::int64_t{1} << 26;

/// What the kernels tell each other and the host.
struct State {
  std::int32_t bad;       ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t unsorted;  ///< Not 0: the rows are not in the order of their sites.
};

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

__device__ std::int64_t thread_of_grid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ std::int64_t threads_of_grid() { return std::int64_t{gridDim.x} * blockDim.x; }

/// Copies coords [N][1 + ndim], looks at their order, and sets the bits of all sites. Words and
/// state must be zero. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void set_bits(runs::Problem grid, const std::int32_t* coords, BitGrid bits, State* state,
                         std::int32_t* out_coords) {
  if (!runs::copy_sites<kCube>(grid, coords, thread_of_grid(), threads_of_grid(), out_coords))
    state->unsorted = 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // All lanes of a warp go round equally often.
  for (std::int64_t warp_row = thread_of_grid() - lane; warp_row < grid.sites;
       warp_row += threads_of_grid()) {
    const std::int64_t row = warp_row + lane;
    runs::Cell cell{-1, {}};
    if (row < grid.sites) cell = runs::cell_of<kCube>(grid, coords, row);
    const bool inside = cell.is_inside(grid);
    if (row < grid.sites && !inside) atomicAdd(&state->bad, 1);
    const std::uint32_t run = inside ? cell.run(grid) : 0;
    const runs::Group group(inside, run, cell.bit());
    if (!inside || !group.leads) continue;
    const std::uint32_t old = atomicOr(&bits.words[run], group.bits);
    const int repeated = group.lanes - __popc(group.bits) + __popc(old & group.bits);
    if (repeated != 0) atomicAdd(&state->bad, repeated);
  }
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
    __syncthreads();  // a round's sums are there before the next one reads them
  }
  return {sums[from][thread] - own, sums[from][kCountThreads - 1]};
}

/// counts [tiles]: the bits of each tile. Any one-dimensional grid of kCountThreads.
__global__ void __launch_bounds__(kCountThreads)
    count_tiles(std::int64_t tiles, const std::uint32_t* words, std::int32_t* counts) {
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
    __syncthreads();  // they are added up before the next tile's counts overwrite these
  }
}

/// ranks [tiles * kCountThreads]. first [tiles]: the bits before each tile. Any one-dimensional
/// grid of kCountThreads.
__global__ void __launch_bounds__(kCountThreads)
    rank_blocks(std::int64_t tiles, const std::uint32_t* words, const std::int64_t* first,
                std::int32_t* ranks) {
  __shared__ std::int32_t sums[2][kCountThreads];
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t block = tile * kCountThreads + threadIdx.x;
    const Counted counted = count_in_block(bits_of_block(words, block), sums);
    ranks[block] = static_cast<std::int32_t>(first[tile]) + counted.before;
    __syncthreads();  // all have read the sums before the next tile's overwrite them
  }
}

/// rows [N], by rank, unless the input is sorted. Any one-dimensional grid.
template <bool kCube>
__global__ void list_rows(runs::Problem grid, const std::int32_t* coords, BitGrid bits,
                          const State* state) {
  if (state->unsorted == 0) return;
  for (std::int64_t row = thread_of_grid(); row < grid.sites; row += threads_of_grid()) {
    const runs::Cell cell = runs::cell_of<kCube>(grid, coords, row);
    if (!cell.is_inside(grid)) continue;
    const std::uint32_t run = cell.run(grid);
    // Of several rows of one site any may win here: the result is not used.
    bits.rows[bits.rank_at(bits.settle(run, bits.ask(run)), cell.bit())] =
        static_cast<std::int32_t>(row);
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)]. Any one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    find_neighbours(runs::Problem grid, const std::int32_t* coords, BitGrid bits,
                    const State* state, std::int32_t* nbr, std::int32_t* mask) {
  const bool sorted = state->unsorted == 0;
  if constexpr (kCube) {
    __shared__ std::uint32_t mask_bits[runs::kPlanes][kRows];
    runs::look_up_cube<kRows>(grid, coords, bits, sorted, mask_bits, nbr, mask);
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

/// Tiles of the grid.
std::int64_t tile_count(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(runs::run_count(book), kTileWords);
}

/// State, words of whole tiles, ranks, rows.
std::size_t workspace_bytes(const RulebookProblem& book) {
  const std::int64_t elements =
      tile_count(book) * (kTileWords + kCountThreads) + std::int64_t{book.sites};
  return sizeof(State) + static_cast<std::size_t>(elements) * sizeof(std::int32_t);
}

template <bool kCube>
void launch_steps(const RulebookProblem& book, const std::int32_t* coords, State* state,
                  std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  const runs::Problem grid(book);
  const std::int64_t tiles = tile_count(book);
  auto* words = reinterpret_cast<std::uint32_t*>(state + 1);
  auto* ranks = reinterpret_cast<std::int32_t*>(words + tiles * kTileWords);
  const BitGrid bits{words, ranks, ranks + tiles * kCountThreads};
  const DeviceArray<std::int32_t> counts(tiles);
  const DeviceArray<std::int64_t> first(tiles + 1);
  const unsigned blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned count_blocks = blocks_for(tiles, 1, kMaxBlocks);

  check(cudaMemsetAsync(
      state, 0, sizeof *state + static_cast<std::size_t>(tiles) * kTileWords * sizeof *words,
      nullptr));
  launch(set_bits<kCube>, {blocks, kThreads}, grid, coords, bits, state, out_coords);
  launch(count_tiles, {count_blocks, kCountThreads}, tiles, words, counts.data());
  exclusive_sum(counts.data(), first.data(), tiles);
  launch(rank_blocks, {count_blocks, kCountThreads}, tiles, words, first.data(), ranks);
  launch(list_rows<kCube>, {blocks, kThreads}, grid, coords, bits, state);
  launch(find_neighbours<kCube>,
         {blocks_for(book.sites, kCube ? kRows : kThreads, kMaxBlocks), kThreads}, grid, coords,
         bits, state, nbr, mask);
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and the form.
void run(const RulebookProblem& book, const Arguments& arrays) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  auto* out_coords = arrays.create<std::int32_t>("out_coords", {book.sites, 1 + book.ndim});
  auto* nbr = arrays.create<std::int32_t>("nbr", {book.KV, book.sites});
  auto* mask = arrays.create<std::int32_t>("mask", {book.sites, mask_words(book.KV)});
  const bool cube = runs::is_cube_of_3(book, coords, out_coords);
  (cube ? launch_steps<true> : launch_steps<false>)(book, coords, arrays.workspace<State>(),
                                                    out_coords, nbr, mask);
  create_form(book, book.sites, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const Arguments& arrays) {
  runs::require_no_bad_rows(book, arrays.in<std::int32_t>("coords"),
                            &arrays.workspace<State>()->bad);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(runs::kernel_in_words(book), ", ", how_many(tile_count(book), "tile"), ", ",
              form_in_words(book));
}

}  // namespace

Implementation<RulebookProblem> bit_grid() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .finish = finish,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
