/// @file depthwise_tile.hpp
/// @brief conv2d with one input channel a filter, on the CPU: a tile of outputs whose sums stay in
/// vector registers. im2col_gemm_blocked.cpp explains it.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"

namespace convladder::cpu_reference::conv2d {

/// The numbers from begin to end - 1; none if begin >= end.
struct Range {
  int begin;  ///< The first.
  int end;    ///< One behind the last.
};
/// The j < count for which 0 <= w + j * stride < W.
inline Range range_inside(int W, int w, int stride, int count) {
  if (w >= 0 && w + std::int64_t{count - 1} * stride < W) return {0, count};  // without a division
  const int begin = w >= 0 ? 0 : ceil_div(-w, stride);
  const int end = w >= W ? 0 : (W - 1 - w) / stride + 1;
  return {begin, std::min(end, count)};
}

/// Copies row[0], row[stride] ... as floats, `count` in all.
template <class T>
void copy_strided(const T* row, int stride, int count, float* to) {
  // Steps of 1 and 2 are apart, because only they are worth vector loads.
  if (stride == 1) {
    if constexpr (std::is_same_v<T, float>) {
      std::copy_n(row, count, to);  // the C library's copy, with the CPU's widest registers
    } else {
      for (int j = 0; j < count; ++j) to[j] = to_float(row[j]);
    }
  } else if (stride == 2) {
    for (int j = 0; j < count; ++j) to[j] = to_float(row[2 * std::int64_t{j}]);
  } else {
    for (int j = 0; j < count; ++j) to[j] = to_float(row[std::int64_t{j} * stride]);
  }
}

/// A tile of outputs of one plane, and the inputs that it needs, in rows with their padding. A row
/// of inputs is stored as `phases` runs: the columns w with the same w % stride.w lie next to one
/// another. So a tap of 16 neighbouring outputs is 16 neighbouring floats, whatever the stride.
struct DepthwiseTile {
  static constexpr int kFloats = 8192;  ///< The most inputs: 32 KB, in the L1 cache.
  static constexpr int kTaps = 128;     ///< The most taps.
  static constexpr int kColumns = 112;  ///< The most outputs of a row.
  static constexpr int kTogether = 16;  ///< Outputs that are computed at once.

  int columns, rows;               ///< Outputs; columns are a multiple of kTogether.
  int phases, phase;               ///< Runs of a row of inputs, and the floats of one.
  std::array<int, kTaps> offsets;  ///< Of the taps (r, s), from the inputs of the first output.

  int row() const { return phases * phase; }  ///< Floats of a row of inputs.
};

/// The tile for a problem with one input channel a filter. Nothing if a filter has other inputs,
/// or so many taps, or so far apart, that a tile does not hold a row of outputs.
inline std::optional<DepthwiseTile> depthwise_tile(const Conv2dProblem& conv) {
  using Tile = DepthwiseTile;
  const std::int64_t high = std::int64_t{conv.R - 1} * conv.dilation.h + 1;  // a window's extent
  const std::int64_t wide = std::int64_t{conv.S - 1} * conv.dilation.w + 1;
  if (conv.C != conv.groups || std::int64_t{conv.R} * conv.S > Tile::kTaps) return {};
  if (high > Tile::kFloats || wide > Tile::kFloats) return {};

  Tile tile = {};
  const int across = ceil_div(conv.Q, Tile::kColumns);
  tile.columns = ceil_div(ceil_div(conv.Q, across), Tile::kTogether) * Tile::kTogether;
  tile.phases = static_cast<int>(std::min<std::int64_t>(conv.stride.w, wide));
  tile.phase = tile.columns + static_cast<int>((wide - 1) / conv.stride.w);
  const std::int64_t most_rows = Tile::kFloats / tile.row();  // of inputs
  if (high > most_rows) return {};
  tile.rows =
      static_cast<int>(std::min<std::int64_t>(conv.P, (most_rows - high) / conv.stride.h + 1));
  for (int r = 0; r < conv.R; ++r) {
    for (int s = 0; s < conv.S; ++s) {
      const int w = s * conv.dilation.w;
      tile.offsets[static_cast<std::size_t>(r * conv.S + s)] =
          r * conv.dilation.h * tile.row() + w % conv.stride.w * tile.phase + w / conv.stride.w;
    }
  }
  return tile;
}

/// Copies the inputs of `rows` rows of outputs from x [H][W].
/// @param p,q the tile's first output
template <class T>
void copy_inputs(const Conv2dProblem& conv, const DepthwiseTile& tile, const T* x, int p, int q,
                 int rows, float* to) {
  const int h = p * conv.stride.h - conv.pad.top;
  int w = q * conv.stride.w - conv.pad.left;  // the first input column of a phase
  const int count = (rows - 1) * conv.stride.h + (conv.R - 1) * conv.dilation.h + 1;
  std::fill_n(to, count * tile.row(), 0.0f);
  for (int phase = 0; phase < tile.phases; ++phase, ++w, to += tile.phase) {
    const auto [begin, end] = range_inside(conv.W, w, conv.stride.w, tile.phase);
    if (begin >= end) continue;
    const T* from = x + (w + std::int64_t{begin} * conv.stride.w);
    for (int i = std::max(h, 0); i < std::min(h + count, conv.H); ++i) {
      copy_strided(from + std::int64_t{i} * conv.W, conv.stride.w, end - begin,
                   to + (i - h) * tile.row() + begin);
    }
  }
}

/// As weighted_sums(), for kRows rows.
template <int kLanes, int kRows>
[[gnu::always_inline]] inline void add_taps_of_rows(const DepthwiseTile& tile, const float* inputs,
                                                    std::int64_t step, const float* weights,
                                                    int taps, float* sums) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  constexpr int kVectors = DepthwiseTile::kTogether / kLanes;
  for (int q = 0; q < tile.columns; q += DepthwiseTile::kTogether) {
    Vector sum[kRows][kVectors] = {};
    for (int tap = 0; tap < taps; ++tap) {
      const float* from = inputs + q + tile.offsets[static_cast<std::size_t>(tap)];
      for (int p = 0; p < kRows; ++p) {
        for (int v = 0; v < kVectors; ++v) {
          Vector neighbours;
          std::memcpy(&neighbours, from + p * step + v * kLanes, sizeof neighbours);
          sum[p][v] += weights[tap] * neighbours;
        }
      }
    }
    for (int p = 0; p < kRows; ++p) {
      for (int v = 0; v < kVectors; ++v)
        std::memcpy(sums + p * tile.columns + q + v * kLanes, &sum[p][v], sizeof sum[p][v]);
    }
  }
}

/// As weighted_sums(). Four registers of sums at a time, so that additions need not wait for one
/// another: of four rows, of two or of one.
/// @tparam kLanes floats of a vector register
template <int kLanes>
[[gnu::always_inline]] inline void add_taps(const DepthwiseTile& tile, const float* inputs,
                                            std::int64_t step, const float* weights, int taps,
                                            int rows, float* sums) {
  constexpr int kRows = 4 * kLanes / DepthwiseTile::kTogether;
  int p = 0;
  for (; p + kRows <= rows; p += kRows) {
    add_taps_of_rows<kLanes, kRows>(tile, inputs + p * step, step, weights, taps,
                                    sums + p * tile.columns);
  }
  for (; p < rows; ++p) {
    add_taps_of_rows<kLanes, 1>(tile, inputs + p * step, step, weights, taps,
                                sums + p * tile.columns);
  }
}

/// add_taps() in vectors of four floats, which every x86-64 and AArch64 processor has.
inline void add_taps_with_four_lanes(const DepthwiseTile& tile, const float* inputs,
                                     std::int64_t step, const float* weights, int taps, int rows,
                                     float* sums) {
  add_taps<4>(tile, inputs, step, weights, taps, rows, sums);
}

#ifdef __x86_64__
/// The same in vectors of eight floats (AVX2 and FMA).
[[gnu::target("fma")]] inline void add_taps_with_eight_lanes(const DepthwiseTile& tile,
                                                             const float* inputs, std::int64_t step,
                                                             const float* weights, int taps,
                                                             int rows, float* sums) {
  add_taps<8>(tile, inputs, step, weights, taps, rows, sums);
}

/// The same in vectors of sixteen floats (AVX-512).
[[gnu::target("avx512f")]] inline void add_taps_with_sixteen_lanes(const DepthwiseTile& tile,
                                                                   const float* inputs,
                                                                   std::int64_t step,
                                                                   const float* weights, int taps,
                                                                   int rows, float* sums) {
  add_taps<16>(tile, inputs, step, weights, taps, rows, sums);
}
#endif

/// Computes `rows` rows of a tile's outputs, sums [rows][columns], from its inputs.
/// @param step floats from the first input of a row of outputs to that of the next
/// @param weights of the taps
inline void weighted_sums(const DepthwiseTile& tile, const float* inputs, std::int64_t step,
                          const float* weights, int taps, int rows, float* sums) {
#ifdef __x86_64__
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool has_fma = __builtin_cpu_supports("fma") != 0;
  if (has_avx512) return add_taps_with_sixteen_lanes(tile, inputs, step, weights, taps, rows, sums);
  if (has_fma) return add_taps_with_eight_lanes(tile, inputs, step, weights, taps, rows, sums);
#endif
  add_taps_with_four_lanes(tile, inputs, step, weights, taps, rows, sums);
}

}  // namespace convladder::cpu_reference::conv2d
