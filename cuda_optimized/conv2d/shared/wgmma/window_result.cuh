/// @file window_result.cuh
/// @brief Epilogue of the wgmma rungs: consumer warpgroups store accumulators from registers, as
/// whole results or as parts of sums (split-K), which sum_splits.cuh adds up.
#pragma once

#include <type_traits>

#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Where the accumulators go. @tparam T of out: float, or a type of half precision
template <class Shape, class T, Layout kLayout = Layout::nhwc>
struct WindowResult {
  T* out;                      ///< [N][out_H][out_W][K], or [N][K][out_H][out_W]; of floats, or
                               ///< [splits] of such arrays
  float* parts;                ///< in half precision, such arrays; null if sums are whole
  const float* bias;           ///< [K], or null
  Windows windows;             ///< what there is to compute
  FilterTiles<Shape> filters;  ///< of the tiles' columns
  std::int64_t part;           ///< elements of a part
  bool dense;                  ///< the pixels of the windows follow one another in out
  bool pairs;                  ///< two neighbouring filters can be stored at once

  /// Of windows in an array that may begin anywhere. @param to_parts null if sums are whole
  WindowResult(const Windows& of, const float* with_bias, T* to, float* to_parts)
      : out(to), parts(to_parts), bias(with_bias), windows(of), filters(of), part(of.out_size()),
        dense(of.P == of.out_H && of.Q == of.out_W),
        pairs(kLayout == Layout::nhwc && of.group_k() % 2 == 0 &&
              reinterpret_cast<std::uintptr_t>(to) % (2 * sizeof(T)) == 0) {
    if constexpr (std::is_same_v<T, float>) {
      if (parts == nullptr) return;
      out = parts;
      bias = nullptr;
      windows.activation = Activation::none;
    }
  }

  /// Stores a thread's accumulators as wgmma leaves them. Parts get neither bias nor activation,
  /// which follow when they are added up.
  /// @param first its first row in the tile; it has that one, and the row 8 below, of each 64 rows
  __device__ void store_tile(const WgmmaItem& item, int first,
                             const float (&accumulators)[Shape::kRowTiles][Shape::N / 2]) const {
    if constexpr (std::is_same_v<T, float>) {
      store(out + item.split * part, bias, windows.activation, item, first, accumulators);
    } else if (parts == nullptr) {
      store(out, bias, windows.activation, item, first, accumulators);
    } else {
      store(parts + item.split * part, nullptr, Activation::none, item, first, accumulators);
    }
  }

 private:
  /// Where a pixel begins, or null past the last one.
  template <class To>
  __device__ To* row(To* to, std::int64_t pixel) const {
    if (pixel >= windows.pixels()) return nullptr;
    if (kLayout == Layout::nhwc && dense) return to + pixel * windows.K;
    const std::int64_t row = pixel / windows.Q;
    const int n = static_cast<int>(row / windows.P);
    const int h = windows.out_first.h + windows.out_stride.h * static_cast<int>(row % windows.P);
    const int w = windows.out_first.w + windows.out_stride.w * static_cast<int>(pixel % windows.Q);
    return to + LayoutIndex4{kLayout, windows.K, windows.out_H, windows.out_W}(n, 0, h, w);
  }

  template <class To>
  __device__ void store(To* to, const float* added, Activation activation, const WgmmaItem& item,
                        int first,
                        const float (&accumulators)[Shape::kRowTiles][Shape::N / 2]) const {
    const int k = filters.first(item.n);
    const int count = (filters.group(item.n) + 1) * filters.group_k - k;  // to the group's end
    const bool whole = pairs && count >= Shape::N && (item.m + 1) * Shape::M <= windows.pixels();
    // Without a test of each pair for tiles of floats that lie in out as a whole, as most do.
    if (std::is_same_v<T, float> && kLayout == Layout::nhwc && whole) {
      store_columns<true>(to, added, activation, item, first, k, count, accumulators);
    } else {
      store_columns<false>(to, added, activation, item, first, k, count, accumulators);
    }
  }

  template <bool kWhole, class To>
  __device__ void store_columns(To* to, const float* added, Activation activation,
                                const WgmmaItem& item, int first, int k, int count,
                                const float (&accumulators)[Shape::kRowTiles][Shape::N / 2]) const {
    const std::int64_t plane = kLayout == Layout::nhwc ? 1 : windows.plane();
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
      if (!kWhole && column >= count) continue;
      const bool two = kWhole || column + 1 < count;
      const float bias0 = added != nullptr ? added[k + column] : 0.0f;
      const float bias1 = added != nullptr && two ? added[k + column + 1] : 0.0f;
#pragma unroll
      for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          if (!kWhole && rows[i][below] == nullptr) continue;
          // Half precision is nhwc. In two additions, nvcc schedules its many stores better.
          To* const at = std::is_same_v<T, float> ? rows[i][below] + (k + column) * plane
                                                  : rows[i][below] + k + column;
          const float v0 = activated(activation, accumulators[i][4 * j + 2 * below] + bias0);
          const float v1 = activated(activation, accumulators[i][4 * j + 2 * below + 1] + bias1);
          if (kWhole || (kLayout == Layout::nhwc && pairs)) {
            gemm::store_two(at, v0, v1);
          } else {
            at[0] = rounded_to<To>(v0);
            if (two) at[plane] = rounded_to<To>(v1);
          }
        }
      }
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
