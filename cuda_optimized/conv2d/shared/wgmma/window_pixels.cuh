/// @file window_pixels.cuh
/// @brief Where the consumers of a product of windows store their sums.
#pragma once

#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Where the sums go.
template <class Shape, Layout kLayout>
struct Pixels {
  float* out;                  ///< in kLayout; of the first part, if there are several
  const float* bias;           ///< or null
  Windows windows;             ///< what there is to compute
  FilterTiles<Shape> filters;  ///< of the tiles' columns
  std::int64_t part;           ///< floats from the result of one part of the sums to the next
  bool dense;                  ///< pixels of the product follow one another in out
  bool pairs;                  ///< two neighbours can be stored at once

  /// Where a tile's sums go.
  struct Place {
    float* out;         ///< of the tile's first filter
    const float* bias;  ///< of the tile's first filter, or null
    int count;          ///< from there to the group's last one
  };
  /// Where the item's tile goes, in its part.
  __device__ Place place(const WgmmaItem& item) const {
    const int k = filters.first(item.n);
    return {.out = out + item.split * part + k * windows.plane(),
            .bias = bias ? bias + k : nullptr,
            .count = (filters.group(item.n) + 1) * filters.group_k - k};
  }
  /// Where the tile's first filter of a pixel lies, or null past the last pixel.
  __device__ float* row(const Place& place, std::int64_t pixel) const {
    if (pixel >= windows.pixels()) return nullptr;
    if (kLayout == Layout::nhwc && dense) return place.out + pixel * windows.K;
    const std::int64_t row = pixel / windows.Q;
    const int n = static_cast<int>(row / windows.P);
    const int h = windows.out_first.h + windows.out_stride.h * static_cast<int>(row % windows.P);
    const int w = windows.out_first.w + windows.out_stride.w * static_cast<int>(pixel % windows.Q);
    return place.out + LayoutIndex4{kLayout, windows.K, windows.out_H, windows.out_W}(n, 0, h, w);
  }
  /// Two neighbouring filters of a tile.
  struct Pair {
    std::int64_t offset;  ///< of the first one from the row
    int count;            ///< how many of the two there are
    float bias[2];        ///< added to them; 0 if there is none
  };
  /// The tile's filters `first` and `first` + 1.
  __device__ Pair columns(const Place& place, int first) const {
    const int count = place.count - first;
    return {.offset = first * (kLayout == Layout::nhwc ? 1 : windows.plane()),
            .count = count,
            .bias = {place.bias && count > 0 ? place.bias[first] : 0.0f,
                     place.bias && count > 1 ? place.bias[first + 1] : 0.0f}};
  }
  /// Whether store_whole may write the tile: nhwc, in pairs, with all of its filters and pixels.
  __device__ bool whole(const Place& place, const WgmmaItem& item) const {
    return kLayout == Layout::nhwc && pairs && place.count >= Shape::N &&
           (item.m + 1) * Shape::M <= windows.pixels();
  }
  /// A sum with its bias, as it is stored.
  __device__ float result(float sum, float added) const {
    return activated(windows.activation, sum + added);
  }
  /// Writes two sums with their bias, as one float2.
  __device__ void store_whole(const Pair& pair, float* row, float v0, float v1) const {
    *reinterpret_cast<float2*>(row + pair.offset) = {result(v0, pair.bias[0]),
                                                     result(v1, pair.bias[1])};
  }
  /// Writes those of two sums that are in out, with their bias; none if `row` is null.
  __device__ void store(const Pair& pair, float* row, float v0, float v1) const {
    if (row == nullptr || pair.count <= 0) return;
    row += pair.offset;
    v0 = result(v0, pair.bias[0]);
    v1 = result(v1, pair.bias[1]);
    if (kLayout == Layout::nhwc && pairs) {
      *reinterpret_cast<float2*>(row) = {v0, v1};
    } else {
      row[0] = v0;
      if (pair.count > 1) row[kLayout == Layout::nhwc ? 1 : windows.plane()] = v1;
    }
  }
  /// Writes a thread's sums, as wgmma leaves them.
  /// @param first its first row in the tile; it has that one, and with it the row 8 below, of each
  /// 64 rows
  __device__ void store_tile(const WgmmaItem& item, int first,
                             const float (&sums)[Shape::kRowTiles][Shape::N / 2]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Place at = place(item);
    float* rows[Shape::kRowTiles][2];  // of this thread: r and r + 8 of 16
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t pixel = item.m * Shape::M + first + i * 64;
      rows[i][0] = row(at, pixel);
      rows[i][1] = row(at, pixel + 8);
    }
    // Two loops: one without a test for tiles that lie in out as a whole, as most do.
    if (whole(at, item)) {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const Pair pair = columns(at, j * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          store_whole(pair, rows[i][0], sums[i][4 * j], sums[i][4 * j + 1]);
          store_whole(pair, rows[i][1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const Pair pair = columns(at, j * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          store(pair, rows[i][0], sums[i][4 * j], sums[i][4 * j + 1]);
          store(pair, rows[i][1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    }
  }
};

/// Whether two neighbouring filters are stored at once, if the output begins at a multiple of 8
/// bytes and lies in nhwc.
inline bool filters_in_pairs(const Windows& windows) { return windows.group_k() % 2 == 0; }

/// The result's place: out, or the parts of the sums if there are several. Parts get neither bias
/// nor activation, which wait until they are added up.
template <class Shape, Layout kLayout>
Pixels<Shape, kLayout> pixels_of(const Windows& windows, int splits, const WindowArrays& arrays) {
  float* const to = splits > 1 ? arrays.parts : arrays.out;
  Windows stored = windows;
  if (splits > 1) stored.activation = Activation::none;
  return {.out = to,
          .bias = splits > 1 ? nullptr : arrays.bias,
          .windows = stored,
          .filters = FilterTiles<Shape>(windows),
          .part = windows.out_size(),
          .dense = windows.P == windows.out_H && windows.Q == windows.out_W,
          .pairs = filters_in_pairs(windows) && reinterpret_cast<std::uintptr_t>(to) % 8 == 0};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
