/// @file two_phases.cu
/// @brief Two phases for strided modes: all candidate outputs are sorted, then numbered.
///
/// - Before: cpu_reference/rulebook/hash_map.cpp
/// - After: cuda_optimized/rulebook/strided/compact_before_sort.cu
///
/// **The idea.** If outputs are new sites, their rows are known only after all outputs are known.
/// Therefore two phases are separated by a sort, as in spconv 1.x.
///
///     phase 1: the key that each site leads to      phase 2: keys become rows, through a grid
///     tap 0    12   #   7   #                       tap 0    2   .   0   .
///     tap 1    15  12   9   7                       tap 1    3   2   1   0
///              # = leads nowhere: the filler
///     sorted:  7 7 9 12 12 15 # #    distinct: 7 9 12 15 (#)    row of each: 0 1 2 3
///
/// The filler is greater than every key, so it is last in the sorted list and occurs at most once
/// among the distinct keys. The grid is not cleared: only cells that were written are read.
///
/// **Expect.** KV * N keys of 8 bytes are written, sorted and read again, with one pass of the
/// radix sort per 8 bits. A sweep (sweep-k3s2-pairs) has 3.4 million keys of 25 bits, 0.2 GB in
/// four passes, and 0.42 million pairs with two atomic additions each.
/// @expect on --shape 12,12,12 --sites 512 --mode strided --stride 2 --pad 1 --form pairs
/// @expect lanes.coords.load 4 * (27 + 2) * 512 = 59392, one pass over taps, two over sites
/// @expect lanes.global.atomic 2 * 1470 = 2940, two for each of 1470 pairs
/// @expect lanes.pairs.store 3 * 1470 = 4410
/// **Costs.** At least 24 * KV * N bytes of workspace, and 4 bytes per cell of the output grid. The
/// order of a tap's pairs varies. Supports form pairs, modes other than subm, fewer than 2^31
/// candidates and 2^30 cells only.
/// **Try.** Count the fillers for strides 1, 2 and 3. When is compact_before_sort.cu no better?
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
constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  ///< 4 GB of rows.
constexpr std::int64_t kMaxCandidates = std::int64_t{1} << 31;

/// The candidate of a tap that leads to no output: greater than every key.
__host__ __device__ std::int64_t filler_of(const RulebookProblem& book) {
  return key_count(book, book.out_shape);
}

/// Phase 1: candidates [KV][N], and the number of non-filler candidates per tap in counts [KV],
/// which must be zero. Launch with any one-dimensional grid.
__global__ void rulebook_two_phases_list_candidates(RulebookProblem book,
                                                    const std::int32_t* coords,
                                                    std::int64_t* candidates,
                                                    std::int32_t* counts) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
    const int k = static_cast<int>(i / book.sites);
    Site out;
    if (output_of(book, site_of(book, coords, i % book.sites), tap_of(book, k), &out)) {
      candidates[i] = key_of(book, book.out_shape, out);
      atomicAdd(&counts[k], 1);
    } else {
      candidates[i] = filler_of(book);
    }
  }
}

/// Writes the rows 0, 1, 2 ... to the cells of keys [count]. Launch with any one-dimensional grid.
__global__ void rulebook_two_phases_number_sites(std::int64_t count, const std::int64_t* keys,
                                                 std::int32_t* grid) {
  for (const std::int64_t row : grid_stride(count))
    grid[keys[row]] = static_cast<std::int32_t>(row);
}

/// out_coords [count][1 + ndim] of keys [count]. Launch with any one-dimensional grid.
__global__ void rulebook_two_phases_write_sites(RulebookProblem book, std::int64_t count,
                                                const std::int64_t* keys,
                                                std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(count))
    write_site(book, site_of_key(book, book.out_shape, keys[row]), out_coords, row);
}

/// Phase 2: pairs [P][3] from candidates [KV][N] and their rows in the grid. next [KV] holds the
/// first free entry of each tap and ends as the first entry of the following tap. Launch with any
/// one-dimensional grid.
__global__ void rulebook_two_phases_write_pairs(RulebookProblem book,
                                                const std::int64_t* candidates,
                                                const std::int32_t* grid, std::int64_t* next,
                                                std::int32_t* pairs) {
  for (const std::int64_t i : grid_stride(std::int64_t{book.KV} * book.sites)) {
    const std::int64_t candidate = candidates[i];
    if (candidate == filler_of(book)) continue;
    const int k = static_cast<int>(i / book.sites);
    const auto given = static_cast<std::int32_t>(i % book.sites);
    const std::int32_t found = grid[candidate];
    // CUDA's 64-bit atomicAdd takes unsigned operands.
    const auto place = atomicAdd(reinterpret_cast<unsigned long long*>(&next[k]), 1);
    std::int32_t* pair = pairs + place * kPairColumns;
    pair[0] = k;
    // `inverse` is the rulebook of `strided` with inputs and outputs exchanged.
    pair[1] = book.mode == SparseMode::inverse ? found : given;
    pair[2] = book.mode == SparseMode::inverse ? given : found;
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  if (book.mode == SparseMode::subm) return "modes strided, transposed and inverse only";
  if (std::int64_t{book.KV} * book.sites >= kMaxCandidates)
    return "fewer than 2^31 candidates (taps times sites) only";
  if (key_count(book, book.out_shape) >= kMaxCells) return "grids of fewer than 2^30 cells only";
  return {};
}

/// The workspace, from front to back.
struct Workspace {
  std::int32_t* grid;    ///< The row of each cell of the output grid.
  std::int32_t* counts;  ///< By tap.
  std::size_t bytes;     ///< Total bytes.
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

/// Finds duplicates of coords; the index is not used otherwise.
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

  const DeviceArray<std::int64_t> candidates(items), sorted(items), keys(items), key_total(1);
  const DeviceArray<std::int64_t> offsets(std::int64_t{book.KV} + 1);
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(book.KV) * sizeof *counts,
                        current_stream()));
  launch(rulebook_two_phases_list_candidates, {blocks_for(items, kThreads, kMaxBlocks), kThreads},
         book, coords, candidates.data(), counts);
  exclusive_sum(counts, offsets.data(), book.KV);
  sort_keys(candidates.data(), sorted.data(), items, key_bits(filler_of(book)));
  unique(sorted.data(), keys.data(), key_total.data(), items);
  std::int64_t found = downloaded(key_total.data());
  if (found > 0 && downloaded(keys.data() + found - 1) == filler_of(book)) --found;

  launch(rulebook_two_phases_number_sites, {blocks_for(found, kThreads, kMaxBlocks), kThreads},
         found, keys.data(), grid);
  if (book.mode == SparseMode::inverse) {
    auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
    check(cudaMemcpyAsync(out_coords, coords,
                          static_cast<std::size_t>(book.sites) *
                              static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
                          cudaMemcpyDeviceToDevice, current_stream()));
  } else {
    auto* out_coords = arrays.create("out_coords", {found, 1 + book.ndim});
    launch(rulebook_two_phases_write_sites, {blocks_for(found, kThreads, kMaxBlocks), kThreads},
           book, found, keys.data(), out_coords);
  }
  const std::int64_t P = downloaded(offsets.data() + book.KV);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch(rulebook_two_phases_write_pairs, {blocks_for(items, kThreads, kMaxBlocks), kThreads}, book,
         candidates.data(), grid, offsets.data(), pairs);
}

std::string choice_in_words(const RulebookProblem& book) {
  return book.mode == SparseMode::inverse ? "inputs are found" : "outputs are found";
}

}  // namespace

extern const Implementation<RulebookArrays> two_phases = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_naive::rulebook
