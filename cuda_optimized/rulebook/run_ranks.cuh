/// @file run_ranks.cuh
/// @brief The rank of each site in the order of cells, by counting bits: sites are sorted without a
/// sort.
///
/// lists_of_ranks.cu explains it. A run's first rank is the number of sites in all runs before.
/// Most words are empty, so pages of 32 words without any site are passed over.
#pragma once

#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/run_bits.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

inline constexpr int kPageRuns = 32;              ///< Of a page: their words are a cache line.
inline constexpr int kPageQuads = kPageRuns / 4;  ///< Words are loaded by fours.

/// What the ranks are found with, and where the sites stand in their order.
struct Ranks {
  std::uint32_t* used;       ///< [pages, by fours]: not 0 where a page has sites
  std::int32_t* block_sums;  ///< [blocks]: the sites in each block's share of pages
  std::int32_t* rows;        ///< [sites]: by rank
  std::int32_t* coords;      ///< [sites][1 + ndim]: by rank
  std::int64_t pages;        ///< Of the whole grid.
};

/// Pages of a problem's grid.
inline std::int64_t page_count(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(run_count(book), kPageRuns);
}

/// Empties the grid, which has whole pages, and Ranks::used. `thread` of `threads` does its share.
__device__ inline void clear(const RunGrid& grid, const Ranks& ranks, std::int64_t thread,
                             std::int64_t threads) {
  clear(grid, ranks.pages * kPageQuads, thread, threads);
  for (std::int64_t page = thread; page < ranks.pages; page += threads) ranks.used[page] = 0;
}

/// Enters sites in any order: as insert_bits(), and marks their pages.
template <bool kRowsOfFour>
__device__ void insert_unsorted(const Problem& grid, const std::int32_t* coords,
                                const RunGrid& index, const Ranks& ranks, std::int32_t* bad) {
  insert_bits<kRowsOfFour>(grid, coords, index, bad, [&](std::uint32_t run, std::int64_t) {
    ranks.used[run / kPageRuns] = 1;
  });
}

/// The pages of a block: as many for each, one behind the other.
struct Share {
  std::int64_t begin, end;  ///< Pages from the first to the one behind the last.
  /// Of this block, of all pages.
  __device__ explicit Share(std::int64_t pages) {
    const std::int64_t each = (pages + gridDim.x - 1) / gridDim.x;
    begin = blockIdx.x * each < pages ? blockIdx.x * each : pages;
    end = begin + each < pages ? begin + each : pages;
  }
};

/// The sites of a page.
__device__ inline int sites_of_page(const RunGrid& grid, const Ranks& ranks, std::int64_t page) {
  if (ranks.used[page] == 0) return 0;
  const auto* quads = reinterpret_cast<const uint4*>(grid.words) + page * kPageQuads;
  int sites = 0;
#pragma unroll
  for (int i = 0; i < kPageQuads; ++i) {  // all loads in flight together
    const uint4 quad = quads[i];
    sites += __popc(quad.x) + __popc(quad.y) + __popc(quad.z) + __popc(quad.w);
  }
  return sites;
}

/// The first step, once all sites are entered: Ranks::block_sums.
/// @param warp_sums [kThreads / 32], shared memory
template <int kThreads>
__device__ void count_shares(const RunGrid& grid, const Ranks& ranks, int* warp_sums) {
  const Share share(ranks.pages);
  int sites = 0;
  for (std::int64_t page = share.begin + threadIdx.x; page < share.end; page += kThreads)
    sites += sites_of_page(grid, ranks, page);
  int total;
  block_exclusive_sum<kThreads / 32>(sites, warp_sums, &total);
  if (threadIdx.x == 0) ranks.block_sums[blockIdx.x] = total;
}

/// The second step, once all blocks have counted: RunGrid::first_rows, by rank.
template <int kThreads>
__device__ void number_runs(const RunGrid& grid, const Ranks& ranks, int* warp_sums) {
  int of_others = 0;
  for (unsigned block = threadIdx.x; block < blockIdx.x; block += kThreads)
    of_others += ranks.block_sums[block];
  int first;
  block_exclusive_sum<kThreads / 32>(of_others, warp_sums, &first);
  const Share share(ranks.pages);
  for (std::int64_t from = share.begin; from < share.end; from += kThreads) {
    const std::int64_t page = from + threadIdx.x;
    const int own = page < share.end ? sites_of_page(grid, ranks, page) : 0;
    int total;
    int rank = first + block_exclusive_sum<kThreads / 32>(own, warp_sums, &total);
    first += total;
    if (own == 0) continue;
    const auto* quads = reinterpret_cast<const uint4*>(grid.words) + page * kPageQuads;
    auto* to = reinterpret_cast<int4*>(grid.first_rows) + page * kPageQuads;
#pragma unroll
    for (int i = 0; i < kPageQuads; ++i) {
      const uint4 quad = quads[i];
      const int second = rank + __popc(quad.x), third = second + __popc(quad.y);
      const int fourth = third + __popc(quad.z);
      to[i] = make_int4(rank, second, third, fourth);  // of empty runs, too: nobody reads theirs
      rank = fourth + __popc(quad.w);
    }
  }
}

/// The third step, once all runs have their ranks: Ranks::rows and Ranks::coords.
template <bool kRowsOfFour>
__device__ void sort_sites(const Problem& grid, const std::int32_t* coords, const RunGrid& index,
                           const Ranks& ranks) {
  visit_sites<kRowsOfFour>(grid, coords, [&](std::int64_t row, const Site& site) {
    if (!site.inside) return;
    // Of several rows of one site any may win here: the result is not used.
    const std::int64_t rank = index.rank_at(index.settle(site.run, index.ask(site.run)), site.bit);
    ranks.rows[rank] = static_cast<std::int32_t>(row);
    if constexpr (kRowsOfFour) {
      reinterpret_cast<int4*>(ranks.coords)[rank] = reinterpret_cast<const int4*>(coords)[row];
    } else {
      const int columns = 1 + grid.ndim;
      for (int i = 0; i < columns; ++i)
        ranks.coords[rank * columns + i] = coords[row * columns + i];
    }
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
