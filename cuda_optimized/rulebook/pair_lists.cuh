/// @file pair_lists.cuh
/// @brief Lists of pairs in canonical order that are counted by tiles, summed up, and then written.
///
/// What mirrored_lists.cu and lists_of_inputs.cu have in common: where a list begins, and how a
/// warp stores pairs.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook::pair_lists {

/// Two rows that meet.
struct alignas(8) InOut {
  std::int32_t in, out;  ///< As in `pairs`.
};

/// Where a tap's list begins: behind those of all taps before. The lanes of a warp add up together.
/// @param totals [taps]: the pairs of each
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
