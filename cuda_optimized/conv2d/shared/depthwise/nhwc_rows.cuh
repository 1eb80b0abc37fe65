/// @file nhwc_rows.cuh
/// @brief What the depthwise rungs in NHWC have in common: tiles of pixels, rows of vectors of four
/// channels, and filters transposed so that adjacent channels are contiguous.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d::channel_rows {

inline constexpr int kColumns = 7;  ///< Of a row, that a thread computes: rows have 7, 14, 28 ...
inline constexpr int kAcross = 2;   ///< Threads along a row of pixels.
inline constexpr int kDown = 7;     ///< The same down.
inline constexpr int kPlaces = kAcross * kDown;  ///< Threads of a block with the same channels.
inline constexpr int kMostQuads = 32;            ///< Of four channels, in a block.
inline constexpr int kThreads = kMostQuads * kPlaces;  ///< Of a block, at most.

/// How tiles of pixels and channels cover an array [N][rows][columns][C].
struct Plan {
  int quads;                                      ///< Vectors of four channels in a block.
  std::int64_t tiles;                             ///< Of the array; kernels take up to kMostTiles.
  FastDivision by_channels, by_columns, by_rows;  ///< Tiles along each.

  /// @param rows_each of pixels, that a thread computes
  Plan(int N, int C, int rows, int columns, int rows_each) {
    const int all = C / 4, channel_tiles = ceil_div(all, kMostQuads);
    quads = ceil_div(all, channel_tiles);  // as even as it gets
    const int column_tiles = ceil_div(columns, kAcross * kColumns);
    const int row_tiles = ceil_div(rows, kDown * rows_each);
    by_channels = FastDivision(channel_tiles);
    by_columns = FastDivision(column_tiles);
    by_rows = FastDivision(row_tiles);
    tiles = N * row_tiles * column_tiles * channel_tiles;
  }
  /// Floats from a tap of the turned filters to the next: four more than there are, so that one
  /// channel's taps lie in different banks.
  HOST_DEVICE int pitch() const { return 4 * quads + 4; }
  /// Of a launch.
  LaunchConfig config(int taps) const {
    constexpr std::int64_t kMaxBlocks = 1 << 20;  // more tiles than these: blocks stride
    return {dim3(blocks_for(tiles, 1, kMaxBlocks)), dim3(static_cast<unsigned>(quads), kPlaces),
            static_cast<std::size_t>(taps * pitch()) * sizeof(float)};
  }
};

/// What a thread computes.
struct Tile {
  int n, row, column;  ///< The first pixel.
  int c0, c;           ///< The block's first channel, and the thread's.

  /// Of the tile with that number, for a thread of `rows_each` rows.
  __device__ Tile(const Plan& plan, int number, int rows_each) {
    const int pixels = plan.by_channels.quotient(number), rows = plan.by_columns.quotient(pixels);
    const int place = static_cast<int>(threadIdx.y);
    n = plan.by_rows.quotient(rows);
    row = (plan.by_rows.remainder(rows, n) * kDown + place / kAcross) * rows_each;
    column = (plan.by_columns.remainder(pixels, rows) * kAcross + place % kAcross) * kColumns;
    c0 = plan.by_channels.remainder(number, pixels) * plan.quads * 4;
    c = c0 + static_cast<int>(threadIdx.x) * 4;
  }
};

/// sum += a * b, channel by channel.
__device__ inline void add_product(float4& sum, const float4& a, const float4& b) {
  sum.x += a.x * b.x;
  sum.y += a.y * b.y;
  sum.z += a.z * b.z;
  sum.w += a.w * b.w;
}

/// Four adjacent elements in one load; the first one's place is a multiple of 4.
template <class T>
__device__ float4 vector_at(const T* from) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return *reinterpret_cast<const float4*>(from);
  } else {
    const uint2 two = *reinterpret_cast<const uint2*>(from);
    const auto lower = [](unsigned bits) { return to_float(T{static_cast<std::uint16_t>(bits)}); };
    return {lower(two.x), lower(two.x >> 16), lower(two.y), lower(two.y >> 16)};
  }
}

/// The other way: rounds four accumulators, and stores them at once.
template <class T>
__device__ void store_vector(T* to, const float4& sums) {
  if constexpr (sizeof(T) == sizeof(float)) {
    *reinterpret_cast<float4*>(to) = sums;
  } else {
    const auto pair = [](float low, float high) {
      return rounded_to<T>(low).bits | unsigned{rounded_to<T>(high).bits} << 16;
    };
    *reinterpret_cast<uint2*>(to) = {pair(sums.x, sums.y), pair(sums.z, sums.w)};
  }
}

/// Four numbers from anywhere; zeros of no array.
__device__ inline float4 four_of(const float* from, int at) {
  if (from == nullptr) return {};
  return {from[at], from[at + 1], from[at + 2], from[at + 3]};
}

/// Vectors of neighbouring pixels of a row [W][C]; zeros beyond its ends. Places in a row are
/// counted in 32 bits: an address is then one multiplication and one addition, for each of many
/// vectors.
/// @param line the row's number. @param w the first pixel's column, which may be beyond
template <class T, int kCount>
__device__ void load(const T* x, std::int64_t line, int w, int W, int C, int c,
                     float4 (&values)[kCount]) {
  const T* const row = x + line * W * C;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = {};
    if (static_cast<unsigned>(w + i) < static_cast<unsigned>(W))
      values[i] = vector_at(row + ((w + i) * C + c));
  }
}

/// Stores sums to neighbouring pixels of a row, as far as there are any.
/// @param line the row's number. @param q the first pixel's column
template <class T>
__device__ void store(T* y, std::int64_t line, int q, int Q, int C, int c, Activation activation,
                      const float4 (&sums)[kColumns]) {
  T* const row = y + line * Q * C;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    if (q + i >= Q) continue;
    float4 four = sums[i];
    if (activation != Activation::none) {  // the same for all: one branch, no choice a number
      four = {activated(activation, four.x), activated(activation, four.y),
              activated(activation, four.z), activated(activation, four.w)};
    }
    store_vector(row + ((q + i) * C + c), four);
  }
}

/// weights [C][kTaps], of the block's channels, to shared memory: filters [kTaps][plan.pitch()]. A
/// warp reads 32 floats in a row, and writes them to 32 banks.
template <int kTaps, class T>
__device__ void turn_filters(const T* weights, int c0, int C, const Plan& plan, float* filters) {
  const int count = min(4 * plan.quads, C - c0) * kTaps;
  const T* const from = weights + std::int64_t{c0} * kTaps;
  for (int i = static_cast<int>(threadIdx.y) * plan.quads + static_cast<int>(threadIdx.x);
       i < count; i += plan.quads * kPlaces)
    filters[i % kTaps * plan.pitch() + i / kTaps] = to_float(from[i]);
}

/// A tap of the filters of the thread's channels.
__device__ inline float4 filter_of(const float* filters, int tap, const Plan& plan) {
  return *reinterpret_cast<const float4*>(filters + tap * plan.pitch() + 4 * threadIdx.x);
}

/// Why a rung does not support a problem.
inline Declined not_depthwise(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
  return {};
}

/// Whether channels come in fours with a filter each, square and without dilation, in arrays of
/// fewer than 2^31 elements.
inline bool has_quads(const Conv2dProblem& conv) {
  const std::int64_t image = std::max(std::int64_t{conv.H} * conv.W, std::int64_t{conv.P} * conv.Q);
  return conv.C % 4 == 0 && conv.K == conv.C && conv.R == conv.S && conv.dilation.h == 1 &&
         conv.dilation.w == 1 && conv.N * image <= INT32_MAX / conv.C;
}

/// Whether vectors may be loaded from, or stored to, both.
template <class T>
bool are_aligned(const T* a, const T* b) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) %
             (4 * sizeof(T)) ==
         0;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d::channel_rows
