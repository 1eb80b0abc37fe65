/// @file dense_grid.cu
/// @brief Dense grid: an array maps cells to rows, and each tap has an atomic counter (spconv 1.x).
///
/// - Before: cpu_reference/rulebook/hash_map.cpp
/// - After: cuda_optimized/rulebook/submanifold/symmetric.cu,
///   cuda_optimized/rulebook/submanifold/output_stationary.cu
///
/// **The idea.** The simplest map from cells to rows is an array with one element per cell of the
/// batch's grid: an insertion is one store, a look-up one load. Each (tap, site) is one thread.
///
///     sites               grid: row or empty      at the tap to the right, site 1 finds row 2:
///     . 0 . .             .  0  .  .              the pair goes to place counts[k]++ of tap k
///     . 1 2 .     ->      .  1  2  .
///     . . . .             .  .  .  .              counts[k]:  1 1 0 1 3 1 0 1 1     (atomic)
///
/// The number of pairs per tap is not known in advance. Each tap has a list with room for all N
/// sites, and an atomic counter assigns the entries; then the lists are compacted. Only cells that
/// will be looked up are cleared. A cell keeps the *smallest* row, which reveals duplicates.
///
/// **Expect.** KV * N loads and as many stores of single cells, 3.4 million 32-byte sectors for a
/// sweep (sweep-subm3-pairs), and 0.79 million atomic additions to 27 counters.
/// @expect lanes.workspace.atomic 512 + 3838 = 4350, one a site, one a pair
/// @expect lanes.coords.load 4 * (2 * 27 + 3) * 512 = 116736, two passes over taps, 3 over sites
/// @expect lanes.pairs.store 3 * 3838 = 11514, tap and two rows of 3838 pairs
/// **Costs.** 4 bytes per cell, occupied or not, and lists of 8 * KV * N bytes. The order of a
/// tap's pairs varies. Supports form pairs, mode subm and grids of fewer than 2^30 cells (4 GB)
/// only.
/// **Try.** Assign one site to each thread, not one (tap, site). Which loads are then adjacent?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_naive::rulebook {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Largest grid; larger problems are processed by a
                                              ///< grid-stride loop.
constexpr std::int32_t kEmpty = 0x7fffffff;   ///< An empty cell: greater than every row.
constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  ///< 4 GB of rows.

/// Tap and site of a thread: neighbouring threads have neighbouring sites at the same tap.
struct Item {
  int k;
  std::int32_t row;
};
__device__ Item item_of(const RulebookProblem& book, std::int64_t i) {
  return {static_cast<int>(i / book.sites), static_cast<std::int32_t>(i % book.sites)};
}

/// Clears each cell that a tap of a site leads to; the centre tap leads to the site's own cell.
/// coords [N][1 + ndim], grid [cells]. Launch with any one-dimensional grid.
__global__ void rulebook_dense_grid_clear_cells(RulebookProblem book, const std::int32_t* coords,
                                                std::int32_t* grid) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
    const Item item = item_of(book, i);
    Site out;
    if (output_of(book, site_of(book, coords, item.row), tap_of(book, item.k), &out))
      grid[key_of(book, book.shape, out)] = kEmpty;
  }
}

/// Writes each row to its site's cell. Launch with any one-dimensional grid.
__global__ void rulebook_dense_grid_fill_cells(RulebookProblem book, const std::int32_t* coords,
                                               std::int32_t* grid) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    atomicMin(&grid[key_of(book, book.shape, site_of(book, coords, row))],
              static_cast<std::int32_t>(row));
  }
}

/// Counts the rows whose cell holds a smaller row. Launch with any one-dimensional grid.
__global__ void rulebook_dense_grid_find_duplicates(RulebookProblem book,
                                                    const std::int32_t* coords,
                                                    const std::int32_t* grid, SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    if (grid[key_of(book, book.shape, site_of(book, coords, row))] != row)
      count_duplicate(errors, static_cast<std::int32_t>(row));
  }
}

/// Looks up each (tap, site). counts [KV] must be zero; ins, outs [KV][N] receive the rows of each
/// tap's pairs. Launch with any one-dimensional grid.
__global__ void rulebook_dense_grid_find_pairs(RulebookProblem book, const std::int32_t* coords,
                                               const std::int32_t* grid, std::int32_t* counts,
                                               std::int32_t* ins, std::int32_t* outs) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
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

/// Writes the lists of all taps to pairs [P][3], contiguously; offsets [KV + 1]. Launch with any
/// one-dimensional grid.
__global__ void rulebook_dense_grid_pack_pairs(RulebookProblem book, const std::int32_t* ins,
                                               const std::int32_t* outs,
                                               const std::int64_t* offsets, std::int32_t* pairs) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
    const auto [k, place] = item_of(book, i);
    if (place >= offsets[k + 1] - offsets[k]) continue;  // the list is shorter
    std::int32_t* pair = pairs + (offsets[k] + place) * kPairColumns;
    pair[0] = k;
    pair[1] = ins[i];
    pair[2] = outs[i];
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  if (book.mode != SparseMode::subm) return "mode subm only: other modes make new sites";
  if (key_count(book, book.shape) >= kMaxCells) return "grids of fewer than 2^30 cells only";
  return {};
}

/// The workspace, from front to back.
struct Workspace {
  std::int32_t* grid;        ///< The row of each cell.
  std::int32_t* counts;      ///< By tap.
  std::int32_t *ins, *outs;  ///< Lists of the taps.
  std::size_t bytes;         ///< Total bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t items = std::int64_t{book.KV} * book.sites;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.grid = cutter.take<std::int32_t>(key_count(book, book.shape));
  work.counts = cutter.take<std::int32_t>(book.KV);
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
  const std::int64_t items = std::int64_t{book.KV} * book.sites;
  const auto [grid, counts, ins, outs, bytes] =
      workspace_at(book, context.workspace_as<std::byte>());

  const SiteCheck sites(book, coords);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned item_blocks = blocks_for(items, kThreads, kMaxBlocks);
  launch(rulebook_dense_grid_clear_cells, {item_blocks, kThreads}, book, coords, grid);
  launch(rulebook_dense_grid_fill_cells, {row_blocks, kThreads}, book, coords, grid);
  launch(rulebook_dense_grid_find_duplicates, {row_blocks, kThreads}, book, coords, grid,
         sites.errors());
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(book.KV) * sizeof *counts,
                        current_stream()));
  launch(rulebook_dense_grid_find_pairs, {item_blocks, kThreads}, book, coords, grid, counts, ins,
         outs);
  const DeviceArray<std::int64_t> offsets(std::int64_t{book.KV} + 1);
  exclusive_sum(counts, offsets.data(), book.KV);
  sites.require_distinct();

  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  check(cudaMemcpyAsync(out_coords, coords,
                        static_cast<std::size_t>(book.sites) *
                            static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
                        cudaMemcpyDeviceToDevice, current_stream()));
  const std::int64_t P = downloaded(offsets.data() + book.KV);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch(rulebook_dense_grid_pack_pairs, {item_blocks, kThreads}, book, ins, outs, offsets.data(),
         pairs);
}

}  // namespace

extern const Implementation<RulebookArrays> dense_grid = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::rulebook
