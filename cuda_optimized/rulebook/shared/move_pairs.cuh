/// @file move_pairs.cuh
/// @brief A warp copies a list of pairs to its place among `pairs`.
#pragma once

#include "cuda_optimized/rulebook/shared/pair_lists.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Copies pairs of tap k to `to` [count][3], which neighbouring lanes write side by side: the words
/// of a pair come from the lane that has loaded it. For whole warps.
__device__ inline void move_pairs(int k, const pair_lists::InOut* from, int count,
                                  std::int32_t* to) {
  constexpr int kAhead = 4;                    // pairs that a lane loads before it stores one
  constexpr unsigned kWholeWarp = 0xffffffff;  // all lanes take part
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
