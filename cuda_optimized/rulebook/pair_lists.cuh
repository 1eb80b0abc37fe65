/// @file pair_lists.cuh
/// @brief Lists of pairs in canonical order that are counted by tiles, summed up, and then written.
///
/// What mirrored_lists.cu and lists_of_inputs.cu have in common: where each tile's pairs of a tap
/// go, and how a warp stores them.
#pragma once

#include "core/rulebook_problem.hpp"
#include "cuda_optimized/rulebook/block_sum.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists {

/// Two rows that meet.
struct alignas(8) InOut {
  std::int32_t in, out;  ///< As in `pairs`.
};

/// Replaces the counts [taps][tiles] by the sums of those before in the list of the tap, and writes
/// totals [taps]. The first `blocks` blocks, of kThreads, share the work: a tap each.
template <int kThreads>
__device__ void sum_counts(int taps, std::int64_t tiles, unsigned blocks, std::int32_t* counts,
                           std::int32_t* totals) {
  constexpr int kWarps = kThreads / 32;
  __shared__ int warp_sums[kWarps];
  for (int k = static_cast<int>(blockIdx.x); k < taps; k += static_cast<int>(blocks)) {
    std::int32_t before = 0;  // in the tiles of earlier rounds
    for (std::int64_t first = 0; first < tiles; first += kThreads) {
      const std::int64_t tile = first + threadIdx.x;
      const int own = tile < tiles ? counts[k * tiles + tile] : 0;
      int total;
      const int sum = block_exclusive_sum<kWarps>(own, warp_sums, &total);
      if (tile < tiles) counts[k * tiles + tile] = before + sum;
      before += total;
    }
    if (threadIdx.x == 0) totals[k] = before;
  }
}

/// Where a tap's list begins: behind those of all taps before. The lanes of a warp add up together.
/// @param totals [taps], of sum_counts()
__device__ inline std::int64_t begin_of_list(const std::int32_t* totals, int tap) {
  std::int64_t before = 0;
  for (int k = static_cast<int>(threadIdx.x) % 32; k < tap; k += 32) before += totals[k];
  for (int distance = 16; distance > 0; distance /= 2)
    before += __shfl_xor_sync(0xffffffff, before, distance);
  return before;
}

/// Calls visit(word, column, pair) for each word of `count` pairs that lie side by side:
/// neighbouring lanes have neighbouring words, whatever pair those belong to.
template <class Visit>
__device__ void visit_words(const InOut* pairs, int count, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int word = lane; word < count * kPairColumns; word += 32)
    visit(word, word % kPairColumns, pairs[word / kPairColumns]);
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists
