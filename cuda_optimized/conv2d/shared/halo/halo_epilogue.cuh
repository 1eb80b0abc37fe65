/// @file halo_epilogue.cuh
/// @brief Epilogue of the rungs with halo-tile reuse: accumulators are rounded, transposed through
/// a staging buffer in shared memory, and stored by TMA or by the threads.
#pragma once

#include "core/cuda/cache_hints.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Bytes of an array that the next layer may find in the L2 cache: half of an H200's.
inline constexpr std::int64_t kStayBytes = 25'000'000;

/// Whether an array of so many bytes is too large for the L2 cache. On a machine that tests made
/// small, a smaller one is.
inline bool passes_the_cache(std::int64_t bytes) { return bytes > enough_blocks(kStayBytes); }

/// The output [N][H][W][K], where the sums go: to all of its pixels, or to those of a class.
template <class T>
struct PatchResult {
  CUtensorMap boxes;      ///< of the output, if TMA stores it
  T* out;                 ///< the output
  const float* bias;      ///< [K], or null
  Activation activation;  ///< of the sums with their bias
  int N, P, Q, K;         ///< of the sums
  int H, W;               ///< of the output
  Step out_first,         ///< where the pixel (0, 0) of the sums lies in the output
      out_stride;         ///< pixels of the output from one of the sums to the next
  bool by_tma;            ///< else by the threads
  bool vectors;           ///< which store eight filters at once
  bool passes;            ///< the output may leave the L2 cache before others

  /// Rounds a warpgroup's accumulators [filter][column] to `staging` [column][filter], swizzled,
  /// and stores them from there. TMA may not have read the staging buffer yet when this returns.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        int consumer, const float (&accumulators)[kColumns / 2], T* staging) const {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    if (thread == 0) ptx::cp_async_bulk_wait_group_read<0>();
    // All have stored what the staging buffer held, or TMA has: it may be overwritten.
    ptx::named_barrier_sync(1 + consumer, 128);
    round<kColumns>(filters, accumulators, staging);
    ptx::fence_proxy_async();                    // orders ordinary stores (generic proxy) before
                                                 // TMA's reads (async proxy)
    ptx::named_barrier_sync(1 + consumer, 128);  // separates these stores from all reads
    if (!by_tma) {
      store_columns(tiles, tile, filters, 0, kColumns, staging);
    } else if (thread == 0) {
      ptx::tma_store_cache_hint<4>(&boxes, staging, {filters.first, tile.q, tile.n, tile.p},
                                   ptx::createpolicy(passes));
      ptx::cp_async_bulk_commit_group();
    }
  }
  /// Rounds a warpgroup's accumulators [filter][column] to `staging` [column][filter], swizzled.
  template <int kColumns>
  __device__ void round(const PatchFilters& filters, const float (&accumulators)[kColumns / 2],
                        T* staging) const {
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
    T* const row =
        staging + gemm::swizzled_half(lane / 16 * 8 + lane % 8, first + lane / 8 % 2 * 8);
    float whole[kColumns / 2];
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) whole[i] = accumulators[i] + added[i / 2 % 2];
    if (activation != Activation::none) {  // asked once, not for each sum
#pragma unroll
      for (float& sum : whole) sum = activated(activation, sum);
    }
#pragma unroll
    for (int column = 0; column < kColumns; column += 16) {
      std::uint32_t fragment[4];
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const int at = column / 2 + m * 2;
        fragment[m] = gemm::two_rounded<T>(whole[at], whole[at + 1]);
      }
      ptx::stmatrix_x4_trans(row + column * kPatchFilters, fragment);
    }
  }
  /// Stores `count` columns of a tile, from column `first` on, from a staging buffer. By a
  /// warpgroup.
  __device__ void store_columns(const PatchTiles& tiles, const PatchTile& tile,
                                const PatchFilters& filters, int first, int count,
                                const T* staging) const {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int row_columns = tiles.row_columns(), eight = thread % 8 * 8;
    for (int i = thread / 8; i < count; i += 128 / 8) {
      const int line = (first + i) / row_columns, column = (first + i) % row_columns;
      const int image = line % tiles.images, row = line / tiles.images;
      const int p = tile.p + row, q = tile.q + column;
      if (column >= tiles.width || row >= tiles.rows || p >= P || q >= Q) continue;
      if (image >= N - tile.n || eight >= filters.count) continue;
      const T* const from = staging + gemm::swizzled_half(i, eight);
      T* const there = out + Index4{H, W, K}(tile.n + image, p * out_stride.h + out_first.h,
                                             q * out_stride.w + out_first.w, filters.first + eight);
      if (vectors) {
        *reinterpret_cast<uint4*>(there) = *reinterpret_cast<const uint4*>(from);
      } else {
        for (int j = 0; j < 8 && eight + j < filters.count; ++j) there[j] = from[j];
      }
    }
  }
  /// Waits until the staging buffer has been read: the block may end. Called by who has called
  /// store().
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// Of an output that may begin anywhere. @param passes see PatchResult
template <class T>
PatchResult<T> patch_result(const Windows& windows, const PatchTiles& tiles, const float* bias,
                            T* out, bool passes = false) {
  const std::int64_t K = windows.K, row = windows.out_W * K;
  const Step &first = windows.out_first, &stride = windows.out_stride;
  const bool vectors = windows.group_k() % 8 == 0 && gemm::begin_at_16_bytes(out, out);
  // A box ends at the array's end, not at a group's.
  const bool by_tma = vectors && (windows.groups == 1 || windows.group_k() % kPatchFilters == 0);
  const TiledMap boxes = {.rank = 4,
                          .extents = {K, windows.Q, windows.N, windows.P},
                          .strides = {1, stride.w * K, windows.out_H * row, stride.h * row},
                          .box = {kPatchFilters, tiles.row_columns(), tiles.images, tiles.rows}};
  return {.boxes = by_tma ? tensor_map(boxes, out + first.h * row + first.w * K) : CUtensorMap{},
          .out = out,
          .bias = bias,
          .activation = windows.activation,
          .N = windows.N,
          .P = windows.P,
          .Q = windows.Q,
          .K = windows.K,
          .H = windows.out_H,
          .W = windows.out_W,
          .out_first = first,
          .out_stride = stride,
          .by_tma = by_tma,
          .vectors = vectors,
          .passes = passes};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
