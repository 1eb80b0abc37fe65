/// @file sum_parts.cuh
/// @brief The second launch of split_k.cu and split_k_mma.cu, which adds the parts in a fixed
/// order; split_k.cu explains it.
#pragma once

#include <algorithm>

#include "core/cuda/launch.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

namespace pair_parts {

inline constexpr int kWidth = 32;     ///< Elements of dw that a block reduces at a time,
inline constexpr int kMaxGroups = 8;  ///< and threads for each of them, at most.

/// dw[k][i] = the sums of tap k's parts, for block y = k. Thread (column, group) adds every
/// groups-th part of each slab, slab by slab; then the groups are added in their order. Grid (any,
/// any), block (kWidth, groups).
/// @param sums [slabs][most_parts][floats]
/// @param dw [KV][floats]
static __global__ void sparse_wgrad_sum_pair_parts(PairParts parts, const std::int32_t* offsets,
                                                   const float* sums, std::int64_t floats,
                                                   float* dw) {
  __shared__ int first[kMaxSlabs];  // index of this tap's first part in its slab
  __shared__ int count[kMaxSlabs];  // number of this tap's parts in the slab
  __shared__ float of_group[kMaxGroups][kWidth];
  const int column = static_cast<int>(threadIdx.x), group = static_cast<int>(threadIdx.y);
  const int groups = static_cast<int>(blockDim.y);
  for (int k = static_cast<int>(blockIdx.y); k < parts.KV; k += static_cast<int>(gridDim.y)) {
    __syncthreads();  // all threads have read the data of the previous tap
    for (int slab = group; slab < parts.slabs(); slab += groups) {
      int before = 0;
      for (int other = column; other < k; other += 32) {
        before += parts_of(parts, stretch_of(parts, offsets, slab, other));
      }
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        before += __shfl_xor_sync(0xFFFFFFFF, before, distance);
      }
      if (column == 0) {
        first[slab] = before;
        count[slab] = parts_of(parts, stretch_of(parts, offsets, slab, k));
      }
    }
    __syncthreads();  // the data are complete before they are used

    std::int64_t i0 = std::int64_t{blockIdx.x} * kWidth;
    for (; i0 < floats; i0 += std::int64_t{gridDim.x} * kWidth) {
      const std::int64_t i = i0 + column;
      float sum = 0.0f;
      for (int slab = 0; i < floats && slab < parts.slabs(); ++slab) {
        const float* from =
            sums + (std::int64_t{slab} * parts.most_parts + first[slab]) * floats + i;
#pragma unroll 4
        for (int part = group; part < count[slab]; part += groups) sum += from[part * floats];
      }
      of_group[group][column] = sum;
      __syncthreads();  // the sums of all groups are stored
      if (group == 0 && i < floats) {
        for (int other = 1; other < groups; ++other) sum += of_group[other][column];
        dw[k * floats + i] = sum;
      }
      __syncthreads();  // the sums are read before the next ones overwrite them
    }
  }
}

}  // namespace pair_parts

/// Threads that share the parts of an element: enough of them that each adds a few parts of an
/// average tap. Their number determines the bits of the result, and depends on the problem alone.
inline std::int64_t groups_for(const PairParts& parts) {
  const std::int64_t parts_of_tap = std::int64_t{parts.most_parts} * parts.slabs() / parts.KV;
  return std::clamp<std::int64_t>(parts_of_tap / 4, 1, pair_parts::kMaxGroups);
}

/// For the description of the choice of a rung that calls launch_sum_pair_parts().
inline std::string groups_in_words(const PairParts& parts) {
  return text("added by ", how_many(groups_for(parts), "thread"));
}

/// Adds the parts' sums [slabs][most_parts][floats] to dw [KV][floats], which is wholly written:
/// zeros for taps without pairs.
inline void launch_sum_pair_parts(const PairParts& parts, const std::int32_t* offsets,
                                  const float* sums, std::int64_t floats, float* dw) {
  const dim3 grid(blocks_for(floats, pair_parts::kWidth, kMaxGridYZ),
                  blocks_for(parts.KV, 1, kMaxGridYZ));
  const std::int64_t groups = groups_for(parts);
  launch(pair_parts::sparse_wgrad_sum_pair_parts,
         {grid, dim3(pair_parts::kWidth, static_cast<unsigned>(groups))}, parts, offsets, sums,
         floats, dw);
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
