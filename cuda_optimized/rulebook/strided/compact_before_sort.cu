/// @file compact_before_sort.cu
/// @brief rulebook, strided: stream compaction; only candidates that exist are sorted.
///
/// - Before: cuda_naive/rulebook/two_phases.cu
/// - After: bit_grid.cu, neighbour_table.cu, hash_set.cu
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** With stride 2 in three dimensions, one of eight taps of a site leads to an output.
/// two_phases.cu sorts the other seven as fillers. Here the taps are evaluated twice: once to count
/// the candidates, and once to write each one to its index.
///
///     two_phases:   12  #  7  #  |  #  #  9  #  |  ...    KV * N, to be sorted
///     count:         2           |  1           |  ...    a counter for each tap
///     sum:           0              2              3      where the tap's candidates begin
///     write:        12  7  9 ...                          P, to be sorted: no fillers
///
/// A candidate *is* a pair whose output row is stored last:
///
///     pairs    k  0  0  1            candidates   12  7  9    -> rows  2  0  1
///              in 0  2  2            out, from the grid, last:         .  .  .
///
/// **Expect.** In a LiDAR sweep, kernel 3, stride 2 (sweep-k3s2-pairs): 0.42 million keys to sort
/// instead of 3.4 million. The second evaluation costs KV * N divisions.
/// @expect on --shape 12,12,12 --sites 512 --mode strided --stride 2 --pad 1 --form pairs
/// @expect lanes.coords.load 4 * (2 * 27 + 2) * 512 = 114688, two passes over taps and sites
/// @expect lanes.global.atomic 2 * 1470 = 2940, two for each of 1470 pairs
/// @expect launches 12, two_phases has eleven
/// **Costs.** One more host synchronization, and 32 bytes a pair.
/// **Try.** Give each thread all taps of a site: how many divisions does a candidate cost?
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
constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  ///< 4 GB of rows.
constexpr std::int64_t kMaxCandidates = std::int64_t{1} << 31;

/// Counts the sites that have an output at tap k: counts [KV], which must be zero. Any
/// one-dimensional grid.
__global__ void rulebook_strided_compact_before_sort_count_candidates(RulebookProblem book,
                                                                      const std::int32_t* coords,
                                                                      std::int32_t* counts) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
    const int k = static_cast<int>(i / book.sites);
    Site out;
    if (output_of(book, site_of(book, coords, i % book.sites), tap_of(book, k), &out))
      atomicAdd(&counts[k], 1);
  }
}

/// The column of a pair that holds the row of coords, and the one that holds the found site's.
/// `inverse` is the rulebook of `strided` with its two roles swapped.
__device__ int given_column(const RulebookProblem& book) {
  return book.mode == SparseMode::inverse ? 2 : 1;
}
__device__ int found_column(const RulebookProblem& book) {
  return book.mode == SparseMode::inverse ? 1 : 2;
}

/// candidates [P], and all of pairs [P][3] but the found rows. next [KV]: the first index of each
/// tap; at the end, that of the next tap. Any one-dimensional grid.
__global__ void rulebook_strided_compact_before_sort_list_candidates(RulebookProblem book,
                                                                     const std::int32_t* coords,
                                                                     std::int64_t* next,
                                                                     std::int64_t* candidates,
                                                                     std::int32_t* pairs) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
    const int k = static_cast<int>(i / book.sites);
    const auto given = static_cast<std::int32_t>(i % book.sites);
    Site out;
    if (!output_of(book, site_of(book, coords, given), tap_of(book, k), &out)) continue;
    // CUDA's 64-bit atomicAdd takes unsigned integers.
    const auto place = atomicAdd(reinterpret_cast<unsigned long long*>(&next[k]), 1);
    candidates[place] = key_of(book, book.out_shape, out);
    std::int32_t* pair = pairs + place * kPairColumns;
    pair[0] = k;
    pair[given_column(book)] = given;
  }
}

/// Writes the rows 0, 1, 2 ... to the cells of keys [count]. Any one-dimensional grid.
__global__ void rulebook_strided_compact_before_sort_number_sites(std::int64_t count,
                                                                  const std::int64_t* keys,
                                                                  std::int32_t* grid) {
  for (const std::int64_t row : grid_stride(count))
    grid[keys[row]] = static_cast<std::int32_t>(row);
}

/// out_coords [count][1 + ndim] of keys [count]. Any one-dimensional grid.
__global__ void rulebook_strided_compact_before_sort_write_sites(RulebookProblem book,
                                                                 std::int64_t count,
                                                                 const std::int64_t* keys,
                                                                 std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(count))
    write_site(book, site_of_key(book, book.out_shape, keys[row]), out_coords, row);
}

/// The found rows of pairs [P][3], from candidates [P]. Any one-dimensional grid.
__global__ void rulebook_strided_compact_before_sort_finish_pairs(RulebookProblem book,
                                                                  std::int64_t P,
                                                                  const std::int64_t* candidates,
                                                                  const std::int32_t* grid,
                                                                  std::int32_t* pairs) {
  for (const std::int64_t i : grid_stride(P))
    pairs[i * kPairColumns + found_column(book)] = grid[candidates[i]];
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  if (book.mode == SparseMode::subm) return "modes strided, transposed and inverse only";
  if (std::int64_t{book.KV} * book.sites >= kMaxCandidates)
    return "fewer than 2^31 candidates (taps times sites) only";
  if (key_count(book, book.out_shape) >= kMaxCells) return "grids of fewer than 2^30 cells only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  std::int32_t* grid;    ///< The row of each cell of the outputs.
  std::int32_t* counts;  ///< Indexed by tap.
  std::size_t bytes;     ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.grid = cutter.take<std::int32_t>(key_count(book, book.out_shape));
  work.counts = cutter.take<std::int32_t>(book.KV);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// Finds duplicates of coords; the index has no other use here.
void check_distinct(const RulebookProblem& book, const std::int32_t* coords,
                    const SiteCheck& sites) {
  const DeviceArray<std::int64_t> keys(book.sites);
  const DeviceArray<std::int32_t> rows(book.sites);
  sort_sites(book, coords, keys.data(), rows.data(), sites.errors());
  sites.require_distinct();
}

/// coords [N][1 + ndim] to out_coords [M][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const std::int64_t items = std::int64_t{book.KV} * book.sites;
  const auto [grid, counts, bytes] = workspace_at(book, context.workspace_as<std::byte>());

  const SiteCheck sites(book, coords);
  check_distinct(book, coords, sites);

  const DeviceArray<std::int64_t> offsets(std::int64_t{book.KV} + 1);
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(book.KV) * sizeof *counts,
                        current_stream()));
  launch(rulebook_strided_compact_before_sort_count_candidates,
         {blocks_for(items, kThreads, kMaxBlocks), kThreads}, book, coords, counts);
  exclusive_sum(counts, offsets.data(), book.KV);
  const std::int64_t P = downloaded(offsets.data() + book.KV);

  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  const DeviceArray<std::int64_t> candidates(P), sorted(P), keys(P), key_total(1);
  launch(rulebook_strided_compact_before_sort_list_candidates,
         {blocks_for(items, kThreads, kMaxBlocks), kThreads}, book, coords, offsets.data(),
         candidates.data(), pairs);
  sort_keys(candidates.data(), sorted.data(), P, key_bits(key_count(book, book.out_shape) - 1));
  unique(sorted.data(), keys.data(), key_total.data(), P);
  const std::int64_t found = downloaded(key_total.data());

  launch(rulebook_strided_compact_before_sort_number_sites,
         {blocks_for(found, kThreads, kMaxBlocks), kThreads}, found, keys.data(), grid);
  launch(rulebook_strided_compact_before_sort_finish_pairs,
         {blocks_for(P, kThreads, kMaxBlocks), kThreads}, book, P, candidates.data(), grid, pairs);
  if (book.mode == SparseMode::inverse) {
    auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
    check(cudaMemcpyAsync(out_coords, coords,
                          static_cast<std::size_t>(book.sites) *
                              static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
                          cudaMemcpyDeviceToDevice, current_stream()));
  } else {
    auto* out_coords = arrays.create("out_coords", {found, 1 + book.ndim});
    launch(rulebook_strided_compact_before_sort_write_sites,
           {blocks_for(found, kThreads, kMaxBlocks), kThreads}, book, found, keys.data(),
           out_coords);
  }
}

std::string choice_in_words(const RulebookProblem& book) {
  return book.mode == SparseMode::inverse ? "inputs are found" : "outputs are found";
}

}  // namespace

extern const Implementation<RulebookArrays> strided_compact_before_sort = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
