/// @file ranked_bit_grid.cu
/// @brief rulebook, submanifold: the rows of all runs side by side, in places that count on.
///
/// - Before: paged_bit_grid.cu
/// - After: paged_bricks.cu
/// - The grid: run_grid.cuh, run_bits.cuh; the look-ups: runs.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** A page of 32 rows a run is mostly empty: in a sweep three are used. The rows of
/// all runs fit side by side, without a gap, if each run knows its first *place*: then a site's
/// place counts on from it, as rows do where sites are sorted.
///
///     rows      0: cell 9   1: cell 3   2: cell 8   3: cell 2         as they come
///     words     . . # # | . . . . | # # . .                           4 cells a run, here
///     first         0                 2                               places of a run's first
///     rows      3  1  |  2  0                                         by place
///
/// Once all bits are set, the thread of a run's lowest site takes as many places as the word has
/// bits, from one counter. Which ones does not matter, and the table does not tell. A block adds up
/// what its threads want, and asks once. Then each row goes to its place: first + bits below.
///
///     clear, copy, compare | set bits | take places | list rows | look up       barriers: |
///
/// **Expect.** On an H200, sorted rows as in fused.cu. A sweep in a scanner's order
/// (scanned-subm3-table) takes 28 us: a barrier and a step more than in paged_bit_grid.cu, some 3
/// us, and its rows in 0.5 MB, not in 42 thousand lines of 128 bytes. shuffled-subm3-table 32 us.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 1
/// @expect lanes.coords.load 2 * 512 - 1 + 3 * 512 + 3 * 512 = 4095, bits, places, rows
/// @expect lanes.nbr.store 27 * 512 = 13824
/// **Costs.** As paged_bit_grid.cu, with 4 bytes a site instead of 128.
/// **Try.** Count the places instead of asking for them: a sum over all words. What would the rows
/// by place be then?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/run_bits.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 768;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a tile: three threads each.
constexpr int kMaxBlocks = 4096;                 ///< More than are resident at once on any device.

/// What the blocks tell each other and the host.
struct State {
  std::int32_t bad;                   ///< Rows outside of the grid, and rows that repeat a site.
  std::uint32_t placed;               ///< Places that runs have taken.
  std::int32_t unsorted[kMaxBlocks];  ///< By block: not 0 where it met a row out of order.
};

/// A grid of runs whose sites have places side by side: an index for look_up().
struct RankedGrid : runs::RunGrid {
  std::int32_t* rows;  ///< [sites]: by place; only where sites are not sorted

  /// As RunGrid's, by way of the place.
  __device__ std::int32_t row_at(const Found& found, int bit, bool sorted) const {
    const std::int32_t place = runs::RunGrid::row_at(found, bit, sorted);
    return sorted || place < 0 ? place : rows[place];
  }
};

/// A word of the host's memory that kernels can write to: not 0 once any run of the process has met
/// bad rows. So it need not be emptied before a run, and runs in other streams may share it.
std::int32_t* ever_bad() {
  static std::int32_t* const word = [] {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, sizeof(std::int32_t), cudaHostAllocPortable));
    *static_cast<std::int32_t*>(memory) = 0;
    return static_cast<std::int32_t*>(memory);
  }();
  return word;
}

/// Empties the index, copies coords [N][1 + ndim] and looks at their order.
template <bool kCube>
__device__ void begin(const runs::Problem& grid, const std::int32_t* coords,
                      const RankedGrid& index, std::int64_t groups, State* state,
                      std::int32_t* out_coords) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  runs::clear(index, groups, thread, threads);
  const bool in_order = runs::copy_sites<kCube>(grid, coords, thread, threads, out_coords);
  const int out_of_order = __syncthreads_or(in_order ? 0 : 1);  // a barrier that also combines
  if (threadIdx.x == 0) state->unsorted[blockIdx.x] = out_of_order;
  if (thread == 0) state->bad = 0, state->placed = 0;
}

/// Gives each run that has sites as many places, which RunGrid::first_rows tells.
template <bool kCube>
__device__ void take_places(const runs::Problem& grid, const std::int32_t* coords,
                            const RankedGrid& index, State* state) {
  __shared__ int warp_sums[kThreads / 32];
  __shared__ std::uint32_t start;
  const auto all = static_cast<std::uint32_t>(grid.sites);
  for (std::int64_t first = std::int64_t{blockIdx.x} * kThreads; first < grid.sites;
       first += threads_of_grid<kThreads>()) {
    const std::int64_t row = first + threadIdx.x;
    runs::Cell cell{-1, {}};
    if (row < grid.sites) cell = runs::cell_of<kCube>(grid, coords, row);
    std::uint32_t run = 0;
    int places = 0;
    if (cell.is_inside(grid)) {
      run = cell.run(grid);
      const std::uint32_t word = index.words[run];
      if ((word & ((1u << cell.bit()) - 1)) == 0) places = __popc(word);
    }
    int total;
    const int before = block_exclusive_sum<kThreads / 32>(places, warp_sums, &total);
    if (threadIdx.x == 0) start = atomicAdd(&state->placed, static_cast<std::uint32_t>(total));
    __syncthreads();  // the start is known; it is overwritten behind the next sum's barriers
    if (places == 0) continue;
    // A lowest site that is there twice asks twice, for more places than there are: bad input, of
    // which the host does not know yet. Nothing may be stored behind the last place.
    const std::uint32_t own = start + static_cast<std::uint32_t>(before);
    const std::uint32_t last = all - static_cast<std::uint32_t>(places);
    index.first_rows[run] = static_cast<std::int32_t>(own < last ? own : last);
  }
}

/// RankedGrid::rows.
template <bool kCube>
__device__ void list_rows(const runs::Problem& grid, const std::int32_t* coords,
                          const RankedGrid& index) {
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (!site.inside) return;
    // Of several rows of one site any may win here: the result is not used.
    index.rows[index.rank_at(index.settle(site.run, index.ask(site.run)), site.bit)] =
        static_cast<std::int32_t>(row);
  });
}

/// nbr [KV][N] and mask [N][mask_words(KV)].
template <bool kCube>
__device__ void find_neighbours(const runs::Problem& grid, const std::int32_t* coords,
                                const RankedGrid& index, bool sorted, std::int32_t* nbr,
                                std::int32_t* mask) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
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

/// All of it. A cooperative, one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    build(runs::Problem grid, const std::int32_t* coords, RankedGrid index, std::int64_t groups,
          State* state, std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask,
          std::int32_t* ever_bad) {
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();

  begin<kCube>(grid, coords, index, groups, state, out_coords);
  all_blocks.sync();  // the index is empty and the flags are set before sites enter

  int any = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads)
    any |= state->unsorted[block];
  const bool sorted = __syncthreads_or(any) == 0;
  if (sorted) {  // the same for all blocks
    runs::insert_sorted<kCube>(grid, coords, index, thread, threads);
  } else {
    runs::insert_bits<kCube>(grid, coords, index, &state->bad, [](std::uint32_t, std::int64_t) {});
    all_blocks.sync();  // all bits are set before any are counted
    take_places<kCube>(grid, coords, index, state);
    all_blocks.sync();  // all runs have places before rows go there
    list_rows<kCube>(grid, coords, index);
  }
  all_blocks.sync();  // all sites are in the index before any is looked up

  if (thread == 0 && state->bad != 0) *ever_bad = 1;
  find_neighbours<kCube>(grid, coords, index, sorted, nbr, mask);
}

Declined supports(const RulebookProblem& book) { return runs::declined_by_grid(book); }

/// Groups of 4 words, of which the grid has whole ones.
std::int64_t groups_of(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(runs::run_count(book), 4);
}

/// Where everything stands in the workspace.
struct Workspace {
  State* state;
  RankedGrid index;
  std::size_t bytes;  ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.index.words = cutter.take<std::uint32_t>(groups_of(book) * 4);
  work.index.first_rows = cutter.take<std::int32_t>(groups_of(book) * 4);
  work.index.rows = cutter.take<std::int32_t>(book.sites);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

template <bool kCube>
void launch_steps(const RulebookProblem& book, const std::int32_t* coords, const Workspace& work,
                  std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  static const int most_blocks = std::min(resident_blocks(build<kCube>, kThreads), kMaxBlocks);
  const unsigned blocks = blocks_for(book.sites, kCube ? kRows : kThreads, most_blocks);
  launch_cooperatively(build<kCube>, {blocks, kThreads}, runs::Problem(book), coords, work.index,
                       groups_of(book), work.state, out_coords, nbr, mask, ever_bad());
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
  if (*ever_bad() == 0) return;  // this run's count is 0, too: no copy from the device
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  runs::require_no_bad_rows(book, arrays.coords, &work.state->bad);
}

std::string choice_in_words(const RulebookProblem& book) {
  if (book.sites == 0) return text("no sites, ", form_in_words(book));
  return text(runs::kernel_in_words(book), ", ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> ranked_bit_grid = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
