/// @file half_pieces.cuh
/// @brief The weight gradient in 16 bits as a product of x and dy for wgmma, both as they lie: what
/// there is to compute, and sources, as in ../conv2d/window_sources.cuh.
///
/// The product's rows are *pieces*: 64 channels of a group at one tap. Its columns are the group's
/// filters, its sums run over all pixels of y. A step is 64 pixels.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

using conv2d::Chunk;
using conv2d::Windows;
using gemm::kHalfColumns;
using gemm::kHalfStep;
using gemm::kPieceBytes;

/// The pieces of a group.
struct Pieces {
  int S,        ///< taps in a row of the filter
      per_tap,  ///< pieces of a tap: the last may have fewer than 64 channels
      count;    ///< of all taps
  int group_c,  ///< channels of a group
      taps;     ///< R * S

  /// Of a convolution's filters.
  explicit Pieces(const Conv2dProblem& conv)
      : S(conv.S), per_tap(ceil_div(conv.C / conv.groups, kHalfColumns)),
        count(conv.R * conv.S * per_tap), group_c(conv.C / conv.groups), taps(conv.R * conv.S) {}
  /// A piece's tap and first channel, in words. Behind the last piece, that one again.
  HOST_DEVICE Chunk at(int piece) const {
    const int there = piece < count ? piece : count - 1, tap = there / per_tap;
    return {tap / S, tap % S, there % per_tap * (kHalfColumns / 2)};
  }
  /// Where the gradient of a piece's first channel lies in that of a filter, [R][S][group_c].
  HOST_DEVICE std::int64_t offset(int piece) const {
    return std::int64_t{piece / per_tap} * group_c + piece % per_tap * kHalfColumns;
  }
};

/// x and dy through TMA.
template <class Shape>
struct Im2colPieces {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap x,                             ///< im2col, of words
      dy;                                    ///< tiled, of words: [pixels][K / 2]
  Windows windows;                           ///< of the forward pass, with channels in words
  conv2d::FilterTiles<Shape> filters;        ///< of the tiles' columns
  Pieces pieces;                             ///< of a group

  /// A step of a tile.
  struct Cursor {
    std::int64_t pixel;        ///< the step's first one, of all images
    int row, filter, group_c;  ///< the tile's first piece and filter; its group's first word of x
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const gemm::WgmmaItem& item) const {
    return {.pixel = std::int64_t{item.first} * kHalfStep,
            .row = static_cast<int>(item.m) * gemm::kConsumers,
            .filter = filters.first(item.n),
            .group_c = filters.group(item.n) * windows.group_c};
  }
  /// Starts the copies of a step: to a_tile a piece for each consumer, [64 pixels][64 channels]; to
  /// b_tile [Shape::N / 64][64 pixels][64 filters]; all swizzled. `full` completes once all bytes
  /// are there. Pixels behind the last one are zeros in both.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    const std::int64_t line = cursor.pixel / windows.Q;
    const int q = static_cast<int>(cursor.pixel % windows.Q);
    const int p = static_cast<int>(line % windows.P), n = static_cast<int>(line / windows.P);
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
#pragma unroll
    for (int i = 0; i < gemm::kConsumers; ++i) {
      const Chunk chunk = pieces.at(cursor.row + i);
      ptx::tma_load_im2col(a_tile + i * kPieceBytes, &x, full, cursor.group_c + chunk.c,
                           q * windows.stride.w + windows.first.w,
                           p * windows.stride.h + windows.first.h, n,
                           static_cast<unsigned short>(chunk.s * windows.dilation.w),
                           static_cast<unsigned short>(chunk.r * windows.dilation.h));
    }
#pragma unroll
    for (int i = 0; i < Shape::N / kHalfColumns; ++i) {
      ptx::tma_load<2>(b_tile + i * kPieceBytes, &dy, full,
                       {(cursor.filter + i * kHalfColumns) / 2, static_cast<int>(cursor.pixel)});
    }
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { cursor.pixel += kHalfStep; }
};

/// TMA's view of the arrays.
template <class Shape, class T>
Im2colPieces<Shape> im2col_pieces(const Windows& windows, const Pieces& pieces, const T* x,
                                  const T* dy) {
  const std::int64_t words = windows.K / 2;
  const TiledMap rows = {.rank = 2,
                         .extents = {words, windows.pixels()},
                         .strides = {1, words},
                         .box = {kTensorMapRow, kHalfStep}};
  return {.x = tensor_map(conv2d::im2col_of(windows, kHalfStep), conv2d::words_of(x)),
          .dy = tensor_map(rows, conv2d::words_of(dy)),
          .windows = windows,
          .filters = conv2d::FilterTiles<Shape>(windows),
          .pieces = pieces};
}

/// The same by a warp, word by word, for what TMA cannot take.
template <class Shape, class T>
struct GatheredPieces {
  /// So many pixels at a time.
  struct Step {
    static constexpr int M = kHalfStep;  ///< of a step
  };
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a step's words
  conv2d::GatheredPixels<Step, T> x;        ///< with the windows
  const T* dy;                              ///< [pixels][K]
  conv2d::FilterTiles<Shape> filters;       ///< of the tiles' columns
  Pieces pieces;                            ///< of a group

  /// A step of a tile.
  struct Cursor {
    std::int64_t pixel;      ///< the step's first one, of all images
    int row, filter, group;  ///< the tile's first piece and filter, and its group
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const gemm::WgmmaItem& item) const {
    return {.pixel = std::int64_t{item.first} * kHalfStep,
            .row = static_cast<int>(item.m) * gemm::kConsumers,
            .filter = filters.first(item.n),
            .group = filters.group(item.n)};
  }
  /// Copies a step, as Im2colPieces's lies; then one lane arrives at `full`. Called by a whole
  /// warp.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    for (int i = 0; i < gemm::kConsumers; ++i) {
      x.load(pieces.at(cursor.row + i), cursor.pixel, cursor.group,
             reinterpret_cast<std::uint32_t*>(a_tile + i * kPieceBytes));
    }
    const Windows& windows = x.windows;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < kHalfStep; ++i) {
      const std::int64_t pixel = cursor.pixel + i;
      for (int k = 2 * lane; k < Shape::N; k += kHalfColumns) {
        auto* const piece =
            reinterpret_cast<std::uint32_t*>(b_tile + k / kHalfColumns * kPieceBytes);
        piece[gemm::swizzled(i, lane)] =
            pixel < windows.pixels() ? conv2d::word_at(dy, pixel * windows.K + cursor.filter + k,
                                                       windows.K - cursor.filter - k)
                                     : 0;
      }
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { cursor.pixel += kHalfStep; }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
