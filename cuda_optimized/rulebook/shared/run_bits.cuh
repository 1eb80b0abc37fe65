/// @file run_bits.cuh
/// @brief The bits of sites in any order, set in a grid of runs that is made for sorted ones.
///
/// submanifold/paged_bit_grid.cu explains it. Which row is a run's first is found out once all bits
/// are set.
#pragma once

#include "cuda_optimized/rulebook/shared/run_grid.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

/// 256 MB of words, which each call clears.
inline constexpr std::int64_t kMaxGridRuns = std::int64_t{1} << 26;

/// Why a grid cannot take the problem's sites in any order; nothing when it can.
inline Declined declined_by_grid(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only";
  if (run_count(book) > kMaxGridRuns) return "grids of at most 2^26 runs of 32 cells only";
  return {};
}

/// Sets the bits of sites in any order. begins(run, row) is called once for each run that has a
/// site: with the row that set its first bit. `bad` [1] counts rows that are outside of the grid,
/// which are left out, and rows of a site that another row had entered before. Any one-dimensional
/// grid of whole warps.
template <bool kRowsOfFour, class Begins>
__device__ void insert_bits(const Problem& grid, const std::int32_t* coords, const RunGrid& index,
                            std::int32_t* bad, const Begins& begins) {
  visit_sites<kRowsOfFour>(grid, coords, [&](std::int64_t row, const Site& site) {
    if (row < grid.sites && !site.inside) atomicAdd(bad, 1);
    const Group group(site.inside, site.run, site.bit);
    if (!site.inside || !group.leads) return;
    const std::uint32_t old = atomicOr(&index.words[site.run], group.bits);
    const int repeated = group.lanes - __popc(group.bits) + __popc(old & group.bits);
    if (repeated != 0) atomicAdd(bad, repeated);
    if (old == 0) begins(site.run, row);
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
