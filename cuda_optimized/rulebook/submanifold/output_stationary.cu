/// @file output_stationary.cu
/// @brief rulebook, submanifold: output-stationary table; one thread fills the column of one
/// output.
///
/// - Before: cuda_naive/rulebook/dense_grid.cu
/// - After: linear_probing.cu, occupancy_bits.cu
/// - The taps of a site: shared/site_taps.cuh
/// - The same maths: cpu_reference/rulebook/neighbour_table.cpp
///
/// **The idea.** An output has at most one input at each tap. A table with a row for each tap and a
/// column for each output has an element for every possible pair, so no counter is needed to place
/// a pair. The thread of output m looks up all taps of its site, and stores the input row, or -1,
/// in column m. Bit k of the mask of output m is set if tap k found an input.
///
///     output      0   1   2   3
///     nbr[0]     -1  -1   0  -1      one thread fills one column;
///     nbr[1]     -1   0   1  -1      neighbouring threads store neighbouring elements
///     mask        0   2   3   0
///
/// **Expect.** The 0.79 million atomic additions of a sweep (sweep-subm3-table) disappear. 3.4
/// million cells are cleared and loaded at scattered addresses, 60 us each on an H200, and 13.6 MB
/// of table are stored: 0.15 ms in four launches, without host synchronization.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect lanes.workspace.atomic 512, one a site to fill the grid, none for a pair
/// @expect lanes.coords.load 5 * 4 * 512 = 10240, each site once in each of five loops
/// @expect lanes.nbr.store 27 * 512 = 13824, every tap of every site
/// **Costs.** 4 bytes a cell. Not supported: other modes than subm, grids of 2^30 cells and more.
/// **Try.** Store nbr as [N][KV]. Which stores of a warp are then coalesced?
#include <algorithm>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/site_taps.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr std::int32_t kEmpty = 0x7fffffff;   ///< An empty cell: greater than every row.
constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  ///< 4 GB of rows.

/// Clears each cell of grid [cells] that a tap of a site leads to, forgets errors, and copies
/// coords [N][1 + ndim]: all that has no order. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_output_stationary_prepare(RulebookProblem book,
                                                               const std::int32_t* coords,
                                                               std::int32_t* grid,
                                                               SiteErrors* errors,
                                                               std::int32_t* out_coords) {
  if (thread_of_grid() == 0) *errors = SiteErrors{};
  for (const std::int64_t row : grid_stride(book.sites)) {
    const GivenSite<kAxes> site(book, coords, row);
    visit_taps(book, site, 0, book.KV, [&](int /*k*/, bool inside, std::uint64_t key) {
      if (inside) grid[key] = kEmpty;
    });
  }
  const std::int64_t numbers = std::int64_t{book.sites} * (1 + book.ndim);
  for (const std::int64_t i : grid_stride(numbers)) out_coords[i] = coords[i];
}

/// Inserts all sites; those outside of the grid are counted instead. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_output_stationary_insert_sites(RulebookProblem book,
                                                                    const std::int32_t* coords,
                                                                    std::int32_t* grid,
                                                                    SiteErrors* errors) {
  for (const std::int64_t i : grid_stride(book.sites)) {
    const auto row = static_cast<std::int32_t>(i);
    const GivenSite<kAxes> site(book, coords, row);
    if (site.inside) {
      const std::uint64_t key = site.key(book);
      atomicMin(&grid[key], row);
    } else {
      atomicAdd(&errors->outside, 1);
      atomicMin(&errors->first_outside, row);
    }
  }
}

/// Counts the rows whose site is that of an earlier row. Any one-dimensional grid.
__global__ void rulebook_submanifold_output_stationary_find_duplicates(RulebookProblem book,
                                                                       const std::int32_t* coords,
                                                                       const std::int32_t* grid,
                                                                       SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    const Site site = site_of(book, coords, row);
    if (!is_inside(book, site)) continue;  // counted when it should have been inserted
    const auto key = static_cast<std::uint64_t>(key_of(book, book.shape, site));
    if (grid[key] != row) count_duplicate(errors, static_cast<std::int32_t>(row));
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_output_stationary_fill_table(RulebookProblem book,
                                                                  const std::int32_t* coords,
                                                                  const std::int32_t* grid,
                                                                  std::int32_t* nbr,
                                                                  std::int32_t* mask) {
  const std::int64_t N = book.sites;
  for (const std::int64_t row : grid_stride(N)) {
    const GivenSite<kAxes> site(book, coords, row);
    unsigned bits = 0;
    // visit_taps() stands for
    //
    //     for k in 0 ... KV - 1:  cell = site - pad + tap k * dilation, along each axis
    //       the lambda, with k, whether the cell lies in the grid, and its key (row-major number)
    //
    // without a division for each tap.
    visit_taps(book, site, 0, book.KV, [&](int k, bool inside, std::uint64_t key) {
      const std::int32_t there = inside ? grid[key] : kEmpty;
      const std::int32_t in_row = there != kEmpty ? there : -1;
      nbr[k * N + row] = in_row;
      if (in_row >= 0) bits |= 1u << k % 32;
      if (k % 32 == 31 || k == book.KV - 1) {
        mask[row * mask_words(book.KV) + k / 32] = static_cast<std::int32_t>(bits);
        bits = 0;
      }
    });
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only: other modes make new sites";
  if (key_count(book, book.shape) >= kMaxCells) return "grids of fewer than 2^30 cells only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  std::int32_t* grid;  ///< The row of each cell.
  SiteErrors* errors;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.grid = cutter.take<std::int32_t>(key_count(book, book.shape));
  work.errors = cutter.take<SiteErrors>(1);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and the form.
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const auto [grid, errors, bytes] = workspace_at(book, context.workspace_as<std::byte>());
  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});

  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned prepare_blocks = std::max(row_blocks, 1u);  // without sites there are errors, too
  constexpr decltype(&rulebook_submanifold_output_stationary_prepare<1>) kPrepare[kMaxAxes] = {
      rulebook_submanifold_output_stationary_prepare<1>,
      rulebook_submanifold_output_stationary_prepare<2>,
      rulebook_submanifold_output_stationary_prepare<3>,
      rulebook_submanifold_output_stationary_prepare<4>};
  constexpr decltype(&rulebook_submanifold_output_stationary_insert_sites<1>) kInsert[kMaxAxes] = {
      rulebook_submanifold_output_stationary_insert_sites<1>,
      rulebook_submanifold_output_stationary_insert_sites<2>,
      rulebook_submanifold_output_stationary_insert_sites<3>,
      rulebook_submanifold_output_stationary_insert_sites<4>};
  launch(kPrepare[book.ndim - 1], {prepare_blocks, kThreads}, book, coords, grid, errors,
         out_coords);
  launch(kInsert[book.ndim - 1], {row_blocks, kThreads}, book, coords, grid, errors);
  launch(rulebook_submanifold_output_stationary_find_duplicates, {row_blocks, kThreads}, book,
         coords, grid, errors);

  auto* nbr = arrays.create("nbr", {book.KV, book.sites});
  auto* mask = arrays.create("mask", {book.sites, mask_words(book.KV)});
  constexpr decltype(&rulebook_submanifold_output_stationary_fill_table<1>) kFill[kMaxAxes] = {
      rulebook_submanifold_output_stationary_fill_table<1>,
      rulebook_submanifold_output_stationary_fill_table<2>,
      rulebook_submanifold_output_stationary_fill_table<3>,
      rulebook_submanifold_output_stationary_fill_table<4>};
  launch(kFill[book.ndim - 1], {row_blocks, kThreads}, book, coords, grid, nbr, mask);
  create_form(book, book.sites, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  require_no_errors_on_device(book, arrays.coords, work.errors);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(book.ndim, book.ndim == 1 ? " axis, " : " axes, ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_output_stationary = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
