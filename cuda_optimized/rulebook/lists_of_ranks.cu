/// @file lists_of_ranks.cu
/// @brief rulebook, submanifold: mirrored lists of sites in any order, by their ranks.
///
/// - Before: mirrored_lists.cu
/// - The ranks: run_ranks.cuh; the lists: tile_counts.cuh, pair_lists.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** mirrored_lists.cu writes each list twice where the sites are sorted. Any sites
/// are, if they are named by their *rank*, the number of sites before in the order of cells. The
/// bits of the grid tell it, whatever order they were set in:
///
///     rows   0: cell 9   1: cell 3   2: cell 8   3: cell 2            as they come
///     bits   . . # # . . . . # # . .       ranks   0: row 3   1: row 1   2: row 2   3: row 0
///
/// ranked_bit_grid.cu hands out places in any order, as a table does not show it. Lists do: so here
/// a run's first rank is counted. Each block adds up its share of the words; behind a barrier it
/// adds what the blocks before it have counted. Pages of 32 words without sites, which are most,
/// are passed over. Then all rows go to their ranks, coordinates and all: a sort without a sort.
///
///     clear, copy, compare | set bits | count | first ranks | place sites | look up    barriers: |
///
/// From there on all is as for sorted sites. Only when a pair is written, ranks become rows.
/// **Expect.** On an H200, sorted rows as in mirrored_lists.cu. A sweep in a scanner's order
/// (scanned-subm3-pairs) takes 52 us instead of 68, in no order (shuffled-subm3-pairs) little more:
/// three barriers of 1.4 us, 2 MB of coordinates written where their ranks are, and half of the
/// look-ups, which then read words side by side.
/// @expect on --shape 12,12,12 --sites 512 --form pairs
/// @expect launches 3
/// @expect lanes.coords.load 2 * 512 - 1 + 512 + 2 * 512 = 2559, compare, set, place: 4 numbers
/// @expect lanes.pairs.store 3 * 3838 = 11514, of 3838 pairs
/// **Costs.** As mirrored_lists.cu, and 20 bytes a site. Within a tap, pairs of unsorted rows are
/// in the order of cells: the same in each run, but not by row. Declined: more than 2^26 runs.
/// **Try.** Is the order of `pairs` worth a sort by row? Ask the rungs of sparse_conv and
/// sparse_wgrad which one they like better: whose features lie side by side?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/pair_lists.cuh"
#include "cuda_optimized/rulebook/run_ranks.cuh"
#include "cuda_optimized/rulebook/tile_counts.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using pair_lists::InOut;

constexpr int kSumThreads = 1024;             ///< Of sum_counts().
constexpr int kWriteThreads = 128;            ///< Of write_lists().
constexpr int kMaxResident = 4096;            ///< More blocks than are resident on any device.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: warps stride.

/// What the host reads in the middle of the run.
struct Count {
  unsigned long long pairs;  ///< Of all taps.
  std::int32_t bad;          ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t sorted;       ///< Not 0: a site's rank is its row.
};

/// What the blocks tell each other.
struct State {
  Count count;                          ///< By the blocks that have finished.
  std::uint32_t finished;               ///< How many those are.
  std::int32_t unsorted[kMaxResident];  ///< By block: not 0 where it met a row out of order.
};

/// Looks all taps up, and counts: what index_and_count() does once all sites are entered.
/// @tparam kCube 27 taps side by side: three threads a row, or two where the third is a mirror
/// @returns pairs that this thread has counted
template <bool kCube>
__device__ unsigned long long look_up_and_count(const runs::Problem& grid,
                                                const std::int32_t* coords,
                                                const runs::RunGrid& index, const Taps& taps,
                                                std::int64_t tiles, TileCounts& tile_counts,
                                                std::int32_t* inputs, std::int32_t* counts) {
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

/// Empties the index, copies coords [N][1 + ndim] and looks at their order, enters and ranks all
/// sites, looks the taps up and counts. inputs [KV][N]: where a tap leads each rank, or -1. counts
/// [taps][tiles]: how many of a tile are not -1. A cooperative, one-dimensional grid of
/// kCountThreads.
template <bool kCube>
__global__ void __launch_bounds__(kCountThreads)
    index_and_count(runs::Problem grid, const std::int32_t* coords, runs::RunGrid index,
                    runs::Ranks ranks, Taps taps, std::int64_t tiles, State* state,
                    std::int32_t* inputs, std::int32_t* counts, std::int32_t* out_coords,
                    Letter<Count>* count) {
  __shared__ TileCounts tile_counts;
  __shared__ int warp_sums[kCountThreads / 32];
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = thread_of_grid<kCountThreads>();
  const std::int64_t threads = threads_of_grid<kCountThreads>();

  runs::clear(index, ranks, thread, threads);
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
  if (sorted) {  // the same for all blocks
    runs::insert_sorted<kCube>(grid, coords, index, thread, threads);
  } else {
    runs::insert_unsorted<kCube>(grid, coords, index, ranks, &state->count.bad);
    all_blocks.sync();  // all sites are entered before any are counted
    runs::count_shares<kCountThreads>(index, ranks, warp_sums);
    all_blocks.sync();  // all blocks have counted before any adds up what others have
    runs::number_runs<kCountThreads>(index, ranks, warp_sums);
    all_blocks.sync();  // all runs have their first rank before sites count on from it
    runs::sort_sites<kCube>(grid, coords, index, ranks);
  }
  all_blocks.sync();  // all sites are in the index, by rank, before any is looked up

  const unsigned long long pairs = look_up_and_count<kCube>(
      grid, sorted ? coords : ranks.coords, index, taps, tiles, tile_counts, inputs, counts);
  if (pair_lists::adds_up_last(pairs, &state->count.pairs, &state->finished))
    count->send({__ldcg(&state->count.pairs), __ldcg(&state->count.bad), sorted ? 1 : 0});
}

/// row_exclusive_sums() for the taps that were looked up: counts [taps][tiles] become the places of
/// each tile in the list of the tap, and totals [taps]. Any one-dimensional grid of kSumThreads.
__global__ void __launch_bounds__(kSumThreads)
    sum_counts(int taps, std::int64_t tiles, std::int32_t* counts, std::int32_t* totals) {
  wait_for_kernel_before();  // counts
  row_exclusive_sums<kSumThreads>(taps, tiles, gridDim.x, counts, totals);
}

/// pairs [P][3]: each warp writes those of a tap and a tile, and their mirrors. Any one-dimensional
/// grid of kWriteThreads.
/// @param inputs of index_and_count()
/// @param rows [N], by rank; null where a site's rank is its row
/// @param places [taps][tiles]: where they begin in the list of the tap
__global__ void __launch_bounds__(kWriteThreads)
    write_lists(Taps taps, int KV, std::int64_t N, std::int64_t P, std::int64_t tiles,
                const std::int32_t* __restrict__ inputs, const std::int32_t* __restrict__ rows,
                const std::int32_t* __restrict__ places, const std::int32_t* __restrict__ totals,
                std::int32_t* __restrict__ pairs) {
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
    std::int32_t in[kRowsEach], out[kRowsEach];
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      const std::int64_t rank = tile * kTileRows + 32 * i + lane;
      in[i] = rank < N ? inputs[k * N + rank] : -1;
      out[i] = static_cast<std::int32_t>(rank);
      if (in[i] >= 0 && rows != nullptr) in[i] = rows[in[i]], out[i] = rows[rank];
    }
    const std::int32_t place = places[task], total = totals[k];
    const std::int64_t list = pair_lists::begin_of_list(totals, k);
    int count = 0;
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i)
      count = pair_lists::stage(in[i] >= 0, {in[i], out[i]}, staged, count);
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
  return runs::declined_by_grid(book);
}

/// The workspace, front to back.
struct Workspace {
  State* state;          ///< Of the first kernel.
  runs::RunGrid index;   ///< Of all sites.
  runs::Ranks ranks;     ///< Of unsorted ones.
  std::int32_t* inputs;  ///< What was looked up, by tap and rank.
  std::int32_t* counts;  ///< By tap and tile.
  std::int32_t* totals;  ///< By tap.
  std::size_t bytes;     ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.state = cutter.take<State>(1);
  work.ranks.pages = runs::page_count(book);
  work.index.words = cutter.take<std::uint32_t>(work.ranks.pages * runs::kPageRuns);
  work.index.first_rows = cutter.take<std::int32_t>(work.ranks.pages * runs::kPageRuns);
  work.ranks.used = cutter.take<std::uint32_t>(work.ranks.pages);
  work.ranks.block_sums = cutter.take<std::int32_t>(kMaxResident);
  work.ranks.rows = cutter.take<std::int32_t>(book.sites);
  work.ranks.coords = cutter.take<std::int32_t>(std::int64_t{book.sites} * (1 + book.ndim));
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
  static const int most_blocks =
      std::min(resident_blocks(index_and_count<kCube>, kCountThreads), kMaxResident);
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const std::int64_t tiles = tiles_of(book);
  const Taps taps(book.KV, book.kernel[book.ndim - 1], true);  // ranks are in order
  const std::int64_t tasks = tiles * (kCube ? ceil_div(taps.count, runs::kPlaneTaps) : 1);

  HostMessage<Count> message;
  launch_cooperatively(index_and_count<kCube>,
                       {blocks_for(tasks, TileCounts::kTiles, most_blocks), kCountThreads},
                       runs::Problem(book), coords, work.index, work.ranks, taps, tiles, work.state,
                       work.inputs, work.counts, out_coords, message.letter());
  message.expect();
  launch_early(sum_counts, {blocks_for(taps.count, 1, kMaxBlocks), kSumThreads}, taps.count, tiles,
               work.counts, work.totals);

  const Count count = message.received();
  if (count.bad != 0) runs::require_no_bad_rows(book, coords, &work.state->count.bad);
  const auto P = static_cast<std::int64_t>(count.pairs);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch_early(write_lists,
               {blocks_for(tiles * taps.count, kWriteThreads / 32, kMaxBlocks), kWriteThreads},
               taps, book.KV, std::int64_t{book.sites}, P, tiles, work.inputs,
               count.sorted != 0 ? nullptr : work.ranks.rows, work.counts, work.totals, pairs);
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
  return text(runs::kernel_in_words(book), ", ", how_many(tiles_of(book), "tile"),
              tiles_of(book) > kSumThreads ? " summed in several rounds" : "");
}

}  // namespace

extern const Implementation<RulebookArrays> lists_of_ranks = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
