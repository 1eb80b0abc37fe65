/// @file run_index.cuh
/// @brief The index of submanifold/cooperative_launch.cu, with the words of runs: for sorted sites
/// a grid of all runs, otherwise a hash table. Both are cleared and filled here; runs.cuh looks up
/// in them.
#pragma once

#include "core/cuda/workspace_cutter.hpp"
#include "cuda_optimized/rulebook/shared/runs.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

/// 32 MB of words: more would not fit in the L2 cache.
inline constexpr std::int64_t kMaxGroups = 1 << 21;

/// A word for each run of the grid, at its own index, for look_up() in sorted sites.
struct RunGrid {
  using Answer = std::uint32_t;  ///< See look_up().

  std::uint32_t* words;  ///< [whole groups of 4]: a bit for each cell; null where it is too large
  std::int32_t* first_rows;  ///< [runs]: the row of the first site; empty runs have none

  /// What was found of a run.
  struct Found {
    std::uint32_t word;  ///< 0: no site at all.
    std::uint32_t run;   ///< Its index.
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

/// Clears the grid. `thread` of `threads` does its share.
__device__ inline void clear(const RunGrid& grid, std::int64_t groups, std::int64_t thread,
                             std::int64_t threads) {
  auto* to = reinterpret_cast<uint4*>(grid.words);
  for (std::int64_t i = thread; i < groups; i += threads) to[i] = make_uint4(0, 0, 0, 0);
}

/// Inserts sites, which are sorted. `thread` of `threads` does its share; whole warps.
template <bool kCube>
__device__ void insert_sorted(const Problem& grid, const std::int32_t* coords, const RunGrid& index,
                              std::int64_t thread, std::int64_t threads) {
  const int lane = static_cast<int>(thread % 32);
  // The trip count is uniform in a warp.
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

/// Groups of 4 words of the run grid; 0 where clearing it would cost too much.
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

/// For the description of a rung's choice: where sorted sites are looked up.
inline const char* index_in_words(const RulebookProblem& book) {
  return group_count(book) > 0 ? "a grid of runs" : "a table of runs";
}

/// The table. An entry is the number of a run (its upper half) and a word (its lower half), of
/// which bit i says that cell i of the run is a site. Without a site there is no entry: 0 is an
/// empty slot.
struct Table {
  using Entry = unsigned long long;  ///< The type of CUDA's 64-bit atomics.
  using Answer = Entry;              ///< See look_up().

  Entry* entries;            ///< [capacity]
  std::int32_t* first_rows;  ///< [capacity]: of sorted sites, the row of an entry's first site
  std::int32_t* rows;        ///< [capacity][kCells]: of unsorted ones, the row of each site
  std::uint32_t capacity;    ///< Number of slots, a multiple of 2.

  /// What was found of a run.
  struct Found {
    std::uint32_t word;   ///< 0: no site at all.
    std::uint32_t place;  ///< Of the entry, if there is one.
  };

  /// Where the search for a run begins: Knuth's multiplicative hash, scaled to the capacity.
  __device__ std::uint32_t first_place(std::uint32_t run) const {
    return __umulhi(run * 2654435769u, capacity);
  }
  /// The slot that is searched after this one.
  __device__ std::uint32_t next_place(std::uint32_t place) const {
    return place + 1 == capacity ? 0 : place + 1;
  }
  /// The entry where the search for a run begins.
  __device__ Answer ask(std::uint32_t run) const { return entries[first_place(run)]; }
  /// Follows the chain from that entry to the run's.
  __device__ Found settle(std::uint32_t run, Answer entry) const {
    std::uint32_t place = first_place(run);
    while (entry != 0 && entry >> 32 != run) {
      place = next_place(place);
      entry = entries[place];
    }
    return {static_cast<std::uint32_t>(entry), place};
  }
  /// The row of the first site of a found run, if they are sorted.
  __device__ std::int32_t first_row(const Found& found) const { return first_rows[found.place]; }
  /// Sorted sites of a run have consecutive rows.
  __device__ std::int32_t rank_at(const Found& found, int bit) const {
    return first_row(found) + __popc(found.word & ((1u << bit) - 1));
  }
  /// The row at a cell of a found run, or -1.
  __device__ std::int32_t row_at(const Found& found, int bit, bool sorted) const {
    if ((found.word >> bit & 1) == 0) return -1;
    return sorted ? rank_at(found, bit) : rows[std::int64_t{found.place} * kCells + bit];
  }
};

/// Three slots for two sites, so that searches reach an empty slot soon, even if every site has its
/// own run.
inline std::uint32_t capacity_for(std::int64_t sites) {
  return static_cast<std::uint32_t>((sites + sites / 2) / 4 * 4 + 32);
}

/// Cuts a table for so many sites from a workspace.
inline Table cut_table(std::int64_t sites, WorkspaceCutter* cutter) {
  const std::uint32_t capacity = capacity_for(sites);
  return {.entries = cutter->take<Table::Entry>(capacity),
          .first_rows = cutter->take<std::int32_t>(capacity),
          .rows = cutter->take<std::int32_t>(std::int64_t{capacity} * kCells),
          .capacity = capacity};
}

/// The first step: clears all slots. `thread` of `threads` does its share.
__device__ inline void clear(const Table& table, std::int64_t thread, std::int64_t threads) {
  auto* pairs = reinterpret_cast<ulonglong2*>(table.entries);
  for (std::int64_t i = thread; i < table.capacity / 2; i += threads)
    pairs[i] = make_ulonglong2(0, 0);
}

/// Inserts cells of one run. Returns how many of them were present already. @param place out
__device__ inline int enter(const Table& table, std::uint32_t run, std::uint32_t bits,
                            std::uint32_t* place) {
  const Table::Entry entry = Table::Entry{run} << 32 | bits;
  *place = table.first_place(run);
  while (true) {
    const Table::Entry old = atomicCAS(&table.entries[*place], 0, entry);
    if (old == 0) return 0;
    if (old >> 32 == run) break;
    *place = table.next_place(*place);
  }
  const Table::Entry old = atomicOr(&table.entries[*place], Table::Entry{bits});
  return __popc(static_cast<std::uint32_t>(old) & bits);
}

/// The second step: inserts all sites. Whole warps of a block, and a multiple of 32 threads; `bad`
/// [1] counts rows that are outside of the grid, which are left out, and rows of a site that
/// another row had entered before.
template <bool kRowsOfFour>
__device__ void insert(const Problem& grid, const std::int32_t* coords, const Table& table,
                       bool sorted, std::int64_t thread, std::int64_t threads, std::int32_t* bad) {
  const int lane = static_cast<int>(thread % 32);
  // The trip count is uniform in a warp.
  for (std::int64_t warp_row = thread - lane; warp_row < grid.sites; warp_row += threads) {
    const std::int64_t row = warp_row + lane;
    Cell cell{-1, {}};
    if (row < grid.sites) cell = cell_of<kRowsOfFour>(grid, coords, row);
    const bool inside = cell.is_inside(grid);
    if (row < grid.sites && !inside) atomicAdd(bad, 1);
    const std::uint32_t run = inside ? cell.run(grid) : 0;
    const Group group(inside, run, cell.bit());
    std::uint32_t place = 0;
    if (inside && group.leads) {
      const int repeated = group.lanes - __popc(group.bits) + enter(table, run, group.bits, &place);
      if (repeated != 0) atomicAdd(bad, repeated);
    }
    if (sorted) {
      // The first lane's run may have begun in the rows of another warp.
      const bool begins = lane > 0 || row == 0 ||
                          (inside && cell_of<kRowsOfFour>(grid, coords, row - 1).run(grid) != run);
      if (inside && group.leads && begins) table.first_rows[place] = static_cast<std::int32_t>(row);
    } else {
      place = __shfl_sync(kWholeWarp, place, group.leader);
      // Duplicate sites race here: the result is then not used.
      if (inside)
        table.rows[std::int64_t{place} * kCells + cell.bit()] = static_cast<std::int32_t>(row);
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
