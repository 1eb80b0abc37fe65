/// @file half_pixels.cuh
/// @brief Where the consumers of a product of windows of 16-bit numbers store their sums: rounded
/// in NHWC, or as parts in float, which are added up afterwards.
#pragma once

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Where the sums go.
template <class Shape, class T>
struct HalfPixels {
  T* out;                      ///< [N][out_H][out_W][K]
  float* parts;                ///< of the sums, [splits][N][out_H][out_W][K]; null if whole
  const float* bias;           ///< or null
  Windows windows;             ///< what there is to compute
  FilterTiles<Shape> filters;  ///< of the tiles' columns
  bool dense;                  ///< pixels of the product follow one another in out
  bool pairs;                  ///< two neighbours can be stored at once

  /// Writes a thread's sums, as wgmma leaves them.
  /// @param first its first row in the tile; it has that one, and with it the row 8 below, of each
  /// 64 rows
  __device__ void store_tile(const WgmmaItem& item, int first,
                             const float (&sums)[Shape::kRowTiles][Shape::N / 2]) const {
    if (parts == nullptr) {
      store(out, bias, windows.activation, item, first, sums);
    } else {
      const std::int64_t part = std::int64_t{windows.N} * windows.out_H * windows.out_W * windows.K;
      store(parts + item.split * part, nullptr, Activation::none, item, first, sums);
    }
  }

 private:
  /// Where a pixel begins, or null past the last one.
  template <class To>
  __device__ To* row(To* to, std::int64_t pixel) const {
    if (pixel >= windows.pixels()) return nullptr;
    if (dense) return to + pixel * windows.K;
    const std::int64_t row = pixel / windows.Q;
    const int n = static_cast<int>(row / windows.P);
    const int h = windows.out_first.h + windows.out_stride.h * static_cast<int>(row % windows.P);
    const int w = windows.out_first.w + windows.out_stride.w * static_cast<int>(pixel % windows.Q);
    return to + Index4{windows.out_H, windows.out_W, windows.K}(n, h, w, 0);
  }

  template <class To>
  __device__ void store(To* to, const float* added, Activation activation, const WgmmaItem& item,
                        int first, const float (&sums)[Shape::kRowTiles][Shape::N / 2]) const {
    const int k = filters.first(item.n);
    const int count = (filters.group(item.n) + 1) * filters.group_k - k;  // to the group's end
    To* rows[Shape::kRowTiles][2];  // of this thread: r and r + 8 of 16
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t pixel = item.m * Shape::M + first + i * 64;
      rows[i][0] = row(to, pixel);
      rows[i][1] = row(to, pixel + 8);
    }
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
      const int column = j * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
      if (column >= count) continue;
      const bool two = column + 1 < count;
      const float bias0 = added != nullptr ? added[k + column] : 0.0f;
      const float bias1 = added != nullptr && two ? added[k + column + 1] : 0.0f;
#pragma unroll
      for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (rows[i][half] == nullptr) continue;
          To* const at = rows[i][half] + k + column;
          const float v0 = activated(activation, sums[i][4 * j + 2 * half] + bias0);
          const float v1 = activated(activation, sums[i][4 * j + 2 * half + 1] + bias1);
          if (pairs) {
            gemm::store_two(at, v0, v1);
          } else {
            at[0] = rounded_to<To>(v0);
            if (two) at[1] = rounded_to<To>(v1);
          }
        }
      }
    }
  }
};

/// Whether two neighbouring filters are stored at once, if the output begins at a multiple of 4
/// bytes.
inline bool filters_of_16_bits_in_pairs(const Windows& windows) {
  return windows.group_k() % 2 == 0;
}

/// For a rung's choice: how they are computed.
inline std::string half_plan_in_words(const Windows& windows, bool engine) {
  if (windows.pixels() == 0) return "nothing to do";
  const WindowPlan plan = plan_of(windows);
  const char* const shape = !engine || plan.shape == WindowPlan::narrow ? "128 x 64"
                            : plan.shape == WindowPlan::tall            ? "256 x 64"
                            : plan.shape == WindowPlan::medium          ? "128 x 128"
                                                                        : "128 x 256";
  return text(shape, ", ", how_many(plan.splits, "part"), engine ? ", by TMA" : ", by a warp",
              filters_of_16_bits_in_pairs(windows) ? ", filters in pairs" : "");
}

/// The result's place. @param parts null, or where several parts of the sums go
template <class Shape, class T>
HalfPixels<Shape, T> half_pixels_of(const Windows& windows, const float* bias, T* out,
                                    float* parts) {
  return {.out = out,
          .parts = parts,
          .bias = bias,
          .windows = windows,
          .filters = FilterTiles<Shape>(windows),
          .dense = windows.P == windows.out_H && windows.Q == windows.out_W,
          .pairs = filters_of_16_bits_in_pairs(windows) &&
                   reinterpret_cast<std::uintptr_t>(out) % 4 == 0};
}

/// out [count] = bias [channels], or null, + the parts [splits][count] in their order, activated
/// and rounded. Grid <= kMaxFlatBlocks, block kFlatThreads.
template <class T>
__global__ void conv2d_sum_half_splits(const float* parts, int splits, std::int64_t count,
                                       const float* bias, int channels, Activation activation,
                                       T* out) {
  for (const std::int64_t i : grid_stride<kFlatThreads>(count)) {
    float sum = bias != nullptr ? bias[i % channels] : 0.0f;
#pragma unroll 4
    for (int split = 0; split < splits; ++split) sum += parts[split * count + i];
    out[i] = rounded_to<T>(activated(activation, sum));
  }
}

/// Adds up the parts of a product of windows.
template <class T>
void launch_sum_half_splits(const Windows& windows, const float* parts, int splits,
                            const float* bias, T* out) {
  const std::int64_t count = windows.out_size();
  launch(conv2d_sum_half_splits<T>, {blocks_for(count, kFlatThreads, kMaxFlatBlocks), kFlatThreads},
         parts, splits, count, bias, windows.K, windows.activation, out);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
