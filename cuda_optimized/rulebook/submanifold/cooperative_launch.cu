/// @file cooperative_launch.cu
/// @brief rulebook, submanifold: cooperative launch; clear, insert and look up in one kernel.
///
/// - Before: bit_grid.cu
/// - The two indices: shared/run_index.cuh; the look-ups: shared/runs.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** An index must be empty before the first insertion, and complete before the first
/// look-up. The end of a kernel guarantees that, but each launch costs host time and a gap on the
/// device. A *cooperative* launch keeps all blocks of its grid resident, so a kernel can contain
/// grid-wide barriers:
///
///     clear, copy, compare   |   insert the sites   |   look up, write nbr and mask
///       all blocks         sync     all blocks     sync     all blocks
///
/// The first barrier also makes known whether the input is sorted. If it is, and the grid is small
/// enough, each run of 32 cells has a word and a first row at its own index, and a row is counted
/// from bits. Otherwise a hash table holds the runs that have sites.
///
/// **Expect.** 17 us on an H200 for sweep-subm3-table, 3 us of them for two barriers, and 65 us for
/// large-subm3-table. All sizes are known in advance and bad rows are only counted until finish(),
/// so a CUDA graph can record the launch.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 1, with all three steps
/// @expect lanes.nbr.store 27 * 512 = 13824
/// @expect lanes.mask.store 512
/// **Costs.** A barrier waits for the slowest block, and a cooperative grid starts only when all of
/// its blocks fit. Not supported: other modes than subm, more than 2^32 runs.
/// **Try.** Launch one block more than fits. Which error is reported, and when?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/run_index.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 768;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a tile: three threads each.
constexpr int kMaxBlocks = 4096;                 ///< More than are resident at once on any device.

/// State shared by the blocks and the host.
struct State {
  std::int32_t bad;                   ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t unsorted[kMaxBlocks];  ///< By block: nonzero if it has found a row out of order.
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

/// Clears the index, copies coords [N][1 + ndim] and looks at their order.
template <bool kCube>
__device__ void begin(const runs::Problem& grid, const std::int32_t* coords,
                      const runs::Table& table, const runs::RunGrid& run_grid, std::int64_t groups,
                      State* state, std::int32_t* out_coords) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  runs::clear(run_grid, groups, thread, threads);
  if (groups == 0) runs::clear(table, thread, threads);
  const bool in_order = runs::copy_sites<kCube>(grid, coords, thread, threads, out_coords);
  const int out_of_order = __syncthreads_or(in_order ? 0 : 1);  // a barrier that also combines
  if (threadIdx.x == 0) state->unsorted[blockIdx.x] = out_of_order;
  if (thread == 0) state->bad = 0;
}

/// Inserts all sites. @param dense they are sorted, and the run grid takes them
template <bool kCube>
__device__ void enter_sites(const runs::Problem& grid, const std::int32_t* coords,
                            const runs::Table& table, const runs::RunGrid& run_grid, bool sorted,
                            bool dense, State* state) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  if (dense) {
    runs::insert_sorted<kCube>(grid, coords, run_grid, thread, threads);
  } else {
    runs::insert<kCube>(grid, coords, table, sorted, thread, threads, &state->bad);
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)].
/// @param mask_bits shared memory of the block
template <bool kCube, class Index>
__device__ void find_neighbours(const runs::Problem& grid, const std::int32_t* coords,
                                const Index& index, bool sorted,
                                std::uint32_t (&mask_bits)[runs::kPlanes][kRows], std::int32_t* nbr,
                                std::int32_t* mask) {
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  if constexpr (kCube) {
    const int row_of_tile = static_cast<int>(threadIdx.x) % kRows;
    const int plane = static_cast<int>(threadIdx.x) / kRows;
    const auto sites = static_cast<unsigned>(grid.sites);
    for (unsigned first = blockIdx.x * kRows; first < sites; first += gridDim.x * kRows) {
      const unsigned row = first + static_cast<unsigned>(row_of_tile);
      // look_up_plane() stands for
      //
      //     for the 9 taps k of the plane:  cell = site + (k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1)
      //       nbr[k][row] = the row of the cell in the index, or -1
      //
      // with one word for the three taps of a line, and all loads of a plane in flight together.
      if (row < sites)
        mask_bits[plane][row_of_tile] = runs::look_up_plane(
            grid, runs::cell_of<true>(grid, coords, row), index, sorted, plane, row, nbr);
      __syncthreads();  // the bits of all planes are stored before one thread per row joins them
      if (plane == 0 && row < sites)
        mask[row] = static_cast<std::int32_t>(
            mask_bits[0][row_of_tile] | mask_bits[1][row_of_tile] | mask_bits[2][row_of_tile]);
      __syncthreads();  // the bits are joined before those of the next tile overwrite them
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
    rulebook_submanifold_cooperative_launch(runs::Problem grid, const std::int32_t* coords,
                                            runs::Table table, runs::RunGrid run_grid,
                                            std::int64_t groups, State* state,
                                            std::int32_t* out_coords, std::int32_t* nbr,
                                            std::int32_t* mask, std::int32_t* ever_bad) {
  __shared__ std::uint32_t mask_bits[runs::kPlanes][kRows];
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();

  begin<kCube>(grid, coords, table, run_grid, groups, state, out_coords);
  all_blocks.sync();  // the index is empty and the flags are set before any site is inserted

  int any = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads)
    any |= state->unsorted[block];
  const bool sorted = __syncthreads_or(any) == 0;
  const bool dense = sorted && groups > 0;
  if (!dense && groups > 0) {  // the same for all blocks
    runs::clear(table, thread, threads);
    all_blocks.sync();  // the table is empty before any site is inserted
  }
  enter_sites<kCube>(grid, coords, table, run_grid, sorted, dense, state);
  all_blocks.sync();  // all sites are in the table before any is looked up

  if (thread == 0 && state->bad != 0) *ever_bad = 1;
  if (dense) {
    find_neighbours<kCube>(grid, coords, run_grid, true, mask_bits, nbr, mask);
  } else {
    find_neighbours<kCube>(grid, coords, table, sorted, mask_bits, nbr, mask);
  }
}

Declined supports(const RulebookProblem& book) { return runs::declined(book); }

/// Layout of the workspace.
struct Workspace {
  State* state;
  runs::Table table;
  runs::RunGrid run_grid;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.table = runs::cut_table(book.sites, &cutter);
  work.run_grid = runs::cut_run_grid(book, &cutter);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

template <bool kCube>
void launch_steps(const RulebookProblem& book, const std::int32_t* coords, const Workspace& work,
                  std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  static const int most_blocks = std::min(
      resident_blocks(rulebook_submanifold_cooperative_launch<kCube>, kThreads), kMaxBlocks);
  const unsigned blocks = blocks_for(book.sites, kCube ? kRows : kThreads, most_blocks);
  launch_cooperatively(rulebook_submanifold_cooperative_launch<kCube>, {blocks, kThreads},
                       runs::Problem(book), coords, work.table, work.run_grid,
                       runs::group_count(book), work.state, out_coords, nbr, mask, ever_bad());
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
  return text(runs::kernel_in_words(book), ", ", runs::index_in_words(book), ", ",
              form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_cooperative_launch = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
