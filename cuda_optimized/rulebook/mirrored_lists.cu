/// @file mirrored_lists.cu
/// @brief rulebook, submanifold: lists of sorted sites serve two taps each, and are counted first.
///
/// - Before: count_scan_fill.cu (looks all taps up, and moves the pairs to their places later)
/// - The index: hash_of_runs.cu; the cooperative launch: fused.cu
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** If output 7 meets input 3 at tap k, then output 3 meets input 7 at the opposite
/// tap. symmetric.cu spares half of its look-ups so, and its lists are in no order. But where the
/// *sites* are sorted, the opposite list is in order, too: tap k leads all sites the same way, and
/// of two sites that go the same way the first one stays the first.
///
///     tap 3, `left`       out  1  2  5  9          in  0  1  4  8      both ascend
///     tap 5, `right`      out  0  1  4  8          in  1  2  5  9      the same list, exchanged
///
/// So of KV = 27 taps those behind the centre are not looked up: 5 lines of the window are asked
/// for, and not 9. Where a list begins, its opposite knows as well: as far from the end of `pairs`
/// as the other one ends from the beginning.
///
/// count_scan_fill puts the pairs that it has found aside until it knows their places. With a hash
/// of runs a look-up costs less than that: one word answers for a line of taps, and in sorted rows
/// the answer's bits also count the row. So it is done twice, and in between only the numbers are
/// kept, one for each tap of a tile of 128 rows.
///
///     index_and_count   clear, copy | enter the runs | count the hits of each tap and tile
///     sum_counts        the sums of the counts before, tap by tap: places in the list
///     write_lists       look up again, and write each pair to both lists
///
/// In between the host must learn how many pairs there are, to create `pairs`. The first kernel
/// writes their number into the host's own memory, and the second runs while the host wakes up
/// (core/cuda/host_message.hpp).
///
/// A warp writes what it found at a tap in 128 rows together: through shared memory, so that
/// neighbouring lanes store neighbouring words, whatever pair those belong to.
///
/// Sites in another order than their own have the same kernels, but all taps are looked up, as no
/// list is then another's mirror.
///
/// **Expect.** Predicted for an H200 and a LiDAR sweep of 125,562 sites, 0.79 million pairs: 12 us
/// to index and count, of which 5 are barriers and the ramp of the launch; 7 us from there until
/// the last kernel begins; 7 us in that, where storing 9.5 MB alone would take 2. Together 26 us.
/// (count_scan_fill has 66, spconv 66.) 913,903 sites with 11.8 million pairs: 25 + 7 + 60 us,
/// where 142 MB of pairs alone take 45. (count_scan_fill 319, spconv 438.)
/// **Costs.** 12 bytes a place of the table, and 128 more that only unsorted rows touch, for three
/// places to two sites; 4 bytes for each tap of 128 rows. The host waits once. Unsorted rows take
/// about twice as long. Declined: other forms than pairs, other modes than subm, and grids of more
/// than 2^32 runs.
/// **Try.** Let a thread count for a whole run, by the bits that its word and its neighbour's,
/// shifted by one, have in common. What does it cost to find out which rows begin a run?
#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/host_message.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/pair_lists.cuh"
#include "cuda_optimized/rulebook/run_table.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using pair_lists::InOut;

constexpr int kCountThreads = 1024;           ///< Of index_and_count().
constexpr int kSumThreads = 1024;             ///< Of sum_counts().
constexpr int kWriteThreads = 128;            ///< Of write_lists().
constexpr int kRowsEach = 4;                  ///< Of a lane: their loads are in flight together.
constexpr int kTileRows = 32 * kRowsEach;     ///< Of a warp.
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
  int centre, count, of_line, lines;

  HOST_DEVICE Taps(int KV, int taps_of_line, bool is_sorted)
      : sorted(is_sorted), centre(KV / 2), count(sorted ? centre + 1 : KV), of_line(taps_of_line),
        lines(ceil_div(count, of_line)) {}
  /// Whether the list of a tap is the opposite tap's, too.
  __device__ bool is_mirrored(int k) const { return sorted && k < centre; }
  __device__ int first(int line) const { return line * of_line; }
  __device__ int end(int line) const {
    return first(line) + of_line < count ? first(line) + of_line : count;
  }
};

/// Sites of a run: its word, and what leads from a bit to a row.
struct Held {
  std::uint32_t word;
  std::int32_t base;  ///< Of sorted sites the first row, else the place in the table.

  __device__ Held() : word(0), base(0) {}
  __device__ Held(const runs::Table& table, const runs::Table::Found& found, bool sorted)
      : word(found.word), base(0) {
    if (word != 0)
      base = sorted ? table.first_rows[found.place] : static_cast<std::int32_t>(found.place);
  }
};

/// A tile of rows and a line of taps: what is there, seen by one lane of the warp whose they are.
template <bool kRowsOfFour>
class TileLine {
 public:
  /// Where a tap leads one of the lane's rows.
  struct Cell {
    Held held;
    int bit;
    bool is_site;
  };

  /// Looks up the run where the line's first tap leads, and the one behind it, if the others end
  /// there.
  /// @param taps from the line's first on
  __device__ TileLine(const runs::Problem& grid, const std::int32_t* coords,
                      const runs::Table& table, bool sorted, std::int64_t first_row, int line,
                      int taps)
      : table_(table), extent_(static_cast<std::uint32_t>(grid.shape[runs::kOuterAxes])),
        dilation_(static_cast<std::uint32_t>(grid.dilation[runs::kOuterAxes])), sorted_(sorted) {
    // From a site to the line, modulo 2^32. What lies before the grid then has a coordinate of 2^31
    // or more, as coordinates and half the kernel's extent are less: beyond any extent.
    std::uint32_t away[runs::kOuterAxes];
    const auto first_tap = [&](int axis, int tap) {
      return static_cast<std::uint32_t>(tap - grid.kernel[axis] / 2) *
             static_cast<std::uint32_t>(grid.dilation[axis]);
    };
#pragma unroll
    for (int axis = runs::kOuterAxes - 1; axis >= 0; --axis) {
      away[axis] = first_tap(axis, line % grid.kernel[axis]);
      line /= grid.kernel[axis];
    }
    const std::uint32_t away_first = first_tap(runs::kOuterAxes, 0);
    const std::uint32_t reach = static_cast<std::uint32_t>(taps - 1) * dilation_;
    two_runs_ = reach < runs::kCells;

    runs::Table::Answer low_answers[kRowsEach], high_answers[kRowsEach];
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      const std::int64_t row = first_row + 32 * i + threadIdx.x % 32;
      runs::Cell site{-1, {}};
      if (row < grid.sites) site = runs::cell_of<kRowsOfFour>(grid, coords, row);
      bool exists = site.is_inside(grid);
      auto lines_before = static_cast<std::uint32_t>(site.batch);
#pragma unroll
      for (int axis = 0; axis < runs::kOuterAxes; ++axis) {
        const std::uint32_t at = static_cast<std::uint32_t>(site.at[axis]) + away[axis];
        const auto extent = static_cast<std::uint32_t>(grid.shape[axis]);
        exists = exists && at < extent;
        lines_before = lines_before * extent + at;
      }
      first_cell_[i] = static_cast<std::uint32_t>(site.at[runs::kOuterAxes]) + away_first;
      const std::uint32_t last_cell = first_cell_[i] + reach;
      const std::uint32_t low_run = low_run_of(i);
      const std::uint32_t high_run = (last_cell < extent_ ? last_cell : extent_ - 1) / runs::kCells;
      low_[i] = lines_before * static_cast<std::uint32_t>(grid.line_runs) + low_run;
      if (!exists) first_cell_[i] = kNowhere;
      low_answers[i] = exists ? table_.ask(low_[i]) : 0;
      high_answers[i] = exists && two_runs_ && high_run != low_run ? table_.ask(low_[i] + 1) : 0;
    }
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      in_low_[i] = Held(table_, table_.settle(low_[i], low_answers[i]), sorted_);
      in_high_[i] = Held(table_, table_.settle(low_[i] + 1, high_answers[i]), sorted_);
    }
  }

  /// Tap `tap` of the line, for row `i` of the lane.
  __device__ Cell at(int i, int tap) const {
    const std::uint32_t x = first_cell_[i] + static_cast<std::uint32_t>(tap) * dilation_;
    const bool inside = first_cell_[i] != kNowhere && x < extent_;
    const std::uint32_t beyond = x / runs::kCells - low_run_of(i);  // runs between
    Held held = beyond == 0 ? in_low_[i] : in_high_[i];
    if (inside && beyond != 0 && !two_runs_) {
      const std::uint32_t run = low_[i] + beyond;
      held = Held(table_, table_.settle(run, table_.ask(run)), sorted_);
    }
    const int bit = static_cast<int>(x % runs::kCells);
    return {held, bit, inside && (held.word >> bit & 1) != 0};
  }

  /// The row of a cell that is a site.
  __device__ std::int32_t row_of(const Cell& cell) const {
    return sorted_ ? cell.held.base + __popc(cell.held.word & ((1u << cell.bit) - 1))
                   : table_.rows[std::int64_t{cell.held.base} * runs::kCells + cell.bit];
  }

 private:
  static constexpr std::uint32_t kNowhere = std::uint32_t{1} << 31;  ///< No cell is so far.

  /// The run of the first tap, or of the first one that is not before the grid: on the line.
  __device__ std::uint32_t low_run_of(int i) const {
    return first_cell_[i] < extent_ ? first_cell_[i] / runs::kCells : 0;
  }

  const runs::Table& table_;
  std::uint32_t extent_, dilation_;  ///< Along the innermost axis.
  bool sorted_;
  bool two_runs_;                                ///< They hold all taps of a line.
  std::uint32_t first_cell_[kRowsEach];          ///< The first tap's, on the line; modulo 2^32.
  std::uint32_t low_[kRowsEach];                 ///< The number of its run.
  Held in_low_[kRowsEach], in_high_[kRowsEach];  ///< The sites there, and in the run behind it.
};

/// Clears the table, copies coords [N][1 + ndim] and looks at their order, enters all sites, and
/// counts. counts [taps][tiles]: the pairs of a tap in a tile of rows. A cooperative,
/// one-dimensional grid of kCountThreads.
/// @param count in the memory of the host
template <bool kRowsOfFour>
__global__ void __launch_bounds__(kCountThreads)
    index_and_count(runs::Problem grid, const std::int32_t* coords, runs::Table table,
                    std::int64_t tiles, State* state, std::int32_t* counts,
                    std::int32_t* out_coords, Letter<Count>* count) {
  __shared__ unsigned long long pairs_of_block;
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const std::int64_t thread = std::int64_t{blockIdx.x} * kCountThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kCountThreads;

  runs::clear(table, thread, threads);
  const bool in_order = runs::copy_sites<kRowsOfFour>(grid, coords, thread, threads, out_coords);
  const int out_of_order = __syncthreads_or(in_order ? 0 : 1);  // counts as it waits
  if (threadIdx.x == 0) {
    state->unsorted[blockIdx.x] = out_of_order;
    pairs_of_block = 0;
  }
  if (thread == 0) {
    state->pairs = 0;
    state->finished = 0;
    state->bad = 0;
  }
  all_blocks.sync();  // the table is empty and the flags are set before sites enter

  int any = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kCountThreads)
    any |= state->unsorted[block];
  const bool sorted = __syncthreads_or(any) == 0;
  runs::insert<kRowsOfFour>(grid, coords, table, sorted, thread, threads, &state->bad);
  all_blocks.sync();  // all sites are in the table before any is looked up

  const Taps taps(grid.KV, grid.kernel[runs::kOuterAxes], sorted);
  const bool first_lane = threadIdx.x % 32 == 0;
  unsigned long long pairs = 0;
  for (std::int64_t task = thread / 32; task < tiles * taps.lines; task += threads / 32) {
    const std::int64_t tile = task / taps.lines;
    const int line = static_cast<int>(task % taps.lines);
    const int first = taps.first(line), end = taps.end(line);
    const TileLine<kRowsOfFour> cells(grid, coords, table, sorted, tile * kTileRows, line,
                                      end - first);
    for (int k = first; k < end; ++k) {
      int hits = 0;
#pragma unroll
      for (int i = 0; i < kRowsEach; ++i)
        hits += __popc(__ballot_sync(kWholeWarp, cells.at(i, k - first).is_site));
      if (first_lane) counts[k * tiles + tile] = hits;
      pairs += static_cast<unsigned>(taps.is_mirrored(k) ? 2 * hits : hits);
    }
  }
  if (first_lane) atomicAdd(&pairs_of_block, pairs);
  __syncthreads();  // all warps have added theirs
  if (threadIdx.x != 0) return;
  atomicAdd(&state->pairs, pairs_of_block);
  __threadfence();  // the block's pairs are counted before it says that it has finished
  if (atomicAdd(&state->finished, 1u) != gridDim.x - 1) return;
  __threadfence();  // the sum is not read before the last block has finished
  state->sorted = sorted ? 1 : 0;
  count->send(
      {static_cast<std::int64_t>(__ldcg(&state->pairs)), __ldcg(&state->bad), sorted ? 1 : 0});
}

/// Replaces the counts [taps][tiles] by the sums of those before in the list of the tap, and writes
/// totals [taps]. A block of kSumThreads for each tap; any one-dimensional grid.
__global__ void __launch_bounds__(kSumThreads)
    sum_counts(int KV, std::int64_t tiles, const State* state, std::int32_t* counts,
               std::int32_t* totals) {
  const int taps = Taps(KV, 1, state->sorted != 0).count;
  row_exclusive_sums<kSumThreads>(taps, tiles, gridDim.x, counts, totals);
}

/// pairs [P][3]: each warp writes those of a tile and of a line of taps, and their mirrors. Any
/// one-dimensional grid of kWriteThreads.
/// @param places [taps][tiles]: where they begin in the list of the tap
template <bool kRowsOfFour>
__global__ void __launch_bounds__(kWriteThreads)
    write_lists(runs::Problem grid, const std::int32_t* __restrict__ coords, runs::Table table,
                bool sorted, std::int64_t P, std::int64_t tiles,
                const std::int32_t* __restrict__ places, const std::int32_t* __restrict__ totals,
                std::int32_t* __restrict__ pairs) {
  __shared__ InOut found_by_warp[kWriteThreads / 32][kTileRows];
  InOut* const found = found_by_warp[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Taps taps(grid.KV, grid.kernel[runs::kOuterAxes], sorted);
  const std::int64_t thread = std::int64_t{blockIdx.x} * kWriteThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kWriteThreads;
  for (std::int64_t task = thread / 32; task < tiles * taps.lines; task += threads / 32) {
    const std::int64_t tile = task / taps.lines;
    const int line = static_cast<int>(task % taps.lines);
    const int first = taps.first(line), end = taps.end(line);
    const TileLine<kRowsOfFour> cells(grid, coords, table, sorted, tile * kTileRows, line,
                                      end - first);
    std::int64_t list = pair_lists::begin_of_list(totals, first);
    for (int k = first; k < end; ++k) {
      const std::int32_t place = places[k * tiles + tile], total = totals[k];
      int count = 0;
#pragma unroll
      for (int i = 0; i < kRowsEach; ++i) {
        const typename TileLine<kRowsOfFour>::Cell cell = cells.at(i, k - first);
        const unsigned hits = __ballot_sync(kWholeWarp, cell.is_site);
        if (cell.is_site)
          found[count + __popc(hits & ((1u << lane) - 1))] = {
              cells.row_of(cell), static_cast<std::int32_t>(tile * kTileRows) + 32 * i + lane};
        count += __popc(hits);
      }
      __syncwarp();  // all pairs are there before other lanes write them
      std::int32_t* const own = pairs + (list + place) * kPairColumns;
      // The opposite list ends where those of the taps before this one, mirrored, begin.
      std::int32_t* const mirrored = pairs + (P - (list + total) + place) * kPairColumns;
      const int opposite = taps.is_mirrored(k) ? grid.KV - 1 - k : -1;
      pair_lists::visit_words(found, count, [&](int word, int column, const InOut& pair) {
        own[word] = column == 0 ? k : column == 1 ? pair.in : pair.out;
        if (opposite >= 0)
          mirrored[word] = column == 0 ? opposite : column == 1 ? pair.out : pair.in;
      });
      list += total;
      __syncwarp();  // all have been written before those of the next tap overwrite them
    }
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  return runs::declined(book);
}

std::int64_t tiles_of(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(book.sites, kTileRows);
}

/// State, table, counts and totals.
struct Workspace {
  State* state;
  runs::Table table;
  std::int32_t *counts, *totals;
};
constexpr std::size_t kStateBytes = ceil_div<std::size_t>(sizeof(State), 256) * 256;

std::size_t workspace_bytes(const RulebookProblem& book) {
  return alignof(State) + kStateBytes + runs::table_bytes(book.sites) +
         static_cast<std::size_t>(book.KV * (tiles_of(book) + 1)) * sizeof(std::int32_t);
}

/// From the first address on that the state's widest member may have: in the tests, a workspace
/// begins at any multiple of 4.
Workspace workspace_in(const RulebookProblem& book, const Arguments& arrays) {
  auto* memory = arrays.workspace<unsigned char>();
  memory += alignof(State) - reinterpret_cast<std::uintptr_t>(memory) % alignof(State);
  unsigned char* const table = memory + kStateBytes;
  auto* const counts = reinterpret_cast<std::int32_t*>(table + runs::table_bytes(book.sites));
  return {reinterpret_cast<State*>(memory), runs::table_in(table, book.sites), counts,
          counts + book.KV * tiles_of(book)};
}

template <bool kRowsOfFour>
void run_kernels(const RulebookProblem& book, const std::int32_t* coords, std::int32_t* out_coords,
                 const Arguments& arrays) {
  static const int most_blocks =
      std::min(resident_blocks(index_and_count<kRowsOfFour>, kCountThreads), kMaxResident);
  const Workspace work = workspace_in(book, arrays);
  const runs::Problem grid(book);
  const std::int64_t tiles = tiles_of(book);
  const int of_line = book.kernel[book.ndim - 1];
  // A warp each for a tile and a line, as if sites were sorted, which only the device knows yet.
  const std::int64_t tasks = tiles * Taps(book.KV, of_line, true).lines;

  HostMessage<Count> message;
  launch_cooperatively(index_and_count<kRowsOfFour>,
                       {blocks_for(tasks, kCountThreads / 32, most_blocks), kCountThreads}, grid,
                       coords, work.table, tiles, work.state, work.counts, out_coords,
                       message.letter());
  message.expect();
  launch(sum_counts, {blocks_for(book.KV, 1, kMaxBlocks), kSumThreads}, book.KV, tiles, work.state,
         work.counts, work.totals);

  const Count count = message.received();
  if (count.bad != 0) runs::require_no_bad_rows(book, coords, &work.state->bad);
  auto* pairs = arrays.create<std::int32_t>("pairs", {count.pairs, kPairColumns});
  const bool sorted = count.sorted != 0;
  const std::int64_t write_tasks = tiles * Taps(book.KV, of_line, sorted).lines;
  launch(write_lists<kRowsOfFour>,
         {blocks_for(write_tasks, kWriteThreads / 32, kMaxBlocks), kWriteThreads}, grid, coords,
         work.table, sorted, count.pairs, tiles, work.counts, work.totals, pairs);
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
  const bool rows_of_four = runs::has_rows_of_four(book, coords, out_coords);
  (rows_of_four ? run_kernels<true> : run_kernels<false>)(book, coords, out_coords, arrays);
}

}  // namespace

Implementation<RulebookProblem> mirrored_lists() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
