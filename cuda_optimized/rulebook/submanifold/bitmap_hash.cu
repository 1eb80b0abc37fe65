/// @file bitmap_hash.cu
/// @brief rulebook, submanifold: a hash table of runs of 32 cells, and rows by counting bits.
///
/// - Before: bit_grid.cu
/// - After: cooperative_launch.cu
/// - The table: shared/run_table.cuh; the look-ups: shared/runs.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Each site of a 3 x 3 x 3 kernel looks up 27 cells, in groups of three neighbours
/// along x. So an entry of the hash table stands for a run of 32 cells, as in occupancy_bits.cu: it
/// holds the number of the run, and a word with a bit for each cell. Nine loads answer 27 taps.
///
///     sites     x = 32 .. 63 of some line       . . # # . # . ...
///     entry     run 1234 | 0...0101100          both in one 64-bit number: one load, one CAS
///     window                     ^^^            cells 34, 35, 36: sites, site, none
///
/// Where the input is sorted by site, the sites of a run have rows side by side. Then an entry
/// keeps the first of them, and a site's row is that plus its *rank*, the set bits below its own:
/// from 57 on, cell 34 has row 57, cell 35 has 58, cell 37 has 59. Unsorted rows are stored one by
/// one, in a page of 32 at the entry's place.
///
/// **Expect.** In a LiDAR sweep of 125,562 sites (sweep-subm3-table) with 42,376 runs on an H200:
/// 1.13 million searches instead of 3.4 million, in a table of 2.3 MB that stays in the L2 cache.
/// 18 us: 3 to clear and compare, 6 to enter, 9 to look up. With 913,903 sites in 121,273 runs
/// (large-subm3-table) 75 us, mostly for 99 MB of stores.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 3
/// @expect lanes.coords.load 2 * 512 - 1 + 512 + 3 * 512 = 3071, compare, enter, three to look up
/// @expect bytes_per_lane.coords.load 16, a site in one load
/// @expect lanes.nbr.store 27 * 512 = 13824, by three threads a site
/// @expect lanes.mask.store 512
/// **Costs.** 12 bytes a place, and 128 more that only unsorted rows touch; three places for two
/// sites. Sites far apart gain nothing. Declined: other modes than subm, more than 2^32 runs.
/// **Try.** Make a run 8 x 4 cells of a plane: a window then needs fewer entries, if it lies well.
/// How often does it not, and what becomes of the rank?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/run_table.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 384;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a tile: three threads each.
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< More work than these take: threads stride.

/// What the kernels tell each other and the host.
struct State {
  std::int32_t bad;       ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t unsorted;  ///< Not 0: the rows are not in the order of their sites.
};

/// Empties the table, copies coords [N][1 + ndim] and looks at their order. state must be zero.
/// Any one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    rulebook_submanifold_bitmap_hash_clear(runs::Problem grid, const std::int32_t* coords,
                                           runs::Table table, State* state,
                                           std::int32_t* out_coords) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  runs::clear(table, thread, threads);
  const bool in_order = runs::copy_sites<kCube>(grid, coords, thread, threads, out_coords);
  if (!in_order) state->unsorted = 1;
}

/// Enters all sites. Any one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    rulebook_submanifold_bitmap_hash_enter_sites(runs::Problem grid, const std::int32_t* coords,
                                                 runs::Table table, State* state) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  const bool sorted = state->unsorted == 0;
  runs::insert<kCube>(grid, coords, table, sorted, thread, threads, &state->bad);
}

/// nbr [KV][N] and mask [N][mask_words(KV)]. Any one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    rulebook_submanifold_bitmap_hash_find_neighbours(runs::Problem grid, const std::int32_t* coords,
                                                     runs::Table index, const State* state,
                                                     std::int32_t* nbr, std::int32_t* mask) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  const bool sorted = state->unsorted == 0;
  if constexpr (kCube) {
    __shared__ std::uint32_t mask_bits[runs::kPlanes][kRows];
    const int row_of_tile = static_cast<int>(threadIdx.x) % kRows;
    const int plane = static_cast<int>(threadIdx.x) / kRows;
    const auto sites = static_cast<unsigned>(grid.sites);
    for (unsigned first = blockIdx.x * kRows; first < sites; first += gridDim.x * kRows) {
      const unsigned row = first + static_cast<unsigned>(row_of_tile);
      if (row < sites)
        mask_bits[plane][row_of_tile] = runs::look_up_plane(
            grid, runs::cell_of<true>(grid, coords, row), index, sorted, plane, row, nbr);
      __syncthreads();  // the bits of all planes are there before one thread a row joins them
      if (plane == 0 && row < sites)
        mask[row] = static_cast<std::int32_t>(
            mask_bits[0][row_of_tile] | mask_bits[1][row_of_tile] | mask_bits[2][row_of_tile]);
      __syncthreads();  // they are joined before the next tile's bits overwrite them
    }
  } else {
    for (std::int64_t row = thread; row < grid.sites; row += threads)
      runs::look_up(grid, runs::cell_of<false>(grid, coords, row), index, sorted, row,
                    grid.tap_lines, nbr, mask);
  }
}

Declined supports(const RulebookProblem& book) { return runs::declined(book); }

/// Where everything stands in the workspace.
struct Workspace {
  State* state;
  runs::Table table;
  std::size_t bytes;  ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.table = runs::cut_table(book.sites, &cutter);
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
  const unsigned blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned find_blocks = kCube ? blocks_for(book.sites, kRows, kMaxBlocks) : blocks;
  check(cudaMemsetAsync(work.state, 0, sizeof(State), current_stream()));
  launch(rulebook_submanifold_bitmap_hash_clear<kCube>, {blocks, kThreads}, grid, coords,
         work.table, work.state, out_coords);
  launch(rulebook_submanifold_bitmap_hash_enter_sites<kCube>, {blocks, kThreads}, grid, coords,
         work.table, work.state);
  launch(rulebook_submanifold_bitmap_hash_find_neighbours<kCube>, {find_blocks, kThreads}, grid,
         coords, work.table, work.state, nbr, mask);
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
  return text(runs::kernel_in_words(book), ", ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_bitmap_hash = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
