/// @file mirrored_lists.cu
/// @brief rulebook, submanifold: lists of sorted sites serve two taps each, and are counted first.
///
/// - Before: count_scan_fill.cu
/// - After: brick_lists.cu
/// - The indices: shared/run_grid.cuh, shared/run_table.cuh
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
/// The first kernel, cooperative as in cooperative_launch.cu, tells the host how many pairs there
/// are; the second runs meanwhile. For unsorted sites all taps are looked up.
/// **Expect.** 37 us on an H200 for 125,562 sites and 0.79 million pairs (sweep-subm3-pairs): the
/// look-ups of cooperative_launch.cu, for two planes of taps instead of three, and 9 MB kept and
/// read. 160 us for 913,903 sites and 11.8 million pairs (large-subm3-pairs).
/// @expect launches 3
/// @expect lanes.nbr.store 0
/// @expect lanes.pairs.store 3 * 3838 = 11514, of 3838 pairs
/// **Costs.** As cooperative_launch.cu, and 4 bytes a row and tap. The host waits once. Pairs only.
/// **Try.** Let a thread count for a whole run, by the bits that its word and its neighbour's,
/// shifted by one, have in common. What does it cost to find out which rows begin a run?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/block_sum.cuh"
#include "cuda_optimized/rulebook/shared/pair_lists.cuh"
#include "cuda_optimized/rulebook/shared/run_grid.cuh"
#include "cuda_optimized/rulebook/shared/run_table.cuh"
#include "cuda_optimized/rulebook/shared/tile_counts.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using pair_lists::InOut;

constexpr int kSumThreads = 1024;   ///< Of rulebook_submanifold_mirrored_lists_sum_counts().
constexpr int kWriteThreads = 128;  ///< Of rulebook_submanifold_mirrored_lists_write_lists().
constexpr int kMaxResident = 4096;  ///< More blocks than are resident on any device.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: warps stride.

/// What the host reads in the middle of the run.
struct Count {
  unsigned long long pairs;  ///< Of all taps.
  std::int32_t bad;          ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t sorted;       ///< Not 0: the rows are in the order of their sites.
};

/// What the blocks tell each other.
struct State {
  Count count;                          ///< By the blocks that have finished.
  std::uint32_t finished;               ///< How many those are.
  std::int32_t unsorted[kMaxResident];  ///< By block: not 0 where it met a row out of order.
};

/// Looks all taps up, and counts: what rulebook_submanifold_mirrored_lists_index_and_count() does
/// once all sites are entered.
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
    pairs +=
        tile_counts.look_up<kCube>(grid, coords, index, taps, task, parts, tiles, inputs, counts);
  }
  return pairs;
}

/// Empties the index, copies coords [N][1 + ndim] and looks at their order, enters all sites, looks
/// the taps up and counts. inputs [KV][N]: where a tap leads each row, or -1. counts [taps][tiles]:
/// how many of a tile are not -1. A cooperative, one-dimensional grid of kCountThreads.
/// @param groups of run_grid; 0 where there is none
template <bool kCube>
__global__ void __launch_bounds__(kCountThreads)
    rulebook_submanifold_mirrored_lists_index_and_count(
        runs::Problem grid, const std::int32_t* coords, runs::Table table, runs::RunGrid run_grid,
        std::int64_t groups, std::int64_t tiles, State* state, std::int32_t* inputs,
        std::int32_t* counts, std::int32_t* out_coords, Letter<Count>* count) {
  __shared__ TileCounts tile_counts;
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = thread_of_grid<kCountThreads>();
  const std::int64_t threads = threads_of_grid<kCountThreads>();

  runs::clear(run_grid, groups, thread, threads);
  if (groups == 0) runs::clear(table, thread, threads);
  const bool in_order = runs::copy_sites<kCube>(grid, coords, thread, threads, out_coords);
  const int out_of_order = __syncthreads_or(in_order ? 0 : 1);  // a barrier that also combines
  if (threadIdx.x == 0) state->unsorted[blockIdx.x] = out_of_order;
  if (thread == 0) {
    state->count = {};
    state->finished = 0;
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
    runs::insert<kCube>(grid, coords, table, sorted, thread, threads, &state->count.bad);
  }
  all_blocks.sync();  // all sites are in the index before any is looked up

  const Taps taps(grid.KV, grid.kernel[runs::kOuterAxes], sorted);
  const unsigned long long pairs =
      dense
          ? look_up_and_count<kCube>(grid, coords, run_grid, taps, tiles, tile_counts, inputs,
                                     counts)
          : look_up_and_count<kCube>(grid, coords, table, taps, tiles, tile_counts, inputs, counts);
  if (!pair_lists::adds_up_last(pairs, &state->count.pairs, &state->finished)) return;
  state->count.sorted = sorted ? 1 : 0;
  count->send({__ldcg(&state->count.pairs), __ldcg(&state->count.bad), sorted ? 1 : 0});
}

/// row_exclusive_sums() for the taps that were looked up: counts [taps][tiles] become the places of
/// each tile in the list of the tap, and totals [taps]. Any one-dimensional grid of kSumThreads.
__global__ void __launch_bounds__(kSumThreads)
    rulebook_submanifold_mirrored_lists_sum_counts(int KV, std::int64_t tiles, const State* state,
                                                   std::int32_t* counts, std::int32_t* totals) {
  wait_for_kernel_before();  // counts and state
  const int taps = Taps(KV, 1, state->count.sorted != 0).count;
  row_exclusive_sums<kSumThreads>(taps, tiles, gridDim.x, counts, totals);
}

/// pairs [P][3]: each warp writes those of a tap and a tile, and their mirrors. Any one-dimensional
/// grid of kWriteThreads.
/// @param inputs of rulebook_submanifold_mirrored_lists_index_and_count()
/// @param places [taps][tiles]: where they begin in the list of the tap
__global__ void __launch_bounds__(kWriteThreads) rulebook_submanifold_mirrored_lists_write_lists(
    Taps taps, int KV, std::int64_t N, std::int64_t P, std::int64_t tiles,
    const std::int32_t* __restrict__ inputs, const std::int32_t* __restrict__ places,
    const std::int32_t* __restrict__ totals, std::int32_t* __restrict__ pairs) {
  __shared__ InOut staged_by_warp[kWriteThreads / 32][kTileRows];
  InOut* const staged = staged_by_warp[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t thread = thread_of_grid<kWriteThreads>();
  const std::int64_t threads = threads_of_grid<kWriteThreads>();
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
      const std::int32_t row = static_cast<std::int32_t>(tile * kTileRows) + 32 * i + lane;
      count = pair_lists::stage(in[i] >= 0, {in[i], row}, staged, count);
    }
    __syncwarp();  // all pairs are there before other lanes write them
    std::int32_t* const own = pairs + (list + place) * kPairColumns;
    // The opposite list ends where those of the taps before this one, mirrored, begin.
    std::int32_t* const mirrored = pairs + (P - (list + total) + place) * kPairColumns;
    const int opposite = taps.is_mirrored(k) ? KV - 1 - k : -1;
    pair_lists::write_both(staged, count, k, own, opposite, mirrored);
    __syncwarp();  // all have been written before those of the next task overwrite them
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  return runs::declined(book);
}

/// The workspace, front to back.
struct Workspace {
  State* state;            ///< Of the first kernel.
  runs::Table table;       ///< The index of sites in any order.
  runs::RunGrid run_grid;  ///< That of sorted ones.
  std::int32_t* inputs;    ///< What was looked up, by tap and row.
  std::int32_t* counts;    ///< By tap and tile.
  std::int32_t* totals;    ///< By tap.
  std::size_t bytes;       ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.table = runs::cut_table(book.sites, &cutter);
  work.run_grid = runs::cut_run_grid(book, &cutter);
  work.inputs = cutter.take<std::int32_t>(std::int64_t{book.KV} * book.sites);
  work.counts = cutter.take<std::int32_t>(book.KV * tiles_of(book));
  work.totals = cutter.take<std::int32_t>(book.KV);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

template <bool kCube>
void run_kernels(const RulebookProblem& book, const std::int32_t* coords, std::int32_t* out_coords,
                 const RulebookArrays& arrays, const Context& context) {
  static const int most_blocks = std::min(
      resident_blocks(rulebook_submanifold_mirrored_lists_index_and_count<kCube>, kCountThreads),
      kMaxResident);
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const std::int64_t tiles = tiles_of(book);
  // As many tasks as if sites were not sorted, which only the device knows yet.
  const std::int64_t tasks = tiles * (kCube ? runs::kPlanes : 1);

  HostMessage<Count> message;
  launch_cooperatively(rulebook_submanifold_mirrored_lists_index_and_count<kCube>,
                       {blocks_for(tasks, TileCounts::kTiles, most_blocks), kCountThreads},
                       runs::Problem(book), coords, work.table, work.run_grid,
                       runs::group_count(book), tiles, work.state, work.inputs, work.counts,
                       out_coords, message.letter());
  message.expect();
  launch_early(rulebook_submanifold_mirrored_lists_sum_counts,
               {blocks_for(book.KV, 1, kMaxBlocks), kSumThreads}, book.KV, tiles, work.state,
               work.counts, work.totals);

  const Count count = message.received();
  if (count.bad != 0) runs::require_no_bad_rows(book, coords, &work.state->count.bad);
  const auto P = static_cast<std::int64_t>(count.pairs);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  const Taps taps(book.KV, book.kernel[book.ndim - 1], count.sorted != 0);
  launch_early(rulebook_submanifold_mirrored_lists_write_lists,
               {blocks_for(tiles * taps.count, kWriteThreads / 32, kMaxBlocks), kWriteThreads},
               taps, book.KV, std::int64_t{book.sites}, P, tiles, work.inputs, work.counts,
               work.totals, pairs);
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  if (book.sites == 0) {
    arrays.create("pairs", {0, kPairColumns});
    return;
  }
  const bool cube = runs::is_cube_of_3(book, coords, out_coords);
  (cube ? run_kernels<true> : run_kernels<false>)(book, coords, out_coords, arrays, context);
}

std::string choice_in_words(const RulebookProblem& book) {
  if (book.sites == 0) return "no sites";
  return text(runs::kernel_in_words(book), ", ", runs::index_in_words(book), ", ",
              how_many(tiles_of(book), "tile"),
              tiles_of(book) > kSumThreads ? " summed in several rounds" : "");
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_mirrored_lists = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
