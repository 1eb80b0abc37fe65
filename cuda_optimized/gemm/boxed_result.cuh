/// @file boxed_result.cuh
/// @brief c by the copy engine, from boxes in shared memory; wgmma_tma_store.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/gemm/halves.cuh"
#include "cuda_optimized/gemm/wgmma_halves.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Bytes of the boxes in which sums leave: two a consumer, in turns.
inline constexpr int kBoxBytes = 64 * 64 * 2, kDraftBytes = kConsumers * 2 * kBoxBytes;

/// c [M][N] by the copy engine.
template <class Shape, class T>
struct BoxedResult {
  CUtensorMap c;  ///< in boxes of 64 x 64

  /// Stores a consumer's sums of a tile. 128 threads call it. @param box which of the two is next
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&sums)[Shape::kRowTiles][Shape::N / 2], char* drafts,
                        int& box) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int piece = 0; piece < Shape::N / 64; ++piece) {
        char* const draft = drafts + (2 * consumer + box) * kBoxBytes;
        if (thread == 0) ptx::cp_async_bulk_wait_group_read<1>();
        // The copy engine has read what the box held: all may overwrite it.
        ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int column = 8 * j + lane % 4 * 2, first = 4 * (8 * piece + j);
          T* const to = reinterpret_cast<T*>(draft);
          store_two(to + swizzled_half(row, column), sums[i][first], sums[i][first + 1]);
          store_two(to + swizzled_half(row + 8, column), sums[i][first + 2], sums[i][first + 3]);
        }
        ptx::fence_proxy_async();  // ordinary stores, which the copy engine will read
        ptx::named_barrier_sync(1 + consumer, 128);  // separates all stores from the copy
        if (thread == 0) {
          const int m =
              static_cast<int>(item.m) * Shape::M + (consumer * Shape::kRowTiles + i) * 64;
          ptx::tma_store<2>(&c, draft, {item.n * Shape::N + piece * 64, m});
          ptx::cp_async_bulk_commit_group();
        }
        box ^= 1;
      }
    }
  }
  /// Before the block ends, and its shared memory with it.
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
