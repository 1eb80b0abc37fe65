/// @file window_sources.cuh
/// @brief How the producer warp of an implicit GEMM loads a step's pixels and filters: by TMA, or
/// element by element.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// source [N][H][W][C] and weights [K][R*S][group_c] through TMA.
template <class Shape>
struct Im2colSource {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap source,                        ///< im2col, of [N][H][W][C]
      weights;                               ///< tiled, of [K][R*S][group_c]
  Windows windows;                           ///< what there is to compute
  FilterTiles<Shape> filters;                ///< of the tiles' columns

  /// A step of a tile.
  struct Cursor {
    Chunk chunk;    ///< of the next step
    int n, h, w;    ///< where the window of the tile's first pixel begins
    int c, filter;  ///< the tile's first channel and filter
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    const std::int64_t pixel = item.m * Shape::M, row = pixel / windows.Q;
    const int q = static_cast<int>(pixel % windows.Q), p = static_cast<int>(row % windows.P);
    return {.chunk = chunk_at(windows, item.first),
            .n = static_cast<int>(row / windows.P),
            .h = p * windows.stride.h + windows.first.h,
            .w = q * windows.stride.w + windows.first.w,
            .c = filters.group(item.n) * windows.group_c,
            .filter = filters.first(item.n)};
  }
  /// Starts the copies of a step: its pixels to a_tile [Shape::M][32], its filters to b_tile
  /// [Shape::N][32], both swizzled. `full` completes once all bytes are there.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const Chunk chunk = cursor.chunk;
    // Whole boxes count, also the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load_im2col(a_tile, &source, full, cursor.c + chunk.c, cursor.w, cursor.h, cursor.n,
                         static_cast<unsigned short>(chunk.s * windows.dilation.w),
                         static_cast<unsigned short>(chunk.r * windows.dilation.h));
    ptx::tma_load<3>(b_tile, &weights, full,
                     {chunk.c, chunk.r * windows.S + chunk.s, cursor.filter});
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { conv2d::advance(windows, cursor.chunk); }
};

/// Where windows begin, for loads of so many pixels.
inline Im2colMap im2col_of(const Windows& windows, int pixels) {
  return {.N = windows.N,
          .H = windows.H,
          .W = windows.W,
          .C = windows.groups * windows.group_c,
          .lower_h = windows.first.h,
          .lower_w = windows.first.w,
          // The box ends one beyond where the last windows begin.
          .upper_h = windows.first.h + (windows.P - 1) * windows.stride.h + 1 - windows.H,
          .upper_w = windows.first.w + (windows.Q - 1) * windows.stride.w + 1 - windows.W,
          .stride_h = windows.stride.h,
          .stride_w = windows.stride.w,
          .pixels = pixels};
}

/// TMA's view of the arrays: floats, or words of two numbers.
template <class Shape, class Word>
Im2colSource<Shape> im2col_source(const Windows& windows, const Word* source, const Word* filters) {
  const std::int64_t taps = std::int64_t{windows.R} * windows.S, channels = windows.group_c;
  const TiledMap weights = {.rank = 3,
                            .extents = {channels, taps, windows.K},
                            .strides = {1, channels, taps * channels},
                            .box = {kWgmmaStep, 1, Shape::N}};
  return {.source = tensor_map(im2col_of(windows, Shape::M), source),
          .weights = tensor_map(weights, filters),
          .windows = windows,
          .filters = FilterTiles<Shape>(windows)};
}

/// The same by a warp, element by element, for what TMA cannot take.
template <class Shape>
struct GatheredSource {
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a step's channels
  const float *source,                      ///< in windows.layout
      *weights;                             ///< in weights_layout
  Windows windows;                          ///< with the source's layout in memory
  Layout weights_layout;                    ///< nhwc: [K][R][S][group_c], nchw: [K][group_c][R][S]
  FilterTiles<Shape> filters;               ///< of the tiles' columns

  /// A step of a tile.
  struct Cursor {
    Chunk chunk;         ///< of the next step
    std::int64_t pixel;  ///< the tile's first one, of windows.pixels()
    int c, filter;       ///< the tile's first channel and filter
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {.chunk = chunk_at(windows, item.first),
            .pixel = item.m * Shape::M,
            .c = filters.group(item.n) * windows.group_c,
            .filter = filters.first(item.n)};
  }
  /// Copies a step, rounded to TF32: its pixels to a_tile [Shape::M][32], its filters to b_tile
  /// [Shape::N][32], both swizzled; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const LayoutIndex4 from{windows.layout, windows.groups * windows.group_c, windows.H, windows.W};
    const LayoutIndex4 weight{weights_layout, windows.group_c, windows.R, windows.S};
    const Chunk chunk = cursor.chunk;
    const int lane = static_cast<int>(threadIdx.x) % 32, c = chunk.c + lane;
    for (int i = 0; i < Shape::M; ++i) {
      const std::int64_t pixel = cursor.pixel + i, row = pixel / windows.Q;
      const int n = static_cast<int>(row / windows.P);
      const int h = static_cast<int>(row % windows.P) * windows.stride.h + windows.first.h +
                    chunk.r * windows.dilation.h;
      const int w = static_cast<int>(pixel % windows.Q) * windows.stride.w + windows.first.w +
                    chunk.s * windows.dilation.w;
      const bool inside = n < windows.N && c < windows.group_c && h >= 0 && h < windows.H &&
                          w >= 0 && w < windows.W;
      a_tile[gemm::swizzled(i, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(source[from(n, cursor.c + c, h, w)])) : 0.0f;
    }
    for (int j = 0; j < Shape::N; ++j) {
      const int filter = cursor.filter + j;
      const bool inside = filter < windows.K && c < windows.group_c;
      b_tile[gemm::swizzled(j, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(weights[weight(filter, c, chunk.r, chunk.s)]))
                 : 0.0f;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { conv2d::advance(windows, cursor.chunk); }
};

/// The arrays as a warp gathers them.
template <class Shape>
GatheredSource<Shape> gathered_source(const Windows& windows, const WindowArrays& arrays) {
  Windows in_memory = windows;
  in_memory.layout = arrays.source_layout;
  return {.source = arrays.source,
          .weights = arrays.weights,
          .windows = in_memory,
          .weights_layout = arrays.weights_layout,
          .filters = FilterTiles<Shape>(windows)};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
