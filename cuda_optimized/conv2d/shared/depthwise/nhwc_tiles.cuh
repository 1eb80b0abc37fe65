/// @file nhwc_tiles.cuh
/// @brief What the depthwise rungs in NHWC have in common that copy a tile of pixels to shared
/// memory: tiles of 64 channels, patches of them, and filters in their order of memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d::channel_tiles {

inline constexpr int kChannels = 64;  ///< Of a tile: two neighbours a lane.
inline constexpr int kColumns = 7;    ///< Of a patch: rows have 7, 14, 28 ...
inline constexpr int kAcross = 2;     ///< Patches along a row of a tile.

/// A tile for filters of kTaps x kTaps: patches of outputs, one a warp, and the pixels that they
/// read.
template <int kTaps, int kStride>
struct Shape {
  static constexpr int kRows = kStride == 2 ? 2 : kTaps == 3 ? 7 : 4;  ///< Of a patch.
  static constexpr int kDown = 2;                                      ///< Patches, down.
  static constexpr int kThreads = 32 * kAcross * kDown;                ///< Of a block.
  static constexpr int kInColumns = (kColumns - 1) * kStride + kTaps;  ///< That a patch reads.
  static constexpr int kInRows = (kRows - 1) * kStride + kTaps;        ///< Likewise.
  /// Of pixels in shared memory, along a row.
  static constexpr int kTileColumns = (kAcross * kColumns - 1) * kStride + kTaps;
  /// Rows of them.
  static constexpr int kTileRows = (kDown * kRows - 1) * kStride + kTaps;
  /// Elements of them.
  static constexpr int kTile = kTileRows * kTileColumns * kChannels;
};

/// Two adjacent elements, as one load reads them.
template <class T>
using Pair = std::conditional_t<sizeof(T) == sizeof(float), float2, std::uint32_t>;

/// Their values.
template <class T>
__device__ float2 values_of(const Pair<T>& pair) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return pair;
  } else {
    return {to_float(T{static_cast<std::uint16_t>(pair)}),
            to_float(T{static_cast<std::uint16_t>(pair >> 16)})};
  }
}

/// The pair that begins at an even place.
template <class T>
__device__ float2 pair_at(const T* from) {
  return values_of<T>(*reinterpret_cast<const Pair<T>*>(from));
}

/// Rounds two elements, and stores them at once.
template <class T>
__device__ void store_pair(T* to, const float2& values) {
  if constexpr (sizeof(T) == sizeof(float)) {
    *reinterpret_cast<float2*>(to) = values;
  } else {
    *reinterpret_cast<std::uint32_t*>(to) =
        rounded_to<T>(values.x).bits | std::uint32_t{rounded_to<T>(values.y).bits} << 16;
  }
}

/// sum += a * b, channel by channel.
__device__ inline void add_product(float2& sum, const float2& a, const float2& b) {
  sum.x += a.x * b.x;
  sum.y += a.y * b.y;
}

/// How tiles cover an array [N][rows][columns][C] of outputs.
struct Plan {
  std::int64_t tiles;                             ///< Of the array; kernels take fewer than 2^31.
  FastDivision by_channels, by_columns, by_rows;  ///< Tiles along each.

  /// @param tile_rows of outputs
  Plan(int N, int C, int rows, int columns, int tile_rows) {
    const int channel_tiles = ceil_div(C, kChannels);
    const int column_tiles = ceil_div(columns, kAcross * kColumns);
    const int row_tiles = ceil_div(rows, tile_rows);
    by_channels = FastDivision(channel_tiles);
    by_columns = FastDivision(column_tiles);
    by_rows = FastDivision(row_tiles);
    tiles = std::int64_t{N} * row_tiles * column_tiles * channel_tiles;
  }
};

/// Where a tile of outputs begins.
struct Tile {
  int n, row, column;  ///< its first pixel
  int c;               ///< and channel

  /// Of the tile with that number, of `rows` rows.
  __device__ Tile(const Plan& plan, int number, int rows) {
    const int pixels = plan.by_channels.quotient(number), lines = plan.by_columns.quotient(pixels);
    n = plan.by_rows.quotient(lines);
    row = plan.by_rows.remainder(lines, n) * rows;
    column = plan.by_columns.remainder(pixels, lines) * kAcross * kColumns;
    c = plan.by_channels.remainder(number, pixels) * kChannels;
  }
};

/// A warp's place in a tile, and a lane's: the patch's first row and column of outputs, and the
/// first of two channels.
template <class Shape>
struct Place {
  int row = static_cast<int>(threadIdx.x) / 32 / kAcross * Shape::kRows;  ///< Of outputs.
  int column = static_cast<int>(threadIdx.x) / 32 % kAcross * kColumns;   ///< Likewise.
  int c = static_cast<int>(threadIdx.x) % 32 * 2;                         ///< The first channel.
};

/// The block begins to copy a tile of an image x [H][W][C], from pixel (h, w) and channel c on, 16
/// bytes a thread at a time; what lies outside becomes zeros. x and its pixels are aligned to 16
/// bytes. A thread has one piece of some columns, and goes down the rows.
template <class Shape, class T>
__device__ void begin_copies(const T* x, int H, int W, int C, int h, int w, int c, T* tile) {
  constexpr int kEach = 16 / static_cast<int>(sizeof(T)), kPieces = kChannels / kEach;
  constexpr int kTogether = Shape::kThreads / kPieces;  // columns
  const int piece = static_cast<int>(threadIdx.x) % kPieces * kEach;
#pragma unroll
  for (int first = 0; first < Shape::kTileColumns; first += kTogether) {
    const int column = first + static_cast<int>(threadIdx.x) / kPieces;
    if (column >= Shape::kTileColumns) break;
    const bool is_inside =
        static_cast<unsigned>(w + column) < static_cast<unsigned>(W) && c + piece < C;
    const int begin = is_inside ? max(-h, 0) : Shape::kTileRows;  // rows that there are
    const int end = min(H - h, Shape::kTileRows);
    const T* from = x + (std::int64_t{h * W + w + column} * C + c + piece);
    T* to = tile + column * kChannels + piece;
#pragma unroll
    for (int row = 0; row < Shape::kTileRows; ++row) {
      ptx::cp_async<16>(to, from, row >= begin && row < end ? 16 : 0);
      from += W * C;
      to += Shape::kTileColumns * kChannels;
    }
  }
}

/// The block copies filters [C][kTaps] of a tile's channels, as they lie: a lane's two are 2 *
/// kTaps numbers in a row, an odd number of pairs, so that all lanes read from different banks.
template <int kTaps, int kThreads, class T>
__device__ void copy_filters(const T* weights, int c, int C, T* filters) {
  const T* const from = weights + std::int64_t{c} * kTaps;
  const int count = min(kChannels, C - c) * kTaps;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) filters[i] = from[i];
}

/// The taps of the filters of channels c and c + 1 of the tile.
template <int kTaps, class T>
__device__ void load_filters(const T* filters, int c, float2 (&weights)[kTaps]) {
  float values[2 * kTaps];
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
    const float2 two = pair_at(filters + c * kTaps + 2 * i);
    values[2 * i] = two.x;
    values[2 * i + 1] = two.y;
  }
#pragma unroll
  for (int i = 0; i < kTaps; ++i) weights[i] = {values[i], values[kTaps + i]};
}

/// Pairs of channels c and c + 1 of a row of a tile, from pixel (row, column) on.
template <class Shape, class T, int kCount>
__device__ void load_row(const T* tile, int row, int column, int c, float2 (&values)[kCount]) {
  const T* const from = tile + (row * Shape::kTileColumns + column) * kChannels + c;
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = pair_at(from + i * kChannels);
}

/// Loads a patch of pairs of an image [H][W][C], from (h, w) and channel c on; zeros beyond it.
template <class T, int kRows>
__device__ void load_patch(const T* image, int H, int W, int C, int h, int w, int c,
                           Pair<T> (&pairs)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const T* const from = image + std::int64_t{(h + i) * W + w} * C + c;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      pairs[i][j] = {};
      if (h + i < H && w + j < W && c < C)
        pairs[i][j] = *reinterpret_cast<const Pair<T>*>(from + j * C);
    }
  }
}

/// Stores a patch's row of accumulators to neighbouring pixels, C numbers apart, of which there are
/// `left`.
template <class T>
__device__ void store_row(T* to, int left, int C, Activation activation, float2 (&sums)[kColumns]) {
  if (activation != Activation::none) {  // the same for all: one branch, no choice a number
#pragma unroll
    for (float2& two : sums) two = {activated(activation, two.x), activated(activation, two.y)};
  }
  if (left >= kColumns) {  // all of them, without seven questions
#pragma unroll
    for (int i = 0; i < kColumns; ++i) store_pair(to + i * C, sums[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      if (i < left) store_pair(to + i * C, sums[i]);
    }
  }
}

/// Why a rung does not support a problem.
inline Declined not_depthwise(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
  return {};
}

/// Whether pixels are aligned to 16 bytes and channels have a filter each, square and without
/// dilation, in arrays of fewer than 2^31 elements.
template <class T>
bool has_pieces(const Conv2dProblem& conv) {
  const std::int64_t image = std::max(std::int64_t{conv.H} * conv.W, std::int64_t{conv.P} * conv.Q);
  return conv.C % (16 / static_cast<int>(sizeof(T))) == 0 && conv.K == conv.C && conv.R == conv.S &&
         conv.dilation.h == 1 && conv.dilation.w == 1 && conv.N * image <= INT32_MAX / conv.C;
}

/// Whether tiles can be copied from one array in pieces of 16 bytes, and pairs stored to another.
template <class T>
bool are_aligned(const T* from, const T* to) {
  return reinterpret_cast<std::uintptr_t>(from) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % sizeof(Pair<T>) == 0;
}

/// Of a block: a tile, and filters of so many taps.
template <class Shape, class T>
constexpr std::size_t shared_bytes(int taps) {
  return (static_cast<std::size_t>(Shape::kTile) + static_cast<std::size_t>(kChannels * taps)) *
         sizeof(T);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d::channel_tiles
