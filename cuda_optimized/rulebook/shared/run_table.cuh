/// @file run_table.cuh
/// @brief A hash table of runs: cleared, and filled. runs.cuh looks up in it.
///
/// The rungs submanifold/bitmap_hash, fused and mirrored_lists take these steps;
/// submanifold/bitmap_hash.cu explains them.
#pragma once

#include "core/cuda/workspace_cutter.hpp"
#include "cuda_optimized/rulebook/shared/runs.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

/// The table. An entry is the number of a run (its upper half) and a word (its lower half), of
/// which bit i says that cell i of the run is a site. Without a site there is no entry: 0 is an
/// empty place.
struct Table {
  using Entry = unsigned long long;  ///< As CUDA's 64-bit atomics want it.
  using Answer = Entry;              ///< See look_up().

  Entry* entries;            ///< [capacity]
  std::int32_t* first_rows;  ///< [capacity]: of sorted sites, the row of an entry's first site
  std::int32_t* rows;        ///< [capacity][kCells]: of unsorted ones, the row of each site
  std::uint32_t capacity;    ///< Places: a multiple of 2.

  /// What was found of a run.
  struct Found {
    std::uint32_t word;   ///< 0: no site at all.
    std::uint32_t place;  ///< Of the entry, if there is one.
  };

  /// Where the search for a run begins: Knuth's multiplicative hash, scaled to the capacity.
  __device__ std::uint32_t first_place(std::uint32_t run) const {
    return __umulhi(run * 2654435769u, capacity);
  }
  /// The place that is searched after this one.
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
  /// Sorted sites of a run have rows side by side.
  __device__ std::int32_t rank_at(const Found& found, int bit) const {
    return first_row(found) + __popc(found.word & ((1u << bit) - 1));
  }
  /// The row at a cell of a found run, or -1.
  __device__ std::int32_t row_at(const Found& found, int bit, bool sorted) const {
    if ((found.word >> bit & 1) == 0) return -1;
    return sorted ? rank_at(found, bit) : rows[std::int64_t{found.place} * kCells + bit];
  }
};

/// Three places for two sites, so that a search comes to an empty one soon, even if every site is
/// in a run of its own.
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

/// The first step: empties all places. `thread` of `threads` does its share.
__device__ inline void clear(const Table& table, std::int64_t thread, std::int64_t threads) {
  auto* pairs = reinterpret_cast<ulonglong2*>(table.entries);
  for (std::int64_t i = thread; i < table.capacity / 2; i += threads)
    pairs[i] = make_ulonglong2(0, 0);
}

/// Enters cells of one run. Returns how many of them were there already. @param place out
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

/// The second step: enters all sites. Whole warps of a block, and a multiple of 32 threads; `bad`
/// [1] counts rows that are outside of the grid, which are left out, and rows of a site that
/// another row had entered before.
template <bool kRowsOfFour>
__device__ void insert(const Problem& grid, const std::int32_t* coords, const Table& table,
                       bool sorted, std::int64_t thread, std::int64_t threads, std::int32_t* bad) {
  const int lane = static_cast<int>(thread % 32);
  // All lanes of a warp go round equally often.
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
      // Of several rows of one site any may win here: the result is not used.
      if (inside)
        table.rows[std::int64_t{place} * kCells + cell.bit()] = static_cast<std::int32_t>(row);
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
