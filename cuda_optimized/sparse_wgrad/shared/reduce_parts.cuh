/// @file reduce_parts.cuh
/// @brief The second launch of split_k_wgmma.cu, which adds the parts' sums in one order, and
/// begins before the first has ended; split_k_wgmma.cu explains it.
#pragma once

#include "core/cuda/early_launch.hpp"
#include "cuda_optimized/sparse_conv/shared/row_pieces.cuh"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

namespace turns {

inline constexpr int kWidth = 32;              ///< Pieces of dw that a block adds up at a time,
inline constexpr int kGroups = 8;              ///< and threads for each of them.
inline constexpr std::int64_t kBlocks = 1024;  ///< As many as an H200 holds at once, about.

/// dw[k][i] = the sums of tap k's parts, for block y = k. Thread (column, group) adds every
/// kGroups-th part; then the groups are added in their order. Grid (any, any), block (kWidth,
/// kGroups).
/// @param sums [most_parts][pieces]
/// @param dw [KV][pieces]
/// @tparam Piece float or float4
template <class Piece>
__global__ void sparse_wgrad_sum_turns(PairParts parts, const std::int32_t* offsets,
                                       const Piece* sums, std::int64_t pieces, Piece* dw) {
  __shared__ Piece of_group[kGroups][kWidth];
  const int column = static_cast<int>(threadIdx.x), group = static_cast<int>(threadIdx.y);
  for (int k = static_cast<int>(blockIdx.y); k < parts.KV; k += static_cast<int>(gridDim.y)) {
    int first = 0;  // which part is this tap's first one: each warp finds out by itself
    for (int other = column; other < k; other += kWidth) {
      first += parts_of(parts, stretch_of(parts, offsets, 0, other));
    }
#pragma unroll
    for (int distance = kWidth / 2; distance > 0; distance /= 2) {
      first += __shfl_xor_sync(0xFFFFFFFF, first, distance);
    }
    const int count = parts_of(parts, stretch_of(parts, offsets, 0, k));
    wait_for_kernel_before();  // what was read so far was there before it began
    std::int64_t i0 = std::int64_t{blockIdx.x} * kWidth;
    for (; i0 < pieces; i0 += std::int64_t{gridDim.x} * kWidth) {
      const std::int64_t i = i0 + column;
      Piece sum = sparse_conv::zeros<Piece>();
      if (i < pieces) {
        const Piece* const from = sums + first * pieces + i;
#pragma unroll 4
        for (int part = group; part < count; part += kGroups) {
          const Piece of_part = from[part * pieces];
          sum = sparse_conv::plus(sum, of_part);
        }
      }
      of_group[group][column] = sum;
      __syncthreads();  // all groups' sums are there
      if (group == 0 && i < pieces) {
#pragma unroll
        for (int other = 1; other < kGroups; ++other) {
          const Piece of_other = of_group[other][column];
          sum = sparse_conv::plus(sum, of_other);
        }
        dw[k * pieces + i] = sum;
      }
      __syncthreads();  // they are used up before the next ones
    }
  }
}

}  // namespace turns

/// Adds the parts' sums [most_parts][floats], of one slab, to dw [KV][floats], which is wholly
/// written: zeros for taps without pairs. May begin when all blocks of the kernel before have
/// called let_next_kernel_begin().
inline void launch_sum_turns(const PairParts& parts, const std::int32_t* offsets, const float* sums,
                             std::int64_t floats, float* dw) {
  const bool fours = floats % 4 == 0 && sparse_conv::is_aligned(dw);  // as the workspace is
  const auto launch_of = [&]<class Piece>(Piece) {
    const std::int64_t pieces =
        floats * static_cast<int>(sizeof(float)) / static_cast<int>(sizeof(Piece));
    const unsigned taps = blocks_for(parts.KV, 1, kMaxGridYZ);
    const dim3 grid(
        blocks_for(pieces, turns::kWidth, std::max<std::int64_t>(turns::kBlocks / taps, 1)), taps);
    launch_early(turns::sparse_wgrad_sum_turns<Piece>, {grid, dim3(turns::kWidth, turns::kGroups)},
                 parts, offsets, reinterpret_cast<const Piece*>(sums), pieces,
                 reinterpret_cast<Piece*>(dw));
  };
  if (fours) {
    launch_of(float4{});
  } else {
    launch_of(0.0f);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
