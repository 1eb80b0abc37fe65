/// @file occupancy_bits.cu
/// @brief rulebook, submanifold: occupancy bitmap; one bit is tested before the grid of rows is
/// read.
///
/// - Before: output_stationary.cu
/// - After: bit_grid.cu
/// - Cells in runs: shared/run_cells.cuh; look-ups of other kernels: shared/runs.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** 32 contiguous cells along x, a *run*, share a word of 32 bits. The bit of a cell
/// is tested before its row of 4 bytes is read.
///
///     cells of a run    x = 32 .. 63        . . # # . # . .  ...
///     words[run]        bits 0 .. 31        0 0 1 1 0 1 0 0  ...    cleared by each call
///     rows[32 * run]                        ? ? 7 8 ? 9 ? ?  ...    never cleared
///     taps of a line                            ^ ^ ^               one word, three answers
///
/// The thread keeps the word of the last run: nine loads answer 27 taps, or 18 where the window
/// spans two runs. atomicOr returns the previous word: a bit that was set shows a duplicate.
///
/// **Expect.** In a sweep (sweep-subm3-table) a memset clears 25.6 MB in 10 us on an H200.
/// Insertion takes 5 us, the loads of 1.1 million words (L2) and 0.79 million rows (DRAM) 20 us: 40
/// us.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect footprint.workspace 4 * 144 + 4 * 512 = 2624, words of all runs, rows of sites alone
/// @expect lanes.coords.load 4 * 512 + 512 + 512 = 3072, to copy; 16 bytes to enter, to look up
/// @expect lanes.workspace.atomic 512, one a site
/// @expect launches 2
/// **Costs.** 33 bits a cell. Not supported: other modes than subm, more than 2^25 runs (4 GB).
/// **Try.** Leave out the test, and clear the rows instead. Which of the two saves more time?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
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
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr std::int64_t kMaxRuns = std::int64_t{1} << 25;

/// The grid: an index for look_up().
struct BitGrid {
  using Answer = std::uint32_t;

  std::uint32_t* words;  ///< [runs]: a bit for each cell, a word for each run
  std::int32_t* rows;    ///< [runs][kCells]: by cell; valid only where its bit is set

  struct Found {
    std::uint32_t word;
    std::uint32_t run;
  };

  __device__ Answer ask(std::uint32_t run) const { return words[run]; }
  __device__ Found settle(std::uint32_t run, Answer word) const { return {word, run}; }
  __device__ std::int32_t row_at(const Found& found, int bit, bool /*sorted*/) const {
    if ((found.word >> bit & 1) == 0) return -1;
    return rows[std::int64_t{found.run} * runs::kCells + bit];
  }
};

/// Copies coords [N][1 + ndim], sets the bits of all sites and stores their rows. Words and state
/// must be zero. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void rulebook_submanifold_occupancy_bits_set_bits(runs::Problem grid,
                                                             const std::int32_t* coords,
                                                             BitGrid bits, State* state,
                                                             std::int32_t* out_coords) {
  const std::int64_t numbers = std::int64_t{grid.sites} * (1 + grid.ndim);
  for (const std::int64_t i : grid_stride(numbers)) out_coords[i] = coords[i];
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (row < grid.sites && !site.inside) atomicAdd(&state->bad, 1);
    if (!site.inside) return;
    // Duplicate sites race here: the result is then not used.
    bits.rows[std::int64_t{site.run} * runs::kCells + site.bit] = static_cast<std::int32_t>(row);
    const std::uint32_t old = atomicOr(&bits.words[site.run], 1u << site.bit);
    if ((old >> site.bit & 1) != 0) atomicAdd(&state->bad, 1);
  });
}

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <bool kCube>
__global__ void rulebook_submanifold_occupancy_bits_find_neighbours(runs::Problem grid,
                                                                    const std::int32_t* coords,
                                                                    BitGrid bits, std::int32_t* nbr,
                                                                    std::int32_t* mask) {
  constexpr bool sorted = false;  // a row is loaded, whatever the order of the input
  if constexpr (kCube) {
    for (const std::int64_t row : grid_stride(grid.sites)) {
      const runs::Cell cell = runs::cell_of<true>(grid, coords, row);
      std::uint32_t found_taps = 0;
      BitGrid::Found held{0, ~0u};  // of no run
      for (int k = 0; k < 27; ++k) {
        // The coordinates of a row outside of the grid are arbitrary and may overflow.
        runs::Cell at = cell.is_inside(grid) ? cell : runs::Cell{-1, {}};
        at.at[1] += k / 9 - 1;
        at.at[2] += k / 3 % 3 - 1;
        at.at[3] += k % 3 - 1;
        std::int32_t neighbour = -1;
        if (at.is_inside(grid)) {
          const std::uint32_t run = at.run(grid);
          if (run != held.run) held = bits.settle(run, bits.ask(run));  // nine times, or 18
          neighbour = bits.row_at(held, at.bit(), sorted);
        }
        nbr[std::int64_t{k} * grid.sites + row] = neighbour;
        if (neighbour >= 0) found_taps |= 1u << k;
      }
      mask[row] = static_cast<std::int32_t>(found_taps);
    }
  } else {
    for (std::int64_t row = thread_of_grid(); row < grid.sites; row += threads_of_grid())
      runs::look_up(grid, runs::cell_of<false>(grid, coords, row), bits, sorted, row,
                    grid.tap_lines, nbr, mask);
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only";
  if (runs::run_count(book) > kMaxRuns) return "grids of at most 2^25 runs of 32 cells only";
  return {};
}

/// Layout of the workspace.
struct Workspace {
  BitGrid bits;
  State* state;
  std::size_t zeroed_bytes;  ///< Of words and state, which must be zero before the first launch.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.bits.words = cutter.take<std::uint32_t>(runs::run_count(book));
  work.state = cutter.take<State>(1);
  work.zeroed_bytes = cutter.bytes();
  work.bits.rows = cutter.take<std::int32_t>(runs::run_count(book) * runs::kCells);
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
  check(cudaMemsetAsync(bits.words, 0, work.zeroed_bytes, current_stream()));
  launch(rulebook_submanifold_occupancy_bits_set_bits<kCube>, {row_blocks, kThreads}, grid, coords,
         bits, work.state, out_coords);
  launch(rulebook_submanifold_occupancy_bits_find_neighbours<kCube>, {row_blocks, kThreads}, grid,
         coords, bits, nbr, mask);
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

extern const Implementation<RulebookArrays> submanifold_occupancy_bits = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
