/// @file symmetric.cu
/// @brief rulebook, submanifold: symmetry; half of the taps are looked up, and none for the centre.
///
/// - Before: cuda_naive/rulebook/dense_grid.cu
/// - After: aggregated_counters.cu
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** If site b is at tap k of site a, then a is at the opposite tap of b, KV-1-k. One
/// look-up gives two pairs. At the centre tap each site is its own neighbour.
///
///     taps of a 3 x 3 kernel      looked up: 0 1 2 3       (0, a, b)  implies    (8, b, a)
///         0 1 2                   centre:    4             (1, a, b)             (7, b, a)
///         3 4 5                   mirrored:  5 6 7 8       ...
///         6 7 8
///
/// This holds for every odd kernel and any dilation, if the sites are distinct. The mirrored half
/// has no lists: a pair is written twice when the pairs are packed.
///
///     pairs   | tap 0 | tap 1 | tap 2 | tap 3 |  centre  | 5 | 6 | 7 | 8 |
///             from the lists, as they are      all rows   the lists of 3 2 1 0, swapped
///
/// **Expect.** (KV-1)/2 look-ups a site: 13 of 27. Fewer than half of the atomics of dense_grid.cu,
/// half of its lists, and 14 cells to clear for each site instead of 27.
/// @expect lanes.workspace.atomic 512 + (3838 - 512) / 2 = 2175, one a site, one for two pairs
/// @expect lanes.coords.load 4 * (14 + 13 + 3) * 512 = 61440, 14 cells to clear, 13 to look up
/// @expect lanes.pairs.store 3 * 3838 = 11514, as before
/// **Costs.** As dense_grid.cu: 4 bytes a cell, lists with room for all, not deterministic.
/// **Try.** Look up the taps after the centre instead of those before it. Which lines change?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr std::int32_t kEmpty = 0x7fffffff;   ///< An empty cell: greater than every row.
constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  ///< 4 GB of rows.

/// Taps before the centre, which is tap number half_of() itself.
__host__ __device__ int half_of(const RulebookProblem& book) { return book.KV / 2; }

/// Tap and site of a thread's work: neighbouring threads have neighbouring sites at the same tap.
struct Item {
  int k;
  std::int32_t row;
};
__device__ Item item_of(const RulebookProblem& book, std::int64_t i) {
  return {static_cast<int>(i / book.sites), static_cast<std::int32_t>(i % book.sites)};
}

/// Clears each cell that a tap up to the centre leads to. coords [N][1 + ndim], grid [cells]. Any
/// one-dimensional grid.
__global__ void rulebook_submanifold_symmetric_clear_cells(RulebookProblem book,
                                                           const std::int32_t* coords,
                                                           std::int32_t* grid) {
  for (const std::int64_t i : grid_stride(std::int64_t{half_of(book) + 1} * book.sites)) {
    const Item item = item_of(book, i);
    Site out;
    if (output_of(book, site_of(book, coords, item.row), tap_of(book, item.k), &out))
      grid[key_of(book, book.shape, out)] = kEmpty;
  }
}

/// Writes each row to its site's cell. Any one-dimensional grid.
__global__ void rulebook_submanifold_symmetric_fill_cells(RulebookProblem book,
                                                          const std::int32_t* coords,
                                                          std::int32_t* grid) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    atomicMin(&grid[key_of(book, book.shape, site_of(book, coords, row))],
              static_cast<std::int32_t>(row));
  }
}

/// Counts the rows whose cell holds an earlier row. Any one-dimensional grid.
__global__ void rulebook_submanifold_symmetric_find_duplicates(RulebookProblem book,
                                                               const std::int32_t* coords,
                                                               const std::int32_t* grid,
                                                               SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    if (grid[key_of(book, book.shape, site_of(book, coords, row))] != row)
      count_duplicate(errors, static_cast<std::int32_t>(row));
  }
}

/// Looks up each site at each tap before the centre. counts [half] must be zero; ins, outs
/// [half][N] get the rows of each tap's pairs. Any one-dimensional grid.
__global__ void rulebook_submanifold_symmetric_find_pairs(RulebookProblem book,
                                                          const std::int32_t* coords,
                                                          const std::int32_t* grid,
                                                          std::int32_t* counts, std::int32_t* ins,
                                                          std::int32_t* outs) {
  for (const std::int64_t i : grid_stride(std::int64_t{half_of(book)} * book.sites)) {
    const Item item = item_of(book, i);
    Site out;
    if (!output_of(book, site_of(book, coords, item.row), tap_of(book, item.k), &out)) continue;
    const std::int32_t out_row = grid[key_of(book, book.shape, out)];
    if (out_row == kEmpty) continue;
    const std::int64_t place = std::int64_t{item.k} * book.sites + atomicAdd(&counts[item.k], 1);
    ins[place] = item.row;
    outs[place] = out_row;
  }
}

__device__ void write_pair(std::int32_t* pairs, std::int64_t place, int k, std::int32_t in,
                           std::int32_t out) {
  std::int32_t* pair = pairs + place * kPairColumns;
  pair[0] = k;
  pair[1] = in;
  pair[2] = out;
}

/// pairs [P][3]: the lists, the centre, and the lists again, swapped and in reverse order of taps.
/// offsets [half + 1]. Any one-dimensional grid.
__global__ void rulebook_submanifold_symmetric_pack_pairs(RulebookProblem book,
                                                          const std::int32_t* ins,
                                                          const std::int32_t* outs,
                                                          const std::int64_t* offsets,
                                                          std::int32_t* pairs) {
  const int half = half_of(book);
  const std::int64_t P = 2 * offsets[half] + book.sites;
  for (const std::int64_t i : grid_stride(std::int64_t{half + 1} * book.sites)) {
    const auto [k, place] = item_of(book, i);
    if (k == half) {
      write_pair(pairs, offsets[half] + place, half, place, place);
    } else if (place < offsets[k + 1] - offsets[k]) {  // beyond, the list is empty
      write_pair(pairs, offsets[k] + place, k, ins[i], outs[i]);
      // The number of pairs after the mirrored tap equals that before this one.
      write_pair(pairs, P - offsets[k + 1] + place, book.KV - 1 - k, outs[i], ins[i]);
    }
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  if (book.mode != SparseMode::subm) return "mode subm only: no other is symmetric";
  if (key_count(book, book.shape) >= kMaxCells) return "grids of fewer than 2^30 cells only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  std::int32_t* grid;        ///< The row of each cell.
  std::int32_t* counts;      ///< By tap before the centre.
  std::int32_t *ins, *outs;  ///< Lists of the same taps.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t items = std::int64_t{half_of(book)} * book.sites;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.grid = cutter.take<std::int32_t>(key_count(book, book.shape));
  work.counts = cutter.take<std::int32_t>(half_of(book));
  work.ins = cutter.take<std::int32_t>(items);
  work.outs = cutter.take<std::int32_t>(items);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const int half = half_of(book);
  const std::int64_t items = std::int64_t{half} * book.sites;
  const auto [grid, counts, ins, outs, bytes] =
      workspace_at(book, context.workspace_as<std::byte>());

  const SiteCheck sites(book, coords);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned item_blocks = blocks_for(items, kThreads, kMaxBlocks);
  const unsigned with_centre = blocks_for(items + book.sites, kThreads, kMaxBlocks);
  launch(rulebook_submanifold_symmetric_clear_cells, {with_centre, kThreads}, book, coords, grid);
  launch(rulebook_submanifold_symmetric_fill_cells, {row_blocks, kThreads}, book, coords, grid);
  launch(rulebook_submanifold_symmetric_find_duplicates, {row_blocks, kThreads}, book, coords, grid,
         sites.errors());
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(half) * sizeof *counts,
                        current_stream()));
  launch(rulebook_submanifold_symmetric_find_pairs, {item_blocks, kThreads}, book, coords, grid,
         counts, ins, outs);
  const DeviceArray<std::int64_t> offsets(std::int64_t{half} + 1);
  exclusive_sum(counts, offsets.data(), half);
  sites.require_distinct();

  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  check(cudaMemcpyAsync(out_coords, coords,
                        static_cast<std::size_t>(book.sites) *
                            static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
                        cudaMemcpyDeviceToDevice, current_stream()));
  const std::int64_t P = 2 * downloaded(offsets.data() + half) + book.sites;
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch(rulebook_submanifold_symmetric_pack_pairs, {with_centre, kThreads}, book, ins, outs,
         offsets.data(), pairs);
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_symmetric = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
