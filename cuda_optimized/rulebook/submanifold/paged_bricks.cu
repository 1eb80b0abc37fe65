/// @file paged_bricks.cu
/// @brief rulebook, submanifold, unsorted sites: paging; the first site of a brick allocates its
/// page.
///
/// - Before: bit_grid.cu
/// - The index and its look-ups: shared/bricks.cuh; rows of coords: shared/run_cells.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Here the first site of a *brick* of 2 x 8 x 8 cells, two boards of bits, allocates
/// a *page* for it by compare-and-swap; later sites get the page from the same instruction. Sites
/// store bits and rows at once, in any order.
///
///     bricks    . 4 . . 1 .        page + 1 of each brick; a dot is 0: the brick has no site
///     page 0    boards of the fifth brick, and 2 x 64 rows, few of them written
///     page 3    those of the second, whose first site was that of row 3
///
/// Only the boards are cleared: 8.4 MB for a sweep, instead of 25.6 MB of words for runs of 32
/// cells. The 27 taps span three bricks on average.
///
///     clear, copy | allocate pages, set bits, store rows | look up       barriers: |
///
/// **Expect.** 16 us on an H200 for a sweep in scanner order or sorted, 23 us in random order: two
/// barriers, nine loads in flight.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 1
/// @expect lanes.coords.load 512 + 512 = 1024, to copy, and to hold from step to step
/// @expect lanes.nbr.store 27 * 512 = 13824
/// **Costs.** 528 bytes a site, few of them accessed. Up to 2^24 bricks and 2^25 sites.
/// **Try.** Make a brick four boards deep. How much is cleared?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/bricks.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kAtOnce = 9;     ///< Rows of neighbours that are loaded before one is stored.
constexpr int kThreads = 480;  ///< Of a block,
constexpr int kBlocks = 2;     ///< of which a multiprocessor should hold so many.

/// State shared by the blocks and the host.
struct State {
  std::int32_t bad;  ///< Rows outside of the grid, and rows that repeat a site.
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

/// nbr [27][N] and mask [N]: `thread` of `threads` does its share.
/// @param cell the thread's first row of coords @param page of that one's brick
__device__ void find_cube(const runs::Problem& grid, const std::int32_t* coords,
                          const bricks::Index& index, std::int64_t thread, std::int64_t threads,
                          runs::Cell cell, std::int32_t page, std::int32_t* nbr,
                          std::int32_t* mask) {
  for (std::int64_t row = thread; row < grid.sites; row += threads) {
    if (row != thread) {
      cell = runs::cell_of<true>(grid, coords, row);
      page = 0;
    }
    // CubeOfTaps stands for
    //
    //     for the 27 taps k:  cell = site + (k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1)
    //       page = pages[brick of the cell];  if (page != 0 and the cell's bit is set in its board)
    //         nbr[k][row] = rows[page][cell of the brick], else -1
    //
    // The constructor loads the boards of the two to eight bricks that the window overlaps, each
    // once; load_rows() loads the rows of nine taps, all in flight together.
    const bricks::CubeOfTaps<27> taps(grid, cell, index, 0, static_cast<std::int32_t>(row), page);
#pragma unroll
    for (int first = 0; first < 27; first += kAtOnce) {
      std::int32_t rows[kAtOnce];
      taps.load_rows(index, first, rows);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) nbr[std::int64_t{first + i} * grid.sites + row] = rows[i];
    }
    mask[row] = static_cast<std::int32_t>(taps.found());
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)], of any taps.
__device__ void find_taps(const runs::Problem& grid, const std::int32_t* coords,
                          const bricks::Index& index, std::int32_t* nbr, std::int32_t* mask) {
  const int words = mask_words(grid.KV);
  for (const std::int64_t row : grid_stride<kThreads>(grid.sites)) {
    const runs::Cell cell = runs::cell_of<false>(grid, coords, row);
    std::uint64_t bits = 0;  // of taps from 32 * word on
    int word = 0;
    for (int first = 0; first < grid.KV; first += bricks::AnyTaps::kTaps) {
      const bricks::AnyTaps taps(grid, cell, index, first);
      std::int32_t rows[bricks::AnyTaps::kTaps];
      taps.load_rows(index, 0, rows);
      const int end = first + bricks::AnyTaps::kTaps;
      for (int k = first; k < end && k < grid.KV; ++k)
        nbr[std::int64_t{k} * grid.sites + row] = rows[k - first];
      bits |= std::uint64_t{taps.found()} << (first - 32 * word);
      for (; word < words && (end >= 32 * (word + 1) || end >= grid.KV); ++word, bits >>= 32)
        mask[row * words + word] = static_cast<std::int32_t>(bits);
    }
  }
}

/// All of it. A cooperative, one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads, kCube ? kBlocks : 1)
    rulebook_submanifold_paged_bricks(runs::Problem grid, const std::int32_t* coords,
                                      bricks::Index index, State* state, std::int32_t* out_coords,
                                      std::int32_t* nbr, std::int32_t* mask,
                                      std::int32_t* ever_bad) {
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = thread_of_grid<kThreads>();
  const std::int64_t threads = threads_of_grid<kThreads>();
  // Of the thread's first row; most sweeps have no second one.
  const runs::Cell cell = bricks::cell_or_none<kCube>(grid, coords, thread);

  bricks::begin<kCube>(grid, coords, index, thread, threads, out_coords);
  if (thread == 0) state->bad = 0;
  all_blocks.sync();  // the index is empty before any site is inserted

  const std::int32_t page =
      bricks::enter<kCube>(grid, coords, index, thread, threads, cell, &state->bad);
  all_blocks.sync();  // all sites are in the index before any is looked up

  if (thread == 0 && state->bad != 0) *ever_bad = 1;
  if constexpr (kCube) {
    find_cube(grid, coords, index, thread, threads, cell, page, nbr, mask);
  } else {
    find_taps(grid, coords, index, nbr, mask);
  }
}

Declined supports(const RulebookProblem& book) { return bricks::declined(book); }

/// Layout of the workspace.
struct Workspace {
  State* state;
  bricks::Index index;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.index = bricks::cut_index(book, &cutter);
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
      resident_blocks(rulebook_submanifold_paged_bricks<kCube>, kThreads);
  const unsigned blocks = blocks_for(book.sites, kThreads, most_blocks);
  launch_cooperatively(rulebook_submanifold_paged_bricks<kCube>, {blocks, kThreads},
                       runs::Problem(book), coords, work.index, work.state, out_coords, nbr, mask,
                       ever_bad());
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

extern const Implementation<RulebookArrays> submanifold_paged_bricks = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
