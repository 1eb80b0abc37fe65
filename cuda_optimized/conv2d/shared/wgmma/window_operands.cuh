/// @file window_operands.cuh
/// @brief How the producer warp of a wgmma rung loads a step's pixels and weights: by TMA, or
/// element by element where TMA cannot read the arrays.
///
/// A step is one tap and 32 words of channels: a word is a float, or two elements in half
/// precision. An operands' source has three members:
///
///     Cursor at(item)               where the first step of a part of a tile begins
///     load(cursor, a, b, full)      copies a step into a stage, and arrives at the barrier `full`;
///                                   called by one thread, or by a warp if kWholeWarp
///     advance(cursor)               to the next step
///
/// A stage has the pixels as operand A, [Shape::M][32 words], and the weights as operand B: filters
/// as rows, [Shape::N][32 words]; or *transposed*, [Shape::N / 64][64 channels][64 filters], as the
/// weights of an input gradient lie. All rows of 128 bytes have TMA's swizzle.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kHalfStep;

/// Which filters belong to a tile. Tiles do not cross groups.
template <class Shape>
struct FilterTiles {
  int group_k, group_tiles;  ///< filters of a group, and tiles of them

  /// Of a group's filters, Shape::N in a tile.
  explicit FilterTiles(const Windows& windows)
      : group_k(windows.group_k()), group_tiles(ceil_div(windows.group_k(), Shape::N)) {}
  /// The group of a tile's filters; tiles are counted through all groups.
  HOST_DEVICE int group(int tile) const { return tile / group_tiles; }
  /// A tile's first filter, of all K.
  HOST_DEVICE int first(int tile) const {
    return group(tile) * group_k + tile % group_tiles * Shape::N;
  }
};

/// The place in the sum: a tap of the filter, and kWgmmaStep words of channels.
struct Chunk {
  int r,  ///< row of the filter
      s,  ///< column of the filter
      c;  ///< the first word, within the group
};

/// The chunk of a step: channels change fastest, then s, then r.
__device__ inline Chunk chunk_at(const Windows& windows, int step) {
  const int place = step / windows.chunks();
  return {place / windows.S, place % windows.S, step % windows.chunks() * kWgmmaStep};
}

/// To the next step's chunk, without divisions.
__device__ inline void advance(const Windows& windows, Chunk& chunk) {
  if ((chunk.c += kWgmmaStep) < windows.group_c) return;
  chunk.c = 0;
  if (++chunk.s < windows.S) return;
  chunk.s = 0;
  ++chunk.r;
}

/// Operands through TMA: its im2col mode finds the windows of a tile of pixels.
template <class Shape, bool kTransposed_ = false>
struct TmaOperands {
  static constexpr bool kWholeWarp = false;          ///< one thread starts the copies
  static constexpr bool kTransposed = kTransposed_;  ///< operand B has filters along its rows
  CUtensorMap source,                                ///< im2col, of [N][H][W][C]
      weights;                                       ///< tiled, of [K][R*S][group_c]; transposed,
                                                     ///< of [groups][group_c][R*S][group_k]
  Windows windows;                                   ///< what there is to compute
  FilterTiles<Shape> filters;                        ///< of the tiles' columns
  WindowTaps taps;                                   ///< of transposed weights

  /// A step of a tile.
  struct Cursor {
    Chunk chunk;        ///< of the next step
    int n, h, w;        ///< where the window of the tile's first pixel begins
    int group, filter;  ///< the tile's group, and its first filter, of all K
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    const std::int64_t pixel = item.m * Shape::M, row = pixel / windows.Q;
    const int q = static_cast<int>(pixel % windows.Q), p = static_cast<int>(row % windows.P);
    return {.chunk = chunk_at(windows, item.first),
            .n = static_cast<int>(row / windows.P),
            .h = p * windows.stride.h + windows.first.h,
            .w = q * windows.stride.w + windows.first.w,
            .group = filters.group(item.n),
            .filter = filters.first(item.n)};
  }
  /// Starts the copies of a step. `full` completes once all bytes have arrived.
  __device__ void load(const Cursor& cursor, char* a, char* b, std::uint64_t* full) const {
    const Chunk& chunk = cursor.chunk;
    // Whole boxes count, including the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load_im2col(a, &source, full, cursor.group * windows.group_c + chunk.c, cursor.w,
                         cursor.h, cursor.n,
                         static_cast<unsigned short>(chunk.s * windows.dilation.w),
                         static_cast<unsigned short>(chunk.r * windows.dilation.h));
    if constexpr (kTransposed) {
      const int column = cursor.filter - cursor.group * filters.group_k;
#pragma unroll
      for (int i = 0; i < Shape::N / gemm::kHalfColumns; ++i) {
        ptx::tma_load<4>(b + i * gemm::kPieceBytes, &weights, full,
                         {(column + i * gemm::kHalfColumns) / 2, taps.at(chunk.r, chunk.s),
                          2 * chunk.c, cursor.group});
      }
    } else {
      ptx::tma_load<3>(b, &weights, full, {chunk.c, chunk.r * windows.S + chunk.s, cursor.filter});
    }
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
          // The box ends one pixel beyond where the last windows begin.
          .upper_h = windows.first.h + (windows.P - 1) * windows.stride.h + 1 - windows.H,
          .upper_w = windows.first.w + (windows.Q - 1) * windows.stride.w + 1 - windows.W,
          .stride_h = windows.stride.h,
          .stride_w = windows.stride.w,
          .pixels = pixels};
}

/// TMA's view of weights [K][R*S][group_c], in boxes of some filters by 32 words of a tap.
inline TiledMap weights_map(const Windows& windows, int filters) {
  const std::int64_t taps = std::int64_t{windows.R} * windows.S, words = windows.group_c;
  return {.rank = 3,
          .extents = {words, taps, windows.K},
          .strides = {1, words, taps * words},
          .box = {kWgmmaStep, 1, filters}};
}

/// The same of transposed weights [groups][group_c][R*S][group_k], in boxes of 64 channels by 64
/// filters. With an axis for groups, what follows a group's last channel is zeros, and not the next
/// group's weights.
inline TiledMap transposed_weights_map(const HalfProduct& product) {
  const std::int64_t words = product.windows.group_k() / 2, taps = product.filter_taps;
  return {.rank = 4,
          .extents = {words, taps, product.group_c, product.windows.groups},
          .strides = {1, words, taps * words, product.group_c * taps * words},
          .box = {kTensorMapRow, 1, kHalfStep, 1}};
}

/// Operands [N][H][W][C] and [K][R*S][group_c] in TF32; TMA rounds them on the way.
template <class Shape>
TmaOperands<Shape> tf32_tma_operands(const Windows& windows, const float* source,
                                     const float* weights) {
  return {.source = tensor_map(im2col_of(windows, Shape::M), source),
          .weights = tensor_map(weights_map(windows, Shape::N), weights),
          .windows = windows,
          .filters = FilterTiles<Shape>(windows),
          .taps = {}};
}

/// Operands of a product in half precision.
template <class Shape, bool kTransposed>
TmaOperands<Shape, kTransposed> half_tma_operands(const HalfProduct& product,
                                                  const std::uint32_t* source,
                                                  const std::uint32_t* weights) {
  const Windows& windows = product.windows;
  const TiledMap map =
      kTransposed ? transposed_weights_map(product) : weights_map(windows, Shape::N);
  return {.source = tensor_map(im2col_of(windows, Shape::M), source),
          .weights = tensor_map(map, weights),
          .windows = windows,
          .filters = FilterTiles<Shape>(windows),
          .taps = product.taps};
}

/// The words of an array in half precision.
template <class T>
const std::uint32_t* words_of(const T* numbers) {
  return reinterpret_cast<const std::uint32_t*>(numbers);
}

/// Channels in a word.
template <class T>
inline constexpr int kWordChannels = 4 / static_cast<int>(sizeof(T));

/// The numbers from `offset` on as a word, the first one in its low half; zeros for those that are
/// not among `count`.
template <class T>
__device__ std::uint32_t word_at(const T* numbers, std::int64_t offset, int count) {
  std::uint32_t word = 0;
  if (count > 0) word = numbers[offset].bits;
  if (count > 1) word |= std::uint32_t{numbers[offset + 1].bits} << 16;
  return word;
}
/// A float as a word, rounded to TF32.
__device__ inline std::uint32_t word_at(const float* numbers, std::int64_t offset, int count) {
  return count > 0 ? ptx::to_tf32(numbers[offset]) : 0;
}

/// After a warp has written a stage by ordinary stores: orders them before the asynchronous proxy,
/// by which wgmma reads shared memory, and then arrives.
__device__ inline void arrive_after_stores(std::uint64_t* full) {
  ptx::fence_proxy_async();
  __syncwarp();  // separates all lanes' stores from the arrival
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(full);
}

/// kPixels windows of a tap by a warp, element by element.
template <int kPixels, class T>
struct GatheredPixels {
  const T* source;  ///< [N][H][W][groups * group_c]; of floats, in windows.layout
  Windows windows;  ///< with channels in words
  int group_c;      ///< channels of a group, in numbers

  /// Copies the chunk of a group's channels of the pixels from `pixel` on to [kPixels][32 words].
  __device__ void load(const Chunk& chunk, std::int64_t pixel, int group,
                       std::uint32_t* tile) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, c = kWordChannels<T> * (chunk.c + lane);
    const LayoutIndex4 at{kWordChannels<T> == 1 ? windows.layout : Layout::nhwc,
                          windows.groups * group_c, windows.H, windows.W};
    for (int i = 0; i < kPixels; ++i, ++pixel) {
      const std::int64_t row = pixel / windows.Q;
      const int n = static_cast<int>(row / windows.P);
      const int h = static_cast<int>(row % windows.P) * windows.stride.h + windows.first.h +
                    chunk.r * windows.dilation.h;
      const int w = static_cast<int>(pixel % windows.Q) * windows.stride.w + windows.first.w +
                    chunk.s * windows.dilation.w;
      const bool inside = n < windows.N && h >= 0 && h < windows.H && w >= 0 && w < windows.W;
      tile[gemm::swizzled(i, lane)] =
          inside ? word_at(source, at(n, group * group_c + c, h, w), group_c - c) : 0;
    }
  }
};

/// Operands by a warp, for arrays that TMA cannot read.
template <class Shape, class T, bool kTransposed_ = false>
struct GatheredOperands {
  static constexpr bool kWholeWarp = true;           ///< each lane loads one word of a row
  static constexpr bool kTransposed = kTransposed_;  ///< as of TmaOperands
  GatheredPixels<Shape::M, T> pixels;                ///< with the windows
  const T* weights;                                  ///< as of TmaOperands
  Layout weights_layout;       ///< of floats; nhwc: [K][R][S][group_c], nchw: [K][group_c][R][S]
  FilterTiles<Shape> filters;  ///< of the tiles' columns
  int filter_taps = 0;         ///< of transposed weights
  WindowTaps taps = {};        ///< of transposed weights

  /// A step of a tile.
  struct Cursor {
    Chunk chunk;         ///< of the next step
    std::int64_t pixel;  ///< the tile's first one
    int group, filter;   ///< the tile's group, and its first filter, of all K
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {.chunk = chunk_at(pixels.windows, item.first),
            .pixel = item.m * Shape::M,
            .group = filters.group(item.n),
            .filter = filters.first(item.n)};
  }
  /// Copies a step.
  __device__ void load(const Cursor& cursor, char* a, char* b, std::uint64_t* full) const {
    const Chunk& chunk = cursor.chunk;
    pixels.load(chunk, cursor.pixel, cursor.group, reinterpret_cast<std::uint32_t*>(a));
    const Windows& windows = pixels.windows;
    const int lane = static_cast<int>(threadIdx.x) % 32, group_c = pixels.group_c;
    if constexpr (kTransposed) {
      const int group_k = filters.group_k, column = cursor.filter - cursor.group * group_k;
      const Index4 at{group_c, filter_taps, group_k};
      for (int c = 0; c < kHalfStep; ++c) {
        for (int k = 2 * lane; k < Shape::N; k += gemm::kHalfColumns) {
          const bool inside = 2 * chunk.c + c < group_c;
          auto* const piece =
              reinterpret_cast<std::uint32_t*>(b + k / gemm::kHalfColumns * gemm::kPieceBytes);
          piece[gemm::swizzled(c, lane)] =
              inside ? word_at(
                           weights,
                           at(cursor.group, 2 * chunk.c + c, taps.at(chunk.r, chunk.s), column + k),
                           group_k - column - k)
                     : 0;
        }
      }
    } else {
      const int c = kWordChannels<T> * (chunk.c + lane);
      const LayoutIndex4 at{kWordChannels<T> == 1 ? weights_layout : Layout::nhwc, group_c,
                            windows.R, windows.S};
      for (int j = 0; j < Shape::N; ++j) {
        const int filter = cursor.filter + j;
        reinterpret_cast<std::uint32_t*>(b)[gemm::swizzled(j, lane)] =
            filter < windows.K ? word_at(weights, at(filter, c, chunk.r, chunk.s), group_c - c) : 0;
      }
    }
    arrive_after_stores(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { conv2d::advance(pixels.windows, cursor.chunk); }
};

/// `wgmma` m64nNk16 in half precision. Rows of an operand are along k; of a transposed one, across.
template <int kN, class T, bool kTransposedB = false, bool kTransposedA = false>
__device__ inline void wgmma_half(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, kTransposedB, kTransposedA>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN, kTransposedB, kTransposedA>(d, a, b, true);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
