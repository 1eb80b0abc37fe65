/// @file paged_bit_grid.cu
/// @brief rulebook, submanifold: sites in any order, in the grid of sorted ones, by pages of rows.
///
/// - Before: cooperative_launch.cu
/// - The grid: shared/run_grid.cuh, shared/run_bits.cuh; the look-ups: shared/runs.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** cooperative_launch.cu has a fast index for sorted rows, and a hash table for all
/// others, as a scanner gives them. But the words of the grid do not care in which order bits are
/// set. Order was only needed for rows, which are counted from that of a run's first site. Rows in
/// any order can be listed instead: a page for each run, with room for the row of each of its
/// cells.
///
///     rows      0: cell 9   1: cell 3   2: cell 8   3: cell 2         as they come
///     words     . . # # | . . . . | # # . .                           4 cells a run, here
///     pages         1                 0                               who set the first bit
///     page 0    2  0  -  -            page 1    -  -  3  1            rows, by cell
///
/// Who gives out pages? Nobody: there is one for each row, and a run takes that of the row that set
/// its first bit. atomicOr tells who that was. Most pages are never touched.
///
///     clear, copy, compare | set bits, take pages | list rows | look up         barriers: |
///
/// **Expect.** On an H200, sorted rows as in cooperative_launch.cu, with row numbers as there. A
/// sweep in a scanner's order (scanned-subm3-table) takes 27 us instead of 31: as many barriers,
/// but no table to clear, no chain to follow. In no order (shuffled-subm3-table): 32 us.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 1
/// @expect lanes.coords.load 2 * 512 - 1 + 2 * 512 + 3 * 512 = 3583, bits, rows
/// @expect lanes.nbr.store 27 * 512 = 13824
/// **Costs.** Memory and time by the volume: 8 bytes for 32 cells, half of them cleared; and 128
/// bytes a site. Declined: other modes than subm, more than 2^26 runs of 32 cells.
/// **Try.** Which page a run gets is a race. Why is the table the same each time, and why does no
/// page need to be cleared?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/run_bits.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 768;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a tile: three threads each.
constexpr int kMaxBlocks = 4096;                 ///< More than are resident at once on any device.

/// What the blocks tell each other and the host.
struct State {
  std::int32_t bad;                   ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t unsorted[kMaxBlocks];  ///< By block: not 0 where it met a row out of order.
};

/// A grid of runs, each with a page for its rows: an index for look_up().
struct PagedGrid : runs::RunGrid {
  std::int32_t* rows;  ///< [sites][runs::kCells]: pages; only where sites are not sorted

  /// Where the row of a cell of a found run stands, if it is a site.
  __device__ std::int32_t* place_of(const Found& found, int bit) const {
    return &rows[std::int64_t{first_row(found)} * runs::kCells + bit];
  }
  /// As RunGrid's, of sites in any order, too.
  __device__ std::int32_t row_at(const Found& found, int bit, bool sorted) const {
    if ((found.word >> bit & 1) == 0) return -1;
    return sorted ? rank_at(found, bit) : *place_of(found, bit);
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
__device__ void begin(const runs::Problem& grid, const std::int32_t* coords, const PagedGrid& index,
                      std::int64_t groups, State* state, std::int32_t* out_coords) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  runs::clear(index, groups, thread, threads);
  const bool in_order = runs::copy_sites<kCube>(grid, coords, thread, threads, out_coords);
  const int out_of_order = __syncthreads_or(in_order ? 0 : 1);  // a barrier that also combines
  if (threadIdx.x == 0) state->unsorted[blockIdx.x] = out_of_order;
  if (thread == 0) state->bad = 0;
}

/// Writes each row to its place in the page of its run.
template <bool kCube>
__device__ void list_rows(const runs::Problem& grid, const std::int32_t* coords,
                          const PagedGrid& index) {
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (!site.inside) return;
    // Of several rows of one site any may win here: the result is not used.
    *index.place_of({0, site.run}, site.bit) = static_cast<std::int32_t>(row);
  });
}

/// nbr [KV][N] and mask [N][mask_words(KV)].
template <bool kCube>
__device__ void find_neighbours(const runs::Problem& grid, const std::int32_t* coords,
                                const PagedGrid& index, bool sorted, std::int32_t* nbr,
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
    rulebook_submanifold_paged_bit_grid(runs::Problem grid, const std::int32_t* coords,
                                        PagedGrid index, std::int64_t groups, State* state,
                                        std::int32_t* out_coords, std::int32_t* nbr,
                                        std::int32_t* mask, std::int32_t* ever_bad) {
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
    runs::insert_bits<kCube>(grid, coords, index, &state->bad,
                             [&](std::uint32_t run, std::int64_t row) {
                               index.first_rows[run] = static_cast<std::int32_t>(row);  // its page
                             });
    all_blocks.sync();  // all runs have pages before rows go there
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
  PagedGrid index;
  std::size_t bytes;  ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.index.words = cutter.take<std::uint32_t>(groups_of(book) * 4);
  work.index.first_rows = cutter.take<std::int32_t>(groups_of(book) * 4);
  work.index.rows = cutter.take<std::int32_t>(std::int64_t{book.sites} * runs::kCells);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

template <bool kCube>
void launch_steps(const RulebookProblem& book, const std::int32_t* coords, const Workspace& work,
                  std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  static const int most_blocks =
      std::min(resident_blocks(rulebook_submanifold_paged_bit_grid<kCube>, kThreads), kMaxBlocks);
  const unsigned blocks = blocks_for(book.sites, kCube ? kRows : kThreads, most_blocks);
  launch_cooperatively(rulebook_submanifold_paged_bit_grid<kCube>, {blocks, kThreads},
                       runs::Problem(book), coords, work.index, groups_of(book), work.state,
                       out_coords, nbr, mask, ever_bad());
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

extern const Implementation<RulebookArrays> submanifold_paged_bit_grid = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
