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
  int N, P, Q, K;         ///< of the output
  bool by_engine;         ///< else by the threads
  bool vectors;           ///< which store eight filters at once

  /// Rounds a warpgroup's sums [filter][column] to `draft` [column][filter], swizzled, and stores
  /// them from there. The copy engine may not have read the draft yet when this returns.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        int consumer, const float (&sums)[kColumns / 2], T* draft) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int first = thread / 32 * 16;  // of the warp's 16 filters
    float added[2];                      // to the filter of this lane, and to the one 8 below
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int filter = first + lane / 4 + 8 * below;
      added[below] =
          bias != nullptr && filter < filters.count ? bias[filters.first + filter] : 0.0f;
    }
    // Of 16 columns and 16 filters, four matrices, this lane names a row: 8 filters of a column.
    T* const row = draft + gemm::swizzled_half(lane / 16 * 8 + lane % 8, first + lane / 8 % 2 * 8);
    if (thread == 0) ptx::cp_async_bulk_wait_group_read<0>();
    // All have stored what the draft held, or the copy engine has: it may be overwritten.
    ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
    for (int column = 0; column < kColumns; column += 16) {
      std::uint32_t fragment[4];
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const int at = column / 2 + m * 2, below = m % 2;
        fragment[m] = gemm::two_rounded<T>(activated(activation, sums[at] + added[below]),
                                           activated(activation, sums[at + 1] + added[below]));
      }
      ptx::stmatrix_x4_trans(row + column * kPatchFilters, fragment);
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
    for (int i = thread / 8; i < tiles.images * tiles.rows * row_columns; i += 128 / 8) {
      const int line = i / row_columns, image = line / tiles.rows, column = i % row_columns;
      const int p = tile.p + line % tiles.rows, q = tile.q + column;
      if (column >= tiles.width || p >= P || q >= Q) continue;
      if (image >= N - tile.n || eight >= filters.count) continue;
      const T* const from = draft + gemm::swizzled_half(i, eight);
      T* const there = out + Index4{P, Q, K}(tile.n + image, p, q, filters.first + eight);
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
  const bool vectors = in_eights(windows.group_k()) && gemm::begin_at_16_bytes(out, out);
  // A box ends at the array's end, not at a group's.
  const bool by_engine = vectors && (windows.groups == 1 || windows.group_k() % kPatchFilters == 0);
  const TiledMap boxes = {.rank = 4,
                          .extents = {K, Q, P, windows.N},
                          .strides = {1, K, Q * K, P * Q * K},
                          .box = {kPatchFilters, tiles.row_columns(), tiles.rows, tiles.images}};
  return {.boxes = by_engine ? tensor_map(boxes, out) : CUtensorMap{},
          .out = out,
          .bias = bias,
          .activation = windows.activation,
          .N = windows.N,
          .P = windows.P,
          .Q = windows.Q,
          .K = windows.K,
          .by_engine = by_engine,
          .vectors = vectors};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
