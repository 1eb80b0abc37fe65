/// @file patch_result.cuh
/// @brief Where implicit_gemm_wgmma_patches.cu stores its sums: through shared memory, by the copy
/// engine or by the threads.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/half_windows.cuh"
#include "cuda_optimized/conv2d/pixel_patch.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The output [N][P][Q][K], where the sums go.
template <class T>
struct PatchResult {
  CUtensorMap boxes;      ///< of the output, if the copy engine stores it
  T* out;                 ///< the output
  const float* bias;      ///< [K], or null
  Activation activation;  ///< of the sums with their bias
  int P, Q, K;            ///< of the output
  bool by_engine;         ///< else by the threads
  bool vectors;           ///< which store eight filters at once

  /// Rounds a warpgroup's sums [filter][column] to `draft` [column][filter], swizzled, and stores
  /// them from there. The copy engine may not have read the draft yet when this returns.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        int consumer, const float (&sums)[kColumns / 2], T* draft) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int filter = thread / 32 * 16 + lane / 4;  // and the one 8 below
    float added[2];
    T* to[2][2];  // of the even and the odd column of a pair
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = filter + 8 * below;
      added[below] = bias != nullptr && row < filters.count ? bias[filters.first + row] : 0.0f;
#pragma unroll
      for (int odd = 0; odd < 2; ++odd)
        to[below][odd] = draft + gemm::swizzled_half(lane % 4 * 2 + odd, row);
    }
    if (thread == 0) ptx::cp_async_bulk_wait_group_read<0>();
    // All have stored what the draft held, or the copy engine has: it may be overwritten.
    ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {
      const int below = i / 2 % 2, first = i / 4 * 8;  // of eight columns
      to[below][i % 2][first * kPatchFilters] =
          rounded_to<T>(activated(activation, sums[i] + added[below]));
    }
    ptx::fence_proxy_async();                    // ordinary stores, which the copy engine will read
    ptx::named_barrier_sync(1 + consumer, 128);  // separates these stores from all reads
    if (by_engine) {
      if (thread == 0) {
        ptx::tma_store<4>(&boxes, draft, {filters.first, tile.q, tile.p, tile.n});
        ptx::cp_async_bulk_commit_group();
      }
      return;
    }
    const int row_columns = tiles.row_columns(), eight = thread % 8 * 8;
    for (int i = thread / 8; i < tiles.rows * row_columns; i += 128 / 8) {
      const int p = tile.p + i / row_columns, column = i % row_columns, q = tile.q + column;
      if (column >= tiles.width || p >= P || q >= Q || eight >= filters.count) continue;
      const T* const from = draft + gemm::swizzled_half(i, eight);
      T* const there = out + Index4{P, Q, K}(tile.n, p, q, filters.first + eight);
      if (vectors) {
        *reinterpret_cast<uint4*>(there) = *reinterpret_cast<const uint4*>(from);
      } else {
        for (int j = 0; j < 8 && eight + j < filters.count; ++j) there[j] = from[j];
      }
    }
  }
  /// Waits until the draft has been read: the block may end. Called by who has called store().
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// Of an output that may begin anywhere.
template <class T>
PatchResult<T> patch_result(const Windows& windows, const PatchTiles& tiles, const float* bias,
                            T* out) {
  const std::int64_t K = windows.K, P = windows.P, Q = windows.Q;
  PatchResult<T> result = {
      .boxes = {},
      .out = out,
      .bias = bias,
      .activation = windows.activation,
      .P = windows.P,
      .Q = windows.Q,
      .K = windows.K,
      .by_engine = false,
      .vectors = in_eights(windows.group_k()) && gemm::begin_at_16_bytes(out, out)};
  // A box ends at the array's end, not at a group's.
  result.by_engine =
      result.vectors && (windows.groups == 1 || windows.group_k() % kPatchFilters == 0);
  if (result.by_engine) {
    result.boxes = tensor_map(TiledMap{.rank = 4,
                                       .extents = {K, Q, P, windows.N},
                                       .strides = {1, K, Q * K, P * Q * K},
                                       .box = {kPatchFilters, tiles.row_columns(), tiles.rows, 1}},
                              out);
  }
  return result;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
