/// @file pair_lists.cuh
/// @brief Lists of pairs in canonical order that are counted by tiles, summed up, and then written.
///
/// What submanifold/mirrored_lists.cu and strided/input_lists.cu have in common: where a list
/// begins, and how a warp stores pairs.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists {

/// Two rows that meet.
struct alignas(8) InOut {
  std::int32_t in, out;  ///< As in `pairs`.
};

inline constexpr unsigned kWholeWarp = 0xffffffff;  ///< All lanes take part.

/// Adds what the threads of a block have counted to *total: one atomic a block. All of it call it.
__device__ inline void add_up(unsigned long long pairs, unsigned long long* total) {
  __shared__ unsigned long long pairs_of_block;
  if (threadIdx.x == 0) pairs_of_block = 0;
  for (int distance = 16; distance > 0; distance /= 2)
    pairs += __shfl_xor_sync(kWholeWarp, pairs, distance);
  __syncthreads();  // it is 0 before any warp adds to it
  if (threadIdx.x % 32 == 0) atomicAdd(&pairs_of_block, pairs);
  __syncthreads();  // all warps have added theirs
  if (threadIdx.x == 0) atomicAdd(total, pairs_of_block);
}

/// The same, and counts the block among those that have `finished`. Then says whether this is the
/// thread that may read what all blocks have added: the first one of the last block.
__device__ inline bool adds_up_last(unsigned long long pairs, unsigned long long* total,
                                    std::uint32_t* finished) {
  add_up(pairs, total);
  if (threadIdx.x != 0) return false;
  __threadfence();  // the block's pairs are counted before it says that it has finished
  const bool is_last = atomicAdd(finished, 1u) == gridDim.x - 1;
  __threadfence();  // the sum is not read before the last block has finished
  return is_last;
}

/// Where a tap's list begins: behind those of all taps before. The lanes of a warp add up together.
/// @param totals [taps]: the pairs of each
__device__ inline std::int64_t begin_of_list(const std::int32_t* totals, int tap) {
  std::int64_t before = 0;
  for (int k = static_cast<int>(threadIdx.x) % 32; k < tap; k += 32) before += totals[k];
  for (int distance = 16; distance > 0; distance /= 2)
    before += __shfl_xor_sync(kWholeWarp, before, distance);
  return before;
}

/// Puts the pairs of the lanes that have one side by side, behind `count` others.
/// @returns how many there are now
__device__ inline int stage(bool has_pair, const InOut& pair, InOut* staged, int count) {
  const unsigned lanes = __ballot_sync(kWholeWarp, has_pair);
  if (has_pair) staged[count + __popc(lanes & ((1u << threadIdx.x % 32) - 1))] = pair;
  return count + __popc(lanes);
}

/// Calls visit(word, column, pair) for each word of `count` pairs that lie side by side:
/// neighbouring lanes have neighbouring words, whatever pair those belong to. 32 pairs are as many
/// words for each lane as a pair has, and those of the next 32 lie in them as these do.
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

/// Writes `count` pairs that lie side by side to the list of tap k, from `own` on, and turned round
/// to that of the opposite tap, from `mirrored` on; not if `opposite` is negative.
__device__ inline void write_both(const InOut* pairs, int count, int k, std::int32_t* own,
                                  int opposite, std::int32_t* mirrored) {
  visit_words(pairs, count, [&](int word, int column, const InOut& pair) {
    own[word] = column == 0 ? k : column == 1 ? pair.in : pair.out;
    if (opposite >= 0) mirrored[word] = column == 0 ? opposite : column == 1 ? pair.out : pair.in;
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists
