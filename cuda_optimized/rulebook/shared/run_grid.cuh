/// @file run_grid.cuh
/// @brief Runs of 32 cells at places of their own, without a hash: cleared, and filled. runs.cuh
/// looks up in it.
///
/// The rungs fused and mirrored_lists use it for sorted sites in grids that are not too large;
/// submanifold/cooperative_launch.cu explains it.
#pragma once

#include "core/cuda/workspace_cutter.hpp"
#include "cuda_optimized/rulebook/shared/runs.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

/// 32 MB of words: more would not stay in the L2.
inline constexpr std::int64_t kMaxGroups = 1 << 21;

/// A word for each run of the grid, at its own place: an index of sorted sites for look_up().
struct RunGrid {
  using Answer = std::uint32_t;  ///< See look_up().

  std::uint32_t* words;  ///< [whole groups of 4]: a bit for each cell; null where it is too large
  std::int32_t* first_rows;  ///< [runs]: the row of the first site; empty runs have none

  /// What was found of a run.
  struct Found {
    std::uint32_t word;  ///< 0: no site at all.
    std::uint32_t run;   ///< Its number.
  };

  /// The run's word.
  __device__ Answer ask(std::uint32_t run) const { return words[run]; }
  /// It is the answer.
  __device__ Found settle(std::uint32_t run, Answer word) const { return {word, run}; }
  /// The row of a found run's first site.
  __device__ std::int32_t first_row(const Found& found) const { return first_rows[found.run]; }
  /// The row of a site.
  __device__ std::int32_t rank_at(const Found& found, int bit) const {
    return first_row(found) + __popc(found.word & ((1u << bit) - 1));
  }
  /// The row at a cell of a found run, or -1.
  __device__ std::int32_t row_at(const Found& found, int bit, bool /*sorted*/) const {
    return (found.word >> bit & 1) != 0 ? rank_at(found, bit) : -1;
  }
};

/// Empties the grid. `thread` of `threads` does its share.
__device__ inline void clear(const RunGrid& grid, std::int64_t groups, std::int64_t thread,
                             std::int64_t threads) {
  auto* to = reinterpret_cast<uint4*>(grid.words);
  for (std::int64_t i = thread; i < groups; i += threads) to[i] = make_uint4(0, 0, 0, 0);
}

/// Enters sites, which are sorted. `thread` of `threads` does its share; whole warps.
template <bool kCube>
__device__ void insert_sorted(const Problem& grid, const std::int32_t* coords, const RunGrid& index,
                              std::int64_t thread, std::int64_t threads) {
  const int lane = static_cast<int>(thread % 32);
  // All lanes of a warp go round equally often.
  for (std::int64_t warp_row = thread - lane; warp_row < grid.sites; warp_row += threads) {
    const std::int64_t row = warp_row + lane;
    const bool is_row = row < grid.sites;
    Cell cell{-1, {}};
    if (is_row) cell = cell_of<kCube>(grid, coords, row);
    const std::uint32_t run = is_row ? cell.run(grid) : 0;
    // The first lane's run may have begun in the rows of another warp.
    const bool begins =
        lane > 0 || row == 0 || (is_row && cell_of<kCube>(grid, coords, row - 1).run(grid) != run);
    const Group group(is_row, run, cell.bit());
    if (!is_row || !group.leads) continue;
    atomicOr(&index.words[run], group.bits);
    if (begins) index.first_rows[run] = static_cast<std::int32_t>(row);
  }
}

/// Groups of 4 words of the run grid; 0 where it is not worth its clearing.
inline std::int64_t group_count(const RulebookProblem& book) {
  const std::int64_t groups = ceil_div<std::int64_t>(run_count(book), 4);
  return groups <= kMaxGroups ? groups : 0;
}

/// Cuts the run grid from a workspace.
inline RunGrid cut_run_grid(const RulebookProblem& book, WorkspaceCutter* cutter) {
  const std::int64_t words = group_count(book) * 4;
  return {.words = cutter->take<std::uint32_t>(words),
          .first_rows = cutter->take<std::int32_t>(words)};
}

/// For a rung's choice: where sites that are in order are looked up.
inline const char* index_in_words(const RulebookProblem& book) {
  return group_count(book) > 0 ? "a grid of runs" : "a table of runs";
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
