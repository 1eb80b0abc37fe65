/// @file piece_operands.cuh
/// @brief How the producer warp of implicit_gemm/warp_specialized.cu loads a step's pieces of x and
/// dy, by TMA or element by element; and the bias gradient, the sums of dy's columns.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/pieces.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

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
  static constexpr bool kWholeWarp = true;  ///< each lane loads one of a step's words
  conv2d::GatheredPixels<kHalfStep, T> x;   ///< with the windows
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
    conv2d::arrive_after_stores(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { cursor.pixel += kHalfStep; }
};

inline constexpr int kSumColumns = 32, kSumRows = 16;  ///< Threads of a block: filters by pixels.
inline constexpr int kMostSlices = 64;                 ///< Of all pixels.

/// Slices of the pixels: a thread adds up eight at least.
inline int slices_of(const Conv2dProblem& conv) {
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  return static_cast<int>(
      std::clamp<std::int64_t>(pixels / (8 * kSumRows), 1, std::int64_t{kMostSlices}));
}

/// Floats of the slices' sums.
inline std::int64_t sum_pixels_floats(const Conv2dProblem& conv) {
  return std::int64_t{slices_of(conv)} * conv.K;
}

/// parts [slices][K] of the sums of dy [pixels][K]. Grid (ceil(K / 32), slices), block (32, 16).
template <class T>
__global__ void conv2d_wgrad_sum_pixels(const T* dy, std::int64_t pixels, int K, float* parts) {
  __shared__ float sums[kSumRows][kSumColumns];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int k = static_cast<int>(blockIdx.x) * kSumColumns + tx;
  float sum = 0.0f;
  if (k < K) {
#pragma unroll 8
    for (std::int64_t pixel = std::int64_t{blockIdx.y} * kSumRows + ty; pixel < pixels;
         pixel += std::int64_t{gridDim.y} * kSumRows) {
      sum += to_float(dy[pixel * K + k]);
    }
  }
  sums[ty][tx] = sum;
  __syncthreads();  // separates these stores from the loads below
  if (ty > 0 || k >= K) return;
  for (int row = 1; row < kSumRows; ++row) sum += sums[row][tx];
  parts[std::int64_t{blockIdx.y} * K + k] = sum;
}

/// Launches the sums of the slices, and their sum. @param parts of sum_pixels_floats()
template <class T>
void launch_sum_pixels(const Conv2dProblem& conv, const T* dy, float* parts, float* db) {
  const int slices = slices_of(conv);
  launch(conv2d_wgrad_sum_pixels<T>,
         {dim3(blocks_for(conv.K, kSumColumns), static_cast<unsigned>(slices)),
          dim3(kSumColumns, kSumRows)},
         dy, std::int64_t{conv.N} * conv.P * conv.Q, conv.K, parts);
  conv2d::launch_sum_splits(parts, slices, conv.K, nullptr, 1, 1, Activation::none, db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
