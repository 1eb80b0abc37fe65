/// @file mask_order.cuh
/// @brief Rows in the order of their masks: a stable radix sort in one launch.
///
/// Each block has a run of rows. It goes over them digit by digit, the lowest first:
///
///     rank      a warp: counts its earlier rows with this digit     ballots, and counts
///     count     the block: counts its rows with this digit
///     barrier   ------------------------------------------------------------------------
///     add up    all lower digits, and this one in the previous blocks
///     store     each row to its index
///     barrier   ------------------------------------------------------------------------
///
/// Digits of 7 bits take four passes for 27 taps, and rows stay in registers from the load to the
/// store. Larger digits take fewer, but each block adds up more counts of all others.
#pragma once

#include <cooperative_groups.h>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook::mask_order {

inline constexpr int kThreads = 1024;               ///< Of a block,
inline constexpr int kMostEach = 4;                 ///< and most rows per thread.
inline constexpr int kWarps = kThreads / 32;        ///< Per block.
inline constexpr int kDigitBits = 7;                ///< Bits per pass.
inline constexpr int kDigits = 1 << kDigitBits;     ///< Number of digits.
inline constexpr int kGroups = kThreads / kDigits;  ///< Of threads that add counts up.
inline constexpr unsigned kWholeWarp = 0xffffffff;  ///< Mask of all lanes.

/// A row, with the bits of its sort key.
struct alignas(8) Entry {
  std::uint32_t bits;  ///< Of the mask.
  std::int32_t row;    ///< Its index.
};

/// What is sorted, and where.
struct Sort {
  int rows;                  ///< How many.
  int words;                 ///< Of a mask.
  const std::int32_t* mask;  ///< [rows][words]
  int first, bits;           ///< Of a mask: the first bit that counts, and how many do, at most 32.
  const std::int32_t* before;  ///< [rows]: the order among rows with equal bits; null: by number.
  Entry *even, *odd;           ///< [rows] each: after even passes, and after odd ones.
  std::uint32_t* counts;       ///< [2][blocks][kDigits]: alternating as well.
  std::int32_t* order;         ///< [rows], out; may be `before`

  /// The entry at an index before the first pass.
  __device__ Entry entry(int place) const {
    const std::int32_t row = before != nullptr ? before[place] : place;
    const std::int32_t* const of_row = mask + std::int64_t{row} * words;
    const int word = first / 32, shift = first % 32;
    std::uint64_t both = static_cast<std::uint32_t>(of_row[word]);
    if (shift + bits > 32)
      both |= std::uint64_t{static_cast<std::uint32_t>(of_row[word + 1])} << 32;
    return {static_cast<std::uint32_t>(both >> shift & ((std::uint64_t{1} << bits) - 1)), row};
  }
};

/// The lanes of the warp that have this lane's digit, of those that have one. All lanes call it.
__device__ inline unsigned lanes_with(std::uint32_t digit, bool has_one) {
  unsigned lanes = __ballot_sync(kWholeWarp, has_one);
#pragma unroll
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool is_set = (digit >> bit & 1) != 0;
    const unsigned set = __ballot_sync(kWholeWarp, is_set);
    lanes &= is_set ? set : ~set;
  }
  return lanes;
}

/// Where each digit of this block begins in the order: after all lower ones, and after this one in
/// the previous blocks. begins [kDigits] is shared memory. @param counts [blocks][kDigits]
__device__ inline void add_up(const std::uint32_t* counts, std::uint32_t* begins) {
  __shared__ std::uint32_t before_of[kGroups][kDigits], all_of[kGroups][kDigits];
  __shared__ std::uint32_t of_warp[kDigits / 32];
  const unsigned digit = threadIdx.x % kDigits, group = threadIdx.x / kDigits;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint32_t before = 0, all = 0;
#pragma unroll 8
  for (unsigned block = group; block < gridDim.x; block += kGroups) {
    const std::uint32_t count = __ldcg(&counts[block * kDigits + digit]);
    all += count;
    if (block < blockIdx.x) before += count;
  }
  before_of[group][digit] = before;
  all_of[group][digit] = all;
  __syncthreads();  // all groups have stored their sums before the first one adds them
  std::uint32_t lower = 0;
  if (group == 0) {
    before = all = 0;
#pragma unroll
    for (int other = 0; other < kGroups; ++other) {
      before += before_of[other][digit];
      all += all_of[other][digit];
    }
    lower = all;  // with this digit, until it is taken off
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t other = __shfl_up_sync(kWholeWarp, lower, distance);
      if (lane >= distance) lower += other;
    }
    if (lane == 31) of_warp[warp] = lower;
    lower -= all;
  }
  __syncthreads();  // the sums of all warps are stored before later warps add them
  if (group == 0) {
#pragma unroll
    for (unsigned other = 0; other + 1 < kDigits / 32; ++other)
      lower += other < warp ? of_warp[other] : 0;
    begins[digit] = lower + before;
  }
  __syncthreads();  // all begins are stored before any row is placed
}

/// Sorts. A cooperative, one-dimensional grid of kThreads, with at most kMostEach rows a thread.
__global__ void __launch_bounds__(kThreads) rulebook_sort_rows(Sort sort) {
  // A warp has few rows, so 16-bit counts suffice.
  __shared__ std::uint16_t of_warp[kWarps][kDigits];
  __shared__ std::uint32_t begins[kDigits];
  const cooperative_groups::grid_group all_blocks = cooperative_groups::this_grid();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const auto blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  const int of_block = ceil_div(sort.rows, blocks), each = ceil_div(of_block, kThreads);
  const int begin = block * of_block;
  const int end = begin + of_block < sort.rows ? begin + of_block : sort.rows;
  // The rows of a warp, and those of a block, are consecutive, so ranks keep their order (a stable
  // sort).
  const int place = begin + warp * 32 * each + lane;  // of the first; the next ones are 32 apart
  const int passes = sort.bits > 0 ? ceil_div(sort.bits, kDigitBits) : 1;
  for (int pass = 0; pass < passes; ++pass) {
    const auto digit_of = [&](const Entry& entry) {
      return entry.bits >> pass * kDigitBits & (kDigits - 1);
    };
    for (int i = static_cast<int>(threadIdx.x); i < kWarps * kDigits; i += kThreads)
      of_warp[i / kDigits][i % kDigits] = 0;
    Entry entries[kMostEach];
#pragma unroll
    for (int i = 0; i < kMostEach; ++i) {
      entries[i] = {};
      if (i >= each) break;
      if (place + 32 * i >= end) continue;
      if (pass == 0) {
        entries[i] = sort.entry(place + 32 * i);
      } else {
        const Entry* const from = (pass % 2 != 0 ? sort.even : sort.odd) + place + 32 * i;
        const uint2 both = __ldcg(reinterpret_cast<const uint2*>(from));
        entries[i] = {both.x, static_cast<std::int32_t>(both.y)};
      }
    }
    __syncthreads();                 // all counts are 0 before any warp counts
    std::uint32_t ranks[kMostEach];  // among the warp's rows of the same digit
#pragma unroll
    for (int i = 0; i < kMostEach; ++i) {
      if (i >= each) break;  // as in all threads of the grid
      const bool exists = place + 32 * i < end;
      const std::uint32_t digit = digit_of(entries[i]);
      const unsigned lanes = lanes_with(digit, exists), before = lanes & ((1u << lane) - 1);
      ranks[i] = 0;
      if (exists) ranks[i] = of_warp[warp][digit] + static_cast<std::uint32_t>(__popc(before));
      __syncwarp();  // all lanes have read the counts before one lane for each digit adds to them
      if (exists && before == 0)
        of_warp[warp][digit] =
            static_cast<std::uint16_t>(ranks[i] + static_cast<std::uint32_t>(__popc(lanes)));
      __syncwarp();  // the counts are updated before the warp's next rows are ranked
    }
    __syncthreads();  // all warps have counted before any thread adds up
    std::uint32_t* const counts = sort.counts + std::int64_t{pass % 2} * blocks * kDigits;
    if (const auto digit = static_cast<int>(threadIdx.x); digit < kDigits) {
      std::uint32_t sum = 0;
#pragma unroll
      for (int other = 0; other < kWarps; ++other) {
        const std::uint32_t count = of_warp[other][digit];
        of_warp[other][digit] = static_cast<std::uint16_t>(sum);
        sum += count;
      }
      counts[block * kDigits + digit] = sum;
    }
    all_blocks.sync();  // all blocks have counted; they have loaded what the stores overwrite

    add_up(counts, begins);
#pragma unroll
    for (int i = 0; i < kMostEach; ++i) {
      if (i >= each) break;
      if (place + 32 * i >= end) continue;
      const std::uint32_t digit = digit_of(entries[i]);
      const std::uint32_t to = begins[digit] + of_warp[warp][digit] + ranks[i];
      if (pass == passes - 1) {
        sort.order[to] = entries[i].row;
      } else {
        (pass % 2 == 0 ? sort.even : sort.odd)[to] = entries[i];
      }
    }
    if (pass < passes - 1)
      all_blocks.sync();  // all rows are stored before the next pass loads them
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::mask_order
