/// @file mirrored_lists.cu
/// @brief rulebook, submanifold: lists of sorted sites serve two taps each, and are counted first.
///
/// - Before: count_scan_fill.cu
/// - The indices: run_grid.cuh, run_table.cuh; the look-ups: runs.cuh; the lists: pair_lists.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** If output 7 meets input 3 at tap k, then output 3 meets input 7 at the opposite
/// tap. Where the *sites* are sorted, the opposite list is in order, too: tap k moves all sites the
/// same way, so the first of two stays the first.
///
///     tap 3, `left`       out  1  2  5  9          in  0  1  4  8      both ascend
///     tap 5, `right`      out  0  1  4  8          in  1  2  5  9      the same list, exchanged
///
/// So the taps behind the centre are not looked up. What the others find is kept, and counted by
/// tap and tile of 256 rows; each pair is then written to both lists.
///
///     index_and_count   clear, copy | enter the runs | look up, keep, count by tap and tile
///     sum_counts        the sums of the counts before, tap by tap: places in the list
///     write_lists       read what was kept, and write each pair to both lists
///
/// The first kernel, cooperative as in fused.cu, tells the host how many pairs there are; the
/// second runs meanwhile. For unsorted sites all taps are looked up.
/// **Expect.** 37 us on an H200 for 125,562 sites and 0.79 million pairs (sweep-subm3-pairs): the
/// look-ups of fused.cu, for two planes of taps instead of three, and 9 MB kept and read. 160 us
/// for 913,903 sites and 11.8 million pairs (large-subm3-pairs).
/// **Costs.** As fused.cu, and 4 bytes for each tap of a row. The host waits once. Form pairs only.
/// **Try.** Let a thread count for a whole run, by the bits that its word and its neighbour's,
/// shifted by one, have in common. What does it cost to find out which rows begin a run?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/host_message.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/pair_lists.cuh"
#include "cuda_optimized/rulebook/run_grid.cuh"
#include "cuda_optimized/rulebook/run_table.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using pair_lists::InOut;

constexpr int kCountThreads = 1024;           ///< Of index_and_count().
constexpr int kSumThreads = 1024;             ///< Of sum_counts().
constexpr int kWriteThreads = 128;            ///< Of write_lists().
constexpr int kRowsEach = 8;                  ///< Of a lane: their loads are in flight together.
constexpr int kTileRows = 32 * kRowsEach;     ///< Of a warp that writes, of 8 that count.
constexpr int kMaxResident = 4096;            ///< More blocks than are resident on any device.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: warps stride.
constexpr unsigned kWholeWarp = runs::kWholeWarp;

/// What the host reads in the middle of the run.
struct Count {
  std::int64_t pairs;   ///< Of all taps.
  std::int32_t bad;     ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t sorted;  ///< Not 0: the rows are in the order of their sites.
};

/// What the blocks tell each other.
struct State {
  unsigned long long pairs;             ///< Counted by the blocks that have finished.
  std::uint32_t finished;               ///< How many those are.
  std::int32_t bad;                     ///< As Count::bad.
  std::int32_t sorted;                  ///< As Count::sorted.
  std::int32_t unsorted[kMaxResident];  ///< By block: not 0 where it met a row out of order.
};

/// The taps that are looked up, from the first on: all, or up to the centre where those behind it
/// are mirrors. They stand in lines along the innermost axis.
struct Taps {
  bool sorted;
  int centre, count, lines;

  HOST_DEVICE Taps(int KV, int taps_of_line, bool is_sorted)
      : sorted(is_sorted), centre(KV / 2), count(sorted ? centre + 1 : KV),
        lines(ceil_div(count, taps_of_line)) {}
  /// Whether the list of a tap is the opposite tap's, too.
  __device__ bool is_mirrored(int k) const { return sorted && k < centre; }
};

/// The pairs of a tile, counted by the warps that share it.
struct TileCounts {
  static constexpr int kAtOnce = runs::kPlaneTaps;          ///< Taps that are counted together.
  static constexpr int kWarps = kTileRows / 32;             ///< Of a tile.
  static constexpr int kTiles = kCountThreads / kTileRows;  ///< Of a block.

  int of_warp[kTiles][kWarps][kAtOnce];  ///< Shared memory.

  /// Counts kAtOnce taps from `first` on, as far as `taps` goes, in this thread's tile; all threads
  /// of the block call it. @param found bit i: this thread's row has tap first + i
  /// @param counts [taps][tiles] @returns what this thread has counted, mirrors too
  __device__ unsigned count(const Taps& taps, int first, std::int64_t tile, std::int64_t tiles,
                            std::uint32_t found, std::int32_t* counts) {
    const int of_block = static_cast<int>(threadIdx.x) / kTileRows;
    const int thread = static_cast<int>(threadIdx.x) % kTileRows;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int hits = __popc(__ballot_sync(kWholeWarp, (found >> i & 1) != 0));
      if (thread % 32 == i) of_warp[of_block][thread / 32][i] = hits;
    }
    __syncthreads();  // all warps have counted before one of the tile's adds up
    unsigned pairs = 0;
    const int k = first + thread;
    if (thread < kAtOnce && k < taps.count && tile < tiles) {
      int hits = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) hits += of_warp[of_block][warp][thread];
      counts[k * tiles + tile] = hits;
      pairs = static_cast<unsigned>(taps.is_mirrored(k) ? 2 * hits : hits);
    }
    __syncthreads();  // they are added up before the next taps' counts overwrite them
    return pairs;
  }
};

/// Looks all taps up, and counts: what index_and_count() does once all sites are entered.
/// @tparam kCube 27 taps side by side: three threads a row, or two where the third is a mirror
/// @returns pairs that this thread has counted
template <bool kCube, class Index>
__device__ unsigned long long look_up_and_count(const runs::Problem& grid,
                                                const std::int32_t* coords, const Index& index,
                                                const Taps& taps, std::int64_t tiles,
                                                TileCounts& tile_counts, std::int32_t* inputs,
                                                std::int32_t* counts) {
  const int parts = kCube ? ceil_div(taps.count, runs::kPlaneTaps) : 1;
  unsigned long long pairs = 0;
  for (std::int64_t first = std::int64_t{blockIdx.x} * TileCounts::kTiles; first < tiles * parts;
       first += std::int64_t{gridDim.x} * TileCounts::kTiles) {
    const auto task = static_cast<unsigned>(first + threadIdx.x / kTileRows);  // below 2^31
    const std::int64_t tile = task / static_cast<unsigned>(parts);
    const std::int64_t row = tile * kTileRows + threadIdx.x % kTileRows;
    const bool is_row = row < grid.sites;
    runs::Cell cell{-1, {}};
    if (is_row) cell = runs::cell_of<kCube>(grid, coords, row);
    if constexpr (kCube) {
      const int plane = static_cast<int>(task - tile * parts), tap = plane * runs::kPlaneTaps;
      std::uint32_t found = 0;
      if (is_row) found = runs::look_up_plane(grid, cell, index, taps.sorted, plane, row, inputs);
      pairs += tile_counts.count(taps, tap, tile, tiles, found >> tap, counts);
    } else {
      if (is_row) runs::look_up(grid, cell, index, taps.sorted, row, taps.lines, inputs, nullptr);
      for (int tap = 0; tap < taps.count; tap += TileCounts::kAtOnce) {
        std::uint32_t found = 0;
        for (int i = 0; is_row && i < TileCounts::kAtOnce && tap + i < taps.count; ++i) {
          if (inputs[std::int64_t{tap + i} * grid.sites + row] >= 0) found |= 1u << i;
        }
        pairs += tile_counts.count(taps, tap, tile, tiles, found, counts);
      }
    }
  }
  return pairs;
}

/// Empties the index, copies coords [N][1 + ndim] and looks at their order, enters all sites, looks
/// the taps up and counts. inputs [KV][N]: where a tap leads each row, or -1. counts [taps][tiles]:
/// how many of a tile are not -1. A cooperative, one-dimensional grid of kCountThreads.
/// @param groups of run_grid; 0 where there is none
template <bool kCube>
__global__ void __launch_bounds__(kCountThreads)
    index_and_count(runs::Problem grid, const std::int32_t* coords, runs::Table table,
                    runs::RunGrid run_grid, std::int64_t groups, std::int64_t tiles, State* state,
                    std::int32_t* inputs, std::int32_t* counts, std::int32_t* out_coords,
                    Letter<Count>* count) {
  __shared__ TileCounts tile_counts;
  __shared__ unsigned long long pairs_of_block;
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = std::int64_t{blockIdx.x} * kCountThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kCountThreads;

  runs::clear(run_grid, groups, thread, threads);
  if (groups == 0) runs::clear(table, thread, threads);
  const bool in_order = runs::copy_sites<kCube>(grid, coords, thread, threads, out_coords);
  const int out_of_order = __syncthreads_or(in_order ? 0 : 1);  // a barrier that also combines
  if (threadIdx.x == 0) {
    state->unsorted[blockIdx.x] = out_of_order;
    pairs_of_block = 0;
  }
  if (thread == 0) {
    state->pairs = 0;
    state->finished = 0;
    state->bad = 0;
  }
  all_blocks.sync();  // the index is empty and the flags are set before sites enter

  int any = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kCountThreads)
    any |= state->unsorted[block];
  const bool sorted = __syncthreads_or(any) == 0;
  const bool dense = sorted && groups > 0;
  if (!dense && groups > 0) {  // the same for all blocks
    runs::clear(table, thread, threads);
    all_blocks.sync();  // the table is empty before sites enter
  }
  if (dense) {
    runs::insert_sorted<kCube>(grid, coords, run_grid, thread, threads);
  } else {
    runs::insert<kCube>(grid, coords, table, sorted, thread, threads, &state->bad);
  }
  all_blocks.sync();  // all sites are in the index before any is looked up

  const Taps taps(grid.KV, grid.kernel[runs::kOuterAxes], sorted);
  const unsigned long long pairs =
      dense
          ? look_up_and_count<kCube>(grid, coords, run_grid, taps, tiles, tile_counts, inputs,
                                     counts)
          : look_up_and_count<kCube>(grid, coords, table, taps, tiles, tile_counts, inputs, counts);
  if (pairs != 0) atomicAdd(&pairs_of_block, pairs);
  __syncthreads();  // all threads have added theirs
  if (threadIdx.x != 0) return;
  atomicAdd(&state->pairs, pairs_of_block);
  __threadfence();  // the block's pairs are counted before it says that it has finished
  if (atomicAdd(&state->finished, 1u) != gridDim.x - 1) return;
  __threadfence();  // the sum is not read before the last block has finished
  state->sorted = sorted ? 1 : 0;
  count->send(
      {static_cast<std::int64_t>(__ldcg(&state->pairs)), __ldcg(&state->bad), sorted ? 1 : 0});
}

/// row_exclusive_sums() for the taps that were looked up: counts [taps][tiles] become the places of
/// each tile in the list of the tap, and totals [taps]. Any one-dimensional grid of kSumThreads.
__global__ void __launch_bounds__(kSumThreads)
    sum_counts(int KV, std::int64_t tiles, const State* state, std::int32_t* counts,
               std::int32_t* totals) {
  wait_for_kernel_before();  // counts and state
  const int taps = Taps(KV, 1, state->sorted != 0).count;
  row_exclusive_sums<kSumThreads>(taps, tiles, gridDim.x, counts, totals);
}

/// pairs [P][3]: each warp writes those of a tap and a tile, and their mirrors. Any one-dimensional
/// grid of kWriteThreads.
/// @param inputs of index_and_count()
/// @param places [taps][tiles]: where they begin in the list of the tap
__global__ void __launch_bounds__(kWriteThreads)
    write_lists(Taps taps, int KV, std::int64_t N, std::int64_t P, std::int64_t tiles,
                const std::int32_t* __restrict__ inputs, const std::int32_t* __restrict__ places,
                const std::int32_t* __restrict__ totals, std::int32_t* __restrict__ pairs) {
  __shared__ InOut found_by_warp[kWriteThreads / 32][kTileRows];
  InOut* const found = found_by_warp[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kWriteThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kWriteThreads;
  wait_for_kernel_before();  // places and totals
  for (std::int64_t task = thread / 32; task < tiles * taps.count; task += threads / 32) {
    // Fewer than 2^31, as `inputs` has 256 numbers for each: divided in 32 bits.
    const int k = static_cast<int>(static_cast<unsigned>(task) / static_cast<unsigned>(tiles));
    const std::int64_t tile = task - k * tiles;
    std::int32_t in[kRowsEach];
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      const std::int64_t row = tile * kTileRows + 32 * i + lane;
      in[i] = row < N ? inputs[k * N + row] : -1;
    }
    const std::int32_t place = places[task], total = totals[k];
    const std::int64_t list = pair_lists::begin_of_list(totals, k);
    int count = 0;
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      const unsigned hits = __ballot_sync(kWholeWarp, in[i] >= 0);
      if (in[i] >= 0)
        found[count + __popc(hits & ((1u << lane) - 1))] = {
            in[i], static_cast<std::int32_t>(tile * kTileRows) + 32 * i + lane};
      count += __popc(hits);
    }
    __syncwarp();  // all pairs are there before other lanes write them
    std::int32_t* const own = pairs + (list + place) * kPairColumns;
    // The opposite list ends where those of the taps before this one, mirrored, begin.
    std::int32_t* const mirrored = pairs + (P - (list + total) + place) * kPairColumns;
    const int opposite = taps.is_mirrored(k) ? KV - 1 - k : -1;
    pair_lists::visit_words(found, count, [&](int word, int column, const InOut& pair) {
      own[word] = column == 0 ? k : column == 1 ? pair.in : pair.out;
      if (opposite >= 0) mirrored[word] = column == 0 ? opposite : column == 1 ? pair.out : pair.in;
    });
    __syncwarp();  // all have been written before those of the next task overwrite them
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  return runs::declined(book);
}

std::int64_t tiles_of(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(book.sites, kTileRows);
}

/// State, both indices, what was looked up, counts and totals.
struct Workspace {
  State* state;
  runs::Table table;
  runs::RunGrid run_grid;
  std::int32_t *inputs, *counts, *totals;
};
constexpr std::size_t kStateBytes = ceil_div<std::size_t>(sizeof(State), 256) * 256;

std::size_t workspace_bytes(const RulebookProblem& book) {
  return alignof(State) + kStateBytes + runs::table_bytes(book.sites) + runs::run_grid_bytes(book) +
         static_cast<std::size_t>(book.KV * (book.sites + tiles_of(book) + 1)) *
             sizeof(std::int32_t);
}

/// From the first address on that the state's widest member may have: in the tests, a workspace
/// begins at any multiple of 4.
Workspace workspace_in(const RulebookProblem& book, const Arguments& arrays) {
  auto* memory = arrays.workspace<unsigned char>();
  memory += alignof(State) - reinterpret_cast<std::uintptr_t>(memory) % alignof(State);
  unsigned char* const table = memory + kStateBytes;
  unsigned char* const run_grid = table + runs::table_bytes(book.sites);
  auto* const inputs = reinterpret_cast<std::int32_t*>(run_grid + runs::run_grid_bytes(book));
  auto* const counts = inputs + std::int64_t{book.KV} * book.sites;
  return {.state = reinterpret_cast<State*>(memory),
          .table = runs::table_in(table, book.sites),
          .run_grid = runs::run_grid_in(run_grid, runs::group_count(book)),
          .inputs = inputs,
          .counts = counts,
          .totals = counts + book.KV * tiles_of(book)};
}

template <bool kCube>
void run_kernels(const RulebookProblem& book, const std::int32_t* coords, std::int32_t* out_coords,
                 const Arguments& arrays) {
  static const int most_blocks =
      std::min(resident_blocks(index_and_count<kCube>, kCountThreads), kMaxResident);
  const Workspace work = workspace_in(book, arrays);
  const std::int64_t tiles = tiles_of(book);
  const int of_line = book.kernel[book.ndim - 1];
  // As many tasks as if sites were not sorted, which only the device knows yet.
  const std::int64_t tasks = tiles * (kCube ? runs::kPlanes : 1);

  HostMessage<Count> message;
  launch_cooperatively(
      index_and_count<kCube>, {blocks_for(tasks, TileCounts::kTiles, most_blocks), kCountThreads},
      runs::Problem(book), coords, work.table, work.run_grid, runs::group_count(book), tiles,
      work.state, work.inputs, work.counts, out_coords, message.letter());
  message.expect();
  launch_early(sum_counts, {blocks_for(book.KV, 1, kMaxBlocks), kSumThreads}, book.KV, tiles,
               work.state, work.counts, work.totals);

  const Count count = message.received();
  if (count.bad != 0) runs::require_no_bad_rows(book, coords, &work.state->bad);
  auto* pairs = arrays.create<std::int32_t>("pairs", {count.pairs, kPairColumns});
  const Taps taps(book.KV, of_line, count.sorted != 0);
  launch_early(write_lists,
               {blocks_for(tiles * taps.count, kWriteThreads / 32, kMaxBlocks), kWriteThreads},
               taps, book.KV, std::int64_t{book.sites}, count.pairs, tiles, work.inputs,
               work.counts, work.totals, pairs);
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const Arguments& arrays) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  auto* out_coords = arrays.create<std::int32_t>("out_coords", {book.sites, 1 + book.ndim});
  if (book.sites == 0) {
    arrays.create<std::int32_t>("pairs", {0, kPairColumns});
    return;
  }
  const bool cube = runs::is_cube_of_3(book, coords, out_coords);
  (cube ? run_kernels<true> : run_kernels<false>)(book, coords, out_coords, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  if (book.sites == 0) return "no sites";
  return text(runs::kernel_in_words(book), ", ", runs::index_in_words(book), ", ",
              how_many(tiles_of(book), "tile"),
              tiles_of(book) > kSumThreads ? " summed in several rounds" : "");
}

}  // namespace

Implementation<RulebookProblem> mirrored_lists() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
