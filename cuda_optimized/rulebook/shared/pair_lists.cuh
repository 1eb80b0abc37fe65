/// @file pair_lists.cuh
/// @brief Lists of pairs in canonical order: where a tap's list begins, how blocks add up how many
/// pairs they have, and how a warp stores pairs contiguously. The rungs that count, sum and fill
/// (submanifold/count_scan_fill.cu and brick_lists.cu, strided/input_lists.cu) share them.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists {

/// An input row and an output row that form a pair.
struct alignas(8) InOut {
  std::int32_t in, out;  ///< As in `pairs`.
};

inline constexpr unsigned kWholeWarp = 0xffffffff;  ///< Mask of all lanes.

/// Adds what the threads of a block have counted to *total: one atomic a block. All threads of the
/// block call it.
__device__ inline void add_up(unsigned long long pairs, unsigned long long* total) {
  __shared__ unsigned long long pairs_of_block;
  if (threadIdx.x == 0) pairs_of_block = 0;
  for (int distance = 16; distance > 0; distance /= 2)
    pairs += __shfl_xor_sync(kWholeWarp, pairs, distance);
  __syncthreads();  // the total is 0 before any warp adds to it
  if (threadIdx.x % 32 == 0) atomicAdd(&pairs_of_block, pairs);
  __syncthreads();  // all warps have added their counts
  if (threadIdx.x == 0) atomicAdd(total, pairs_of_block);
}

/// The same, and counts the block among those that have `finished`. Returns whether this is the
/// first thread of the last block to finish, which may read the total of all blocks.
__device__ inline bool adds_up_last(unsigned long long pairs, unsigned long long* total,
                                    std::uint32_t* finished) {
  add_up(pairs, total);
  if (threadIdx.x != 0) return false;
  __threadfence();  // orders the block's addition before its increment of `finished`
  const bool is_last = atomicAdd(finished, 1u) == gridDim.x - 1;
  __threadfence();  // the sum is not read before the last block has finished
  return is_last;
}

/// Where a tap's list begins: after those of all previous taps. The lanes of a warp add up
/// together.
/// @param totals [taps]: the pairs of each
__device__ inline std::int64_t begin_of_list(const std::int32_t* totals, int tap) {
  std::int64_t before = 0;
  for (int k = static_cast<int>(threadIdx.x) % 32; k < tap; k += 32) before += totals[k];
  for (int distance = 16; distance > 0; distance /= 2)
    before += __shfl_xor_sync(kWholeWarp, before, distance);
  return before;
}

/// Appends the pairs of the lanes that have one to `count` others, contiguously.
/// @returns the new count
__device__ inline int stage(bool has_pair, const InOut& pair, InOut* staged, int count) {
  const unsigned lanes = __ballot_sync(kWholeWarp, has_pair);
  if (has_pair) staged[count + __popc(lanes & ((1u << threadIdx.x % 32) - 1))] = pair;
  return count + __popc(lanes);
}

/// Calls visit(word, column, pair) for each word of `count` contiguous pairs: neighbouring lanes
/// have neighbouring words, so the stores are coalesced. In 32 pairs each lane has as many words as
/// a pair has, in the same pattern for every 32 pairs.
template <class Visit>
__device__ void visit_words(const InOut* pairs, int count, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int first = 0; first < count; first += 32) {
#pragma unroll
    for (int j = 0; j < kPairColumns; ++j) {
      const int word = 32 * j + lane, place = first + word / kPairColumns;
      if (place >= count) continue;
      const InOut pair = pairs[place];  // both sides in one load
      visit(first * kPairColumns + word, word % kPairColumns, pair);
    }
  }
}

/// Writes `count` contiguous pairs to the list of tap k, from `own` on, and transposed to that of
/// the opposite tap, from `mirrored` on; not if `opposite` is negative.
__device__ inline void write_both(const InOut* pairs, int count, int k, std::int32_t* own,
                                  int opposite, std::int32_t* mirrored) {
  visit_words(pairs, count, [&](int word, int column, const InOut& pair) {
    own[word] = column == 0 ? k : column == 1 ? pair.in : pair.out;
    if (opposite >= 0) mirrored[word] = column == 0 ? opposite : column == 1 ? pair.out : pair.in;
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Copies pairs of tap k to `to` [count][3], with coalesced stores: the words of a pair are
/// shuffled from the lane that has loaded it. For whole warps.
__device__ inline void move_pairs(int k, const pair_lists::InOut* from, int count,
                                  std::int32_t* to) {
  constexpr int kAhead = 4;                    // pairs that a lane loads before it stores one
  constexpr unsigned kWholeWarp = 0xffffffff;  // mask of all lanes
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int base = 0; base < count; base += 32 * kAhead) {
    pair_lists::InOut own[kAhead];
    for (int j = 0; j < kAhead; ++j) {
      const int i = base + 32 * j + lane;
      own[j] = i < count ? from[i] : pair_lists::InOut{};
    }
    for (int j = 0; j < kAhead; ++j) {
      const int here = base + 32 * j;
      if (here >= count) break;
      for (int column = 0; column < kPairColumns; ++column) {
        // Word `word` of 32 pairs belongs to another lane's pair.
        const int word = 32 * column + lane, pair = word / kPairColumns;
        const std::int32_t in = __shfl_sync(kWholeWarp, own[j].in, pair);
        const std::int32_t out = __shfl_sync(kWholeWarp, own[j].out, pair);
        const int which = word % kPairColumns;
        if (here + pair < count)
          to[here * kPairColumns + word] = which == 0 ? k : which == 1 ? in : out;
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
