/// @file half_classes.cuh
/// @brief The input gradient in 16 bits as sums over windows of dy, a class of pixels at a time,
/// with the weights as they lie: sources, as in ../conv2d/window_sources.cuh.
#pragma once

#include <algorithm>
#include <vector>

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

/// Which tap of the filter a tap of a class's windows is. The windows' order is the reverse one.
struct ClassTaps {
  int last_r,  ///< of the windows' first row of taps
      step_r,  ///< down the filter to the next row's
      last_s,  ///< likewise of columns
      step_s;  ///< likewise
  int S;       ///< taps in a row of the filter

  /// The taps of a class that has some.
  ClassTaps(const Conv2dProblem& conv, const ResidueClass& residue)
      : last_r(residue.h.first_tap + (residue.h.taps - 1) * residue.h.tap_step),
        step_r(residue.h.tap_step),
        last_s(residue.w.first_tap + (residue.w.taps - 1) * residue.w.tap_step),
        step_s(residue.w.tap_step), S(conv.S) {}
  /// The filter's tap, r * S + s, of a tap of the windows.
  HOST_DEVICE int at(int r, int s) const { return (last_r - r * step_r) * S + last_s - s * step_s; }
};

/// dy [N][P][Q][K] and weights [K][R][S][C/groups] through TMA. For a tap, the weights
/// are a row-major factor: channels of dx along its rows, 64 of dy's channels down.
template <class Shape>
struct Im2colClass {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap dy,                            ///< im2col, of words
      weights;                         ///< tiled, of words: [groups][K/groups][R*S][C/groups/2]
  Windows windows;                     ///< what there is to compute, with dy's channels in words
  conv2d::FilterTiles<Shape> columns;  ///< channels of dx, by tiles
  ClassTaps taps;                      ///< of the class

  /// A step of a tile.
  struct Cursor {
    conv2d::Chunk chunk;  ///< of the next step
    int n, h, w;          ///< where the window of the tile's first pixel begins
    int group, column;    ///< the tile's group, and its first channel of dx in it
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const conv2d::WgmmaItem& item) const {
    const std::int64_t pixel = item.m * Shape::M, row = pixel / windows.Q;
    const int q = static_cast<int>(pixel % windows.Q), p = static_cast<int>(row % windows.P);
    const int group = columns.group(item.n);
    return {.chunk = chunk_at(windows, item.first),
            .n = static_cast<int>(row / windows.P),
            .h = p * windows.stride.h + windows.first.h,
            .w = q * windows.stride.w + windows.first.w,
            .group = group,
            .column = columns.first(item.n) - group * columns.group_k};
  }
  /// Starts the copies of a step: dy's pixels to a_tile [Shape::M][64], the tap's weights to b_tile
  /// [Shape::N / 64][64 of k][64], all swizzled. `full` completes once all bytes are there.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const conv2d::Chunk chunk = cursor.chunk;
    // Whole boxes count, also the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load_im2col(a_tile, &dy, full, cursor.group * windows.group_c + chunk.c, cursor.w,
                         cursor.h, cursor.n,
                         static_cast<unsigned short>(chunk.s * windows.dilation.w),
                         static_cast<unsigned short>(chunk.r * windows.dilation.h));
#pragma unroll
    for (int i = 0; i < Shape::N / gemm::kHalfColumns; ++i) {
      ptx::tma_load<4>(b_tile + i * gemm::kPieceBytes / 4, &weights, full,
                       {(cursor.column + i * gemm::kHalfColumns) / 2, taps.at(chunk.r, chunk.s),
                        2 * chunk.c, cursor.group});
    }
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { conv2d::advance(windows, cursor.chunk); }
};

/// TMA's view of the weights, in words: for a tap and 64 of a group's k, 64 channels c.
inline TiledMap weights_as_they_lie(const Conv2dProblem& conv) {
  const std::int64_t words = conv.C / conv.groups / 2, taps = std::int64_t{conv.R} * conv.S;
  const std::int64_t group_k = conv.K / conv.groups;
  return {.rank = 4,
          .extents = {words, taps, group_k, conv.groups},
          .strides = {1, words, taps * words, group_k * taps * words},
          .box = {kTensorMapRow, 1, gemm::kHalfStep, 1}};
}

/// TMA's view of the arrays.
template <class Shape, class T>
Im2colClass<Shape> im2col_class(const Conv2dProblem& conv, const Windows& windows,
                                const ClassTaps& taps, const T* dy, const T* weights) {
  return {.dy = tensor_map(conv2d::im2col_of(windows, Shape::M), conv2d::words_of(dy)),
          .weights = tensor_map(weights_as_they_lie(conv), conv2d::words_of(weights)),
          .windows = windows,
          .columns = conv2d::FilterTiles<Shape>(windows),
          .taps = taps};
}

/// The same by a warp, word by word, for what TMA cannot take.
template <class Shape, class T>
struct GatheredClass {
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a step's words
  conv2d::GatheredPixels<Shape, T> pixels;  ///< of dy, with the windows
  const T* weights;                         ///< [K][R][S][C/groups]
  int filter_taps;                          ///< R * S
  conv2d::FilterTiles<Shape> columns;       ///< channels of dx, by tiles
  ClassTaps taps;                           ///< of the class

  /// A step of a tile.
  struct Cursor {
    conv2d::Chunk chunk;  ///< of the next step
    std::int64_t pixel;   ///< the tile's first one
    int group, column;    ///< the tile's group, and its first channel of dx in it
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const conv2d::WgmmaItem& item) const {
    const int group = columns.group(item.n);
    return {.chunk = chunk_at(pixels.windows, item.first),
            .pixel = item.m * Shape::M,
            .group = group,
            .column = columns.first(item.n) - group * columns.group_k};
  }
  /// Copies a step, as Im2colClass's lies; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const conv2d::Chunk chunk = cursor.chunk;
    pixels.load(chunk, cursor.pixel, cursor.group, reinterpret_cast<std::uint32_t*>(a_tile));
    const int lane = static_cast<int>(threadIdx.x) % 32, group_c = columns.group_k;
    const Index4 at{pixels.group_c, filter_taps, group_c};
    for (int k = 0; k < gemm::kHalfStep; ++k) {
      for (int c = 2 * lane; c < Shape::N; c += gemm::kHalfColumns) {
        const bool inside = 2 * chunk.c + k < pixels.group_c;
        auto* const piece = reinterpret_cast<std::uint32_t*>(b_tile + c / gemm::kHalfColumns *
                                                                          (gemm::kPieceBytes / 4));
        piece[gemm::swizzled(k, lane)] =
            inside ? conv2d::word_at(weights,
                                     at(cursor.group, 2 * chunk.c + k, taps.at(chunk.r, chunk.s),
                                        cursor.column + c),
                                     group_c - cursor.column - c)
                   : 0;
      }
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { conv2d::advance(pixels.windows, cursor.chunk); }
};

/// The pixels of one residue: a forward pass over dy with some of the taps, in reverse order.
struct HalfClass {
  Windows windows;  ///< the forward pass, with dy's channels in words
  ClassTaps taps;   ///< of the filter
};

/// How an input gradient is computed.
struct HalfClassesPlan {
  std::vector<HalfClass> classes;  ///< those that a tap reaches
  bool all_pixels = true;          ///< some tap reaches every pixel of dx
  std::int64_t parts = 0;          ///< floats of sums in parts

  /// All classes that a tap reaches.
  explicit HalfClassesPlan(const Conv2dProblem& conv) {
    for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& product) {
      if (product.R == 0 || product.S == 0) {
        all_pixels = false;
        return;
      }
      classes.push_back({conv2d::in_words(windows_of(conv, residue, product)), {conv, residue}});
      parts = std::max(parts, conv2d::part_floats(classes.back().windows));
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
