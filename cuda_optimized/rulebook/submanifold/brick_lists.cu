/// @file brick_lists.cu
/// @brief rulebook, submanifold: mirrored pair lists; half of the taps are looked up, in bricks.
///
/// - Before: count_scan_fill.cu
/// - The index: shared/bricks.cuh; the lists: shared/pair_lists.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** If a site has a neighbour at a tap, it is itself the neighbour's neighbour at the
/// opposite tap. One list of pairs serves both taps: with input and output exchanged it has the
/// pairs of the opposite tap. If the sites are sorted, both lists are in *canonical* order, by
/// output:
///
///     tap 12, by output    (5, 0) (0, 2) (3, 7)        input, output
///     tap 14, its mirror   (0, 5) (2, 0) (7, 3)        the same pairs, by input
///
/// For the taps up to the centre, rows are looked up in the bricks of paged_bricks.cu, and each
/// pair is written to both lists. The boards' bits give the number of pairs to the host early:
///
///     clear, copy | insert | look bits up, count; load rows    then sum    then write
///     the host                                  allocates, launches
///
/// **Expect.** On an H200 a sweep takes 28 us in scanner order (scanned-subm3-pairs) and sorted; in
/// random order (shuffled-subm3-pairs) 34 us. The first kernel has two barriers.
/// @expect on --shape 12,12,12 --sites 512 --form pairs
/// @expect launches 3
/// @expect lanes.coords.load 512 + 512 = 1024, to copy, and to hold from step to step
/// @expect lanes.pairs.store 3 * 3838 = 11514, of 3838 pairs
/// **Costs.** As paged_bricks.cu, and 4 bytes per row and tap up to the centre.
/// **Try.** Load the rows when they are written, not in the first kernel. When is it slower?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/bricks.cuh"
#include "cuda_optimized/rulebook/shared/pair_lists.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using pair_lists::InOut;

constexpr int kCountThreads = 512;  ///< Of rulebook_submanifold_brick_lists_index_and_count().
constexpr int kSumThreads = 1024;   ///< Of rulebook_submanifold_brick_lists_sum_counts().
constexpr int kWriteThreads = 128;  ///< Of rulebook_submanifold_brick_lists_write_lists().
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: warps stride.
constexpr int kRowsEach = 8;                  ///< Of a lane: their loads are in flight together.
constexpr int kTileRows = 32 * kRowsEach;     ///< Of a warp that writes, of 8 that count.

/// What the host reads during the run.
struct Count {
  unsigned long long pairs;  ///< Of all taps.
  std::int32_t bad;          ///< Rows outside of the grid, or repeated.
};

/// State shared by the blocks.
struct State {
  Count count;             ///< By the blocks that have counted.
  std::uint32_t finished;  ///< How many those are.
};

/// Taps up to the centre: only these of 27 are looked up. Those after the centre are mirrored.
template <bool kCube>
using TapsToCentre = std::conditional_t<kCube, bricks::CubeOfTaps<14>, bricks::AnyTaps>;

/// The work: tiles of rows, and for each the taps up to the centre, in groups. The taps after it
/// are mirrored.
struct Tasks {
  int taps;            ///< That are looked up.
  unsigned groups;     ///< Of as many taps as are looked up together.
  std::int64_t tiles;  ///< Of rows.

  /// Of a problem.
  Tasks(const RulebookProblem& book, bool cube)
      : taps(book.KV / 2 + 1),
        groups(static_cast<unsigned>(
            ceil_div(taps, cube ? TapsToCentre<true>::kTaps : TapsToCentre<false>::kTaps))),
        tiles(ceil_div<std::int64_t>(book.sites, kTileRows)) {}
  /// Each for kTileRows threads. Fewer than 2^31, limited by the memory of `inputs`.
  HOST_DEVICE std::int64_t count() const { return tiles * groups; }
  /// Whether the list of a tap is the opposite tap's, too.
  HOST_DEVICE bool is_mirrored(int k) const { return k < taps - 1; }
};

/// Clears the index, copies coords [N][1 + ndim], enters all sites, looks the taps up and counts.
/// inputs [taps][N]: where a tap leads each row, or -1. counts [taps][tiles]: how many of a tile
/// are not -1. A cooperative, one-dimensional grid of kCountThreads, of no more blocks than there
/// is work for.
template <bool kCube>
__global__ void __launch_bounds__(kCountThreads, kCube ? 2 : 1)
    rulebook_submanifold_brick_lists_index_and_count(runs::Problem grid, const std::int32_t* coords,
                                                     bricks::Index index, Tasks tasks, State* state,
                                                     std::int32_t* inputs, std::int32_t* counts,
                                                     std::int32_t* out_coords,
                                                     Letter<Count>* letter) {
  using Taps = TapsToCentre<kCube>;
  constexpr int kTiles = kCountThreads / kTileRows, kWarps = kTileRows / 32;
  __shared__ int hits_of_warp[kTiles][kWarps][Taps::kTaps];
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = thread_of_grid<kCountThreads>();
  const std::int64_t threads = threads_of_grid<kCountThreads>();
  runs::Cell cell = bricks::cell_or_none<kCube>(grid, coords, thread);  // of the first row

  bricks::begin<kCube>(grid, coords, index, thread, threads, out_coords);
  if (thread == 0) {
    state->count = {};
    state->finished = 0;
  }
  all_blocks.sync();  // the index is empty before any site is inserted

  std::int32_t page =
      bricks::enter<kCube>(grid, coords, index, thread, threads, cell, &state->count.bad);
  all_blocks.sync();  // all sites are in the index before any is looked up

  const int of_block = static_cast<int>(threadIdx.x) / kTileRows;
  const int of_tile = static_cast<int>(threadIdx.x) % kTileRows;
  const auto count = static_cast<unsigned>(tasks.count());
  const unsigned groups = kCube ? 1 : tasks.groups;
  const int last = kCube ? Taps::kTaps : tasks.taps;  // one past the last tap
  auto held = static_cast<std::int32_t>(thread);      // the row that `cell` and `page` are of
  unsigned long long pairs = 0;
  for (unsigned begin = blockIdx.x * kTiles; begin < count;) {
    const unsigned task = begin + of_block, tile = task / groups;
    const int first = static_cast<int>(task - tile * groups) * Taps::kTaps;
    const int end = first + Taps::kTaps < last ? first + Taps::kTaps : last;
    const auto row = static_cast<std::int32_t>(tile * kTileRows) + of_tile;  // below 2^26
    if (row != held) {
      cell = bricks::cell_or_none<kCube>(grid, coords, row);
      page = 0;
      held = row;
    }
    const Taps taps(grid, cell, index, first, row, page);
#pragma unroll
    for (int i = 0; i < Taps::kTaps; ++i) {
      const bool hit = (taps.found() >> i & 1) != 0 && first + i < end;
      const int hits = __popc(__ballot_sync(runs::kWholeWarp, hit));
      if (of_tile % 32 == i) hits_of_warp[of_block][of_tile / 32][i] = hits;
    }
    __syncthreads();  // all warps have counted before one warp adds up
    if (const int k = first + of_tile; k < end && tile < tasks.tiles) {
      int hits = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) hits += hits_of_warp[of_block][warp][of_tile];
      counts[k * tasks.tiles + tile] = hits;
      pairs += static_cast<unsigned>(tasks.is_mirrored(k) ? 2 * hits : hits);
    }
    begin += gridDim.x * kTiles;
    // The host needs the number only, and receives it while the rows are loaded.
    if (begin >= count && pair_lists::adds_up_last(pairs, &state->count.pairs, &state->finished))
      letter->send({__ldcg(&state->count.pairs), __ldcg(&state->count.bad)});

    std::int32_t rows[Taps::kTaps];
    taps.load_rows(index, 0, rows);
#pragma unroll
    for (int i = 0; i < Taps::kTaps; ++i) {
      if (first + i < end && row < grid.sites)
        inputs[std::int64_t{first + i} * grid.sites + row] = rows[i];
    }
    __syncthreads();  // all counts are added up before the next task's counts overwrite them
  }
}

/// row_exclusive_sums() for the taps that were looked up: counts [taps][tiles] become the begins of
/// each tile in the list of the tap, and totals [taps]. Any one-dimensional grid of kSumThreads.
__global__ void __launch_bounds__(kSumThreads)
    rulebook_submanifold_brick_lists_sum_counts(int taps, std::int64_t tiles, std::int32_t* counts,
                                                std::int32_t* totals) {
  wait_for_kernel_before();  // the previous kernel has stored the counts
  row_exclusive_sums<kSumThreads>(taps, tiles, gridDim.x, counts, totals);
}

/// pairs [P][3]: each warp writes those of a tap and a tile, and their mirrors. Any one-dimensional
/// grid of kWriteThreads.
/// @param inputs of rulebook_submanifold_brick_lists_index_and_count()
/// @param places [taps][tiles]: their begins in the list of the tap
__global__ void __launch_bounds__(kWriteThreads)
    rulebook_submanifold_brick_lists_write_lists(Tasks tasks, int KV, int N, std::int64_t P,
                                                 const std::int32_t* __restrict__ inputs,
                                                 const std::int32_t* __restrict__ places,
                                                 const std::int32_t* __restrict__ totals,
                                                 std::int32_t* __restrict__ pairs) {
  __shared__ InOut staged_by_warp[kWriteThreads / 32][kTileRows];
  InOut* const staged = staged_by_warp[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  const std::int64_t thread = thread_of_grid<kWriteThreads>();
  const std::int64_t threads = threads_of_grid<kWriteThreads>();
  wait_for_kernel_before();  // the previous kernel has stored inputs, places and totals
  for (std::int64_t task = thread / 32; task < tasks.tiles * tasks.taps; task += threads / 32) {
    // Fewer than 2^31, as `inputs` has 256 elements for each: 32-bit division suffices.
    const int k =
        static_cast<int>(static_cast<unsigned>(task) / static_cast<unsigned>(tasks.tiles));
    const auto tile = static_cast<unsigned>(task - k * tasks.tiles);
    const unsigned row = tile * kTileRows + lane;  // and every 32nd from there on
    const std::int32_t* const from = inputs + std::int64_t{k} * N + row;
    std::int32_t in[kRowsEach];
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i)
      in[i] = row + 32 * i < static_cast<unsigned>(N) ? from[32 * i] : -1;
    const std::int32_t place = places[task], total = totals[k];
    const std::int64_t list = pair_lists::begin_of_list(totals, k);
    int count = 0;
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i)
      count = pair_lists::stage(in[i] >= 0, {in[i], static_cast<std::int32_t>(row + 32 * i)},
                                staged, count);
    __syncwarp();  // all pairs are stored before other lanes write them out
    std::int32_t* const own = pairs + (list + place) * kPairColumns;
    // The opposite list ends where those of the taps before this one, mirrored, begin.
    std::int32_t* const mirrored = pairs + (P - (list + total) + place) * kPairColumns;
    const int opposite = tasks.is_mirrored(k) ? KV - 1 - k : -1;
    pair_lists::write_both(staged, count, k, own, opposite, mirrored);
    __syncwarp();  // all have been written before those of the next task overwrite them
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  return bricks::declined(book);
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  State* state;          ///< Of the first kernel.
  bricks::Index index;   ///< Of all sites.
  std::int32_t* inputs;  ///< Results of the look-ups, by tap and row.
  std::int32_t* counts;  ///< By tap and tile.
  std::int32_t* totals;  ///< Indexed by tap.
  std::size_t bytes;     ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  const Tasks tasks(book, false);
  work.state = cutter.take<State>(1);
  work.index = bricks::cut_index(book, &cutter);
  work.inputs = cutter.take<std::int32_t>(std::int64_t{tasks.taps} * book.sites);
  work.counts = cutter.take<std::int32_t>(tasks.taps * tasks.tiles);
  work.totals = cutter.take<std::int32_t>(tasks.taps);
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
      resident_blocks(rulebook_submanifold_brick_lists_index_and_count<kCube>, kCountThreads);
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const Tasks tasks(book, kCube);

  HostMessage<Count> message;
  launch_cooperatively(
      rulebook_submanifold_brick_lists_index_and_count<kCube>,
      {blocks_for(tasks.count(), kCountThreads / kTileRows, most_blocks), kCountThreads},
      runs::Problem(book), coords, work.index, tasks, work.state, work.inputs, work.counts,
      out_coords, message.letter());
  message.expect();
  launch_early(rulebook_submanifold_brick_lists_sum_counts,
               {blocks_for(tasks.taps, 1, kMaxBlocks), kSumThreads}, tasks.taps, tasks.tiles,
               work.counts, work.totals);

  const Count count = message.received();
  if (count.bad != 0) runs::require_no_bad_rows(book, coords, &work.state->count.bad);
  const auto P = static_cast<std::int64_t>(count.pairs);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch_early(
      rulebook_submanifold_brick_lists_write_lists,
      {blocks_for(tasks.tiles * tasks.taps, kWriteThreads / 32, kMaxBlocks), kWriteThreads}, tasks,
      book.KV, book.sites, P, work.inputs, work.counts, work.totals, pairs);
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
  const std::int64_t tiles = Tasks(book, false).tiles;
  return text(runs::kernel_in_words(book), ", ", how_many(tiles, "tile"),
              tiles > kSumThreads ? " summed in several rounds" : "");
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_brick_lists = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
