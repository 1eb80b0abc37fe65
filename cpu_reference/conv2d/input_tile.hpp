/// @file input_tile.hpp
/// @brief conv2d with few filters per group, on the CPU: tiles of inputs are stored so that the
/// inputs of neighbouring outputs are adjacent for every tap. See im2col_gemm_blocked.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/parallel.hpp"

namespace convladder::cpu_reference::conv2d {

/// The integers from begin to end - 1; empty if begin >= end.
struct Range {
  int begin;  ///< The first integer.
  int end;    ///< One past the last.
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
  // Strides 1 and 2 are separate cases, because only they benefit from vector loads.
  if (stride == 1) {
    if constexpr (std::is_same_v<T, float>) {
      std::copy_n(row, count, to);  // the C library's copy uses the widest registers of the CPU
    } else {
      for (int j = 0; j < count; ++j) to[j] = to_float(row[j]);
    }
  } else if (stride == 2) {
    for (int j = 0; j < count; ++j) to[j] = to_float(row[2 * std::int64_t{j}]);
  } else {
    for (int j = 0; j < count; ++j) to[j] = to_float(row[std::int64_t{j} * stride]);
  }
}

/// A tile of outputs and the inputs that it needs. Each channel is stored as a plane with its
/// padding, divided into phases: rows h and columns w with equal h % stride.h and w % stride.w are
/// adjacent. A row of a phase has as many floats as a row of accumulators. For each tap, the inputs
/// of neighbouring outputs are therefore adjacent, also across rows, for every stride. (The last
/// accumulators of a row, whose window exceeds the row, belong to no output.) The padding after a
/// row is also the padding before the next one.
struct InputTile {
  static constexpr int kFloats = 8192;  ///< The most inputs: 32 KB, which fit into the L1 cache.
  static constexpr int kTaps = 512;     ///< The most taps of a filter.
  static constexpr int kFilters = 4;    ///< Filters of a group whose accumulators are computed
                                        ///< together.
  static constexpr int kVector = 16;    ///< Floats of the longest vector register.
  static constexpr int kGroups = 16;    ///< The most groups.

  int groups, rows, columns;       ///< The outputs of this many groups, and of this many pixels.
  int phases_down, phases_across;  ///< Extents of a plane.
  int height, pitch;               ///< Rows of a phase, and floats per row.
  int shared;                      ///< Columns of padding shared by adjacent rows.
  std::array<int, kTaps> offsets;  ///< Offsets of the taps (c, r, s) from the input of the first
                                   ///< output.

  /// Floats of a phase. Vectors may begin in its last row and end after it.
  int phase() const { return height * pitch + shared + kVector; }
  /// Floats of a channel.
  int plane() const { return phases_down * phases_across * phase(); }
  /// Accumulators of a filter, from the first output to the last.
  int sums(int of_rows) const { return (of_rows - 1) * pitch + columns; }
};

/// The tile for a problem whose groups have one input channel or few filters. Empty for other
/// problems, or if a tile would be small relative to its window.
inline std::optional<InputTile> input_tile(const Conv2dProblem& conv) {
  using Tile = InputTile;
  constexpr int kFewFilters = 32;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::int64_t high = std::int64_t{conv.R - 1} * conv.dilation.h + 1;  // extent of a window
  const std::int64_t wide = std::int64_t{conv.S - 1} * conv.dilation.w + 1;
  if (group_c > 1 && (conv.R * std::int64_t{conv.S} == 1 || group_k > kFewFilters)) return {};
  if (std::int64_t{group_c} * conv.R > Tile::kTaps / conv.S) return {};
  if (high > Tile::kFloats || wide > Tile::kFloats) return {};

  Tile tile = {};
  tile.phases_down = static_cast<int>(std::min<std::int64_t>(conv.stride.h, high));
  tile.phases_across = static_cast<int>(std::min<std::int64_t>(conv.stride.w, wide));
  const int more_rows = static_cast<int>((high - 1) / conv.stride.h);  // rows of a phase minus rows
                                                                       // of outputs
  const int more_columns = static_cast<int>((wide - 1) / conv.stride.w);
  const std::int64_t phases = std::int64_t{group_c} * tile.phases_down * tile.phases_across;
  const int most = static_cast<int>(Tile::kFloats / phases) - Tile::kVector;  // of a phase
  const int most_columns = most / (1 + more_rows) - more_columns;
  if (most_columns < std::min<int>(conv.Q, Tile::kVector)) return {};
  tile.columns = ceil_div(conv.Q, ceil_div(conv.Q, most_columns));
  tile.pitch = tile.columns + more_columns;
  if (tile.columns == conv.Q) {
    tile.shared = tile.pitch;
    for (int j = 0; j < tile.phases_across; ++j) {
      const Range inside = range_inside(conv.W, j - conv.pad.left, conv.stride.w, tile.pitch);
      tile.shared = std::min({tile.shared, inside.begin, tile.pitch - inside.end});
    }
    tile.shared = std::clamp(tile.shared, 0, std::min(more_columns, Tile::kVector));
    tile.pitch -= tile.shared;
  }
  const int most_rows = (most - tile.shared) / tile.pitch - more_rows;
  if (group_c > 1 && most_rows < std::min(conv.P, more_rows)) return {};
  tile.rows = ceil_div(conv.P, ceil_div(conv.P, most_rows));
  tile.height = tile.rows + more_rows;
  tile.groups = 1;
  if (tile.rows == conv.P && tile.columns == conv.Q) {  // several groups, but enough tiles for all
                                                        // cores
    const std::int64_t for_cores = std::int64_t{conv.N} * conv.groups / (4 * cores());
    const std::int64_t fitting = Tile::kFloats / (std::int64_t{group_c} * tile.plane());
    tile.groups =
        static_cast<int>(std::clamp<std::int64_t>(std::min(for_cores, fitting), 1, Tile::kGroups));
  }
  for (int tap = 0; tap < group_c * conv.R * conv.S; ++tap) {
    const int w = tap % conv.S * conv.dilation.w, h = tap / conv.S % conv.R * conv.dilation.h;
    const int phase = h % conv.stride.h * tile.phases_across + w % conv.stride.w;
    tile.offsets[static_cast<std::size_t>(tap)] =
        tap / conv.S / conv.R * tile.plane() + phase * tile.phase() +
        h / conv.stride.h * tile.pitch + w / conv.stride.w;
  }
  return tile;
}

// The following functions are compiled for each vector width. Rows are copied in whole vectors:
// elements beyond a row's end are overwritten by the next row or never read.

/// Copies a vector.
template <int kLanes>
[[gnu::always_inline]] inline void copy_vector(const float* from, float* to) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  std::memcpy(to, &vector, sizeof vector);
}

/// Writes `count` zeros, and up to kLanes - 1 more.
template <int kLanes>
[[gnu::always_inline]] inline void write_zeros(int count, float* to) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  if (count <= 0) return;
  // The first vector is a separate case: it is often the only one, and a compiler replaces the loop
  // by a function call.
  const Vector zeros = {};
  std::memcpy(to, &zeros, sizeof zeros);
  for (int j = kLanes; j < count; j += kLanes) std::memcpy(to + j, &zeros, sizeof zeros);
}

/// Copies `count` floats, and up to kLanes - 1 more.
template <int kLanes>
[[gnu::always_inline]] inline void copy_vectors(const float* from, int count, float* to) {
  if (count <= 0) return;
  copy_vector<kLanes>(from, to);  // separate, as above
  for (int j = kLanes; j < count; j += kLanes) copy_vector<kLanes>(from + j, to + j);
}

/// Copies every second float, `count` in all, and up to kLanes - 1 more.
/// @tparam kLane 0, 1, ... kLanes - 1
template <int kLanes, int... kLane>
[[gnu::always_inline]] inline void copy_every_second(const float* from, int count, float* to,
                                                     std::integer_sequence<int, kLane...>) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  for (int j = 0; j < count; j += kLanes) {
    Vector first, second;
    std::memcpy(&first, from + 2 * j, sizeof first);
    std::memcpy(&second, from + 2 * j + kLanes, sizeof second);
    const Vector even = __builtin_shufflevector(first, second, (2 * kLane)...);
    std::memcpy(to + j, &even, sizeof even);
  }
}

/// Copies `rows` rows in whole vectors: every element, or every second one. All rows but the last
/// are followed by zeros up to the next row.
/// @param step distance of the rows @param count elements per row
template <int kLanes, int kStride>
[[gnu::always_inline]] inline void copy_rows(const float* from, std::int64_t step, int rows,
                                             int count, int pitch, float* to) {
  for (int i = 0; i < rows; ++i, to += pitch) {
    if constexpr (kStride == 1) {
      copy_vectors<kLanes>(from + i * step, count, to);
    } else {
      copy_every_second<kLanes>(from + i * step, count, to,
                                std::make_integer_sequence<int, kLanes>());
    }
    if (i + 1 < rows) write_zeros<kLanes>(pitch - count, to + count);
  }
}

/// Copies `rows` rows of a phase from a plane x [H][W].
/// @param left elements of the array from x on
/// @param h,w position in x where the phase begins
/// @param down,across the rows and columns that are not padding
template <int kLanes, class T>
[[gnu::always_inline]] inline void copy_phase(const Conv2dProblem& conv, const InputTile& tile,
                                              const T* x, std::int64_t left, int h, int w,
                                              Range down, Range across, int rows, float* to) {
  const int count = across.end - across.begin, inside = down.end - down.begin;
  if (inside <= 0 || count <= 0) return write_zeros<kLanes>(rows * tile.pitch + tile.shared, to);
  const int stride = conv.stride.w;
  const std::int64_t step = std::int64_t{conv.stride.h} * conv.W;
  const std::int64_t first = (h + std::int64_t{down.begin} * conv.stride.h) * conv.W + w +
                             std::int64_t{across.begin} * stride;
  const std::int64_t last = first + (inside - 1) * step;
  const int before = down.begin * tile.pitch + across.begin;
  write_zeros<kLanes>(before, to);
  to += before;
  float* const end = to + (inside - 1) * tile.pitch + count;
  bool done = false;
  if constexpr (std::is_same_v<T, float>) {
    // A vector may read beyond a row, but not beyond the array.
    done = stride <= 2 && left - last >= std::int64_t{stride} * (count + kLanes);
    if (done && stride == 1)
      copy_rows<kLanes, 1>(x + first, step, inside, count, tile.pitch, to);
    else if (done)
      copy_rows<kLanes, 2>(x + first, step, inside, count, tile.pitch, to);
  }
  for (int i = 0; i < inside && !done; ++i, to += tile.pitch) {
    copy_strided(x + first + i * step, stride, count, to);
    if (i + 1 < inside) write_zeros<kLanes>(tile.pitch - count, to + count);
  }
  write_zeros<kLanes>((rows - down.end + 1) * tile.pitch - across.end + tile.shared, end);
}

/// Copies the inputs of `rows` rows of outputs from `planes` channels of x.
/// @param x the first channel @param left elements of the array from x on
/// @param p,q the tile's first output
template <int kLanes, class T>
[[gnu::always_inline]] inline void copy_inputs(const Conv2dProblem& conv, const InputTile& tile,
                                               const T* x, std::int64_t left, int planes, int p,
                                               int q, int rows, float* to) {
  const std::int64_t size = std::int64_t{conv.H} * conv.W;
  for (int i = 0; i < tile.phases_down; ++i) {
    const int h = p * conv.stride.h - conv.pad.top + i;
    const int phase_rows = rows + ((conv.R - 1) * conv.dilation.h - i) / conv.stride.h;
    const Range down = range_inside(conv.H, h, conv.stride.h, phase_rows);
    for (int j = 0; j < tile.phases_across; ++j, to += tile.phase()) {
      const int w = q * conv.stride.w - conv.pad.left + j;
      const Range across = range_inside(conv.W, w, conv.stride.w, tile.pitch);
      for (int c = 0; c < planes; ++c) {
        copy_phase<kLanes>(conv, tile, x + c * size, left - c * size, h, w, down, across,
                           phase_rows, to + c * tile.plane());
      }
    }
  }
}

/// Computes kVectors * kLanes neighbouring accumulators of kFilters filters.
/// @param inputs of the first accumulator @param weights [kFilters][taps] @param bias [kFilters] or
/// null
/// @param sums [kFilters][step]
template <int kLanes, int kFilters, int kVectors>
[[gnu::always_inline]] inline void add_taps(const InputTile& tile, const float* inputs,
                                            const float* weights, int taps, const float* bias,
                                            Activation activation, float* sums, int step) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  Vector sum[kFilters][kVectors] = {};
  for (int tap = 0; tap < taps; ++tap) {
    const float* from = inputs + tile.offsets[static_cast<std::size_t>(tap)];
    Vector input[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&input[v], from + v * kLanes, sizeof input[v]);
    for (int k = 0; k < kFilters; ++k) {
      for (int v = 0; v < kVectors; ++v) sum[k][v] += weights[k * taps + tap] * input[v];
    }
  }
  for (int k = 0; k < kFilters; ++k) {
    for (int v = 0; v < kVectors; ++v) {
      if (bias != nullptr) sum[k][v] += bias[k];
      if (activation == Activation::relu) sum[k][v] = sum[k][v] < 0.0f ? Vector{} : sum[k][v];
      std::memcpy(sums + k * step + v * kLanes, &sum[k][v], sizeof sum[k][v]);
    }
  }
}

/// The same for `count` accumulators, and up to kLanes - 1 more. One filter uses four vectors at a
/// time, so that additions are independent; several filters use all available registers.
template <int kLanes, int kFilters>
[[gnu::always_inline]] inline void sum_up(const InputTile& tile, const float* inputs,
                                          const float* weights, int taps, const float* bias,
                                          Activation activation, int count, float* sums, int step) {
  constexpr int kVectors = kFilters == 1 || kLanes == 16 ? 4 : 2;
  int j = 0;
  for (; j + (kVectors - 1) * kLanes < count; j += kVectors * kLanes) {
    add_taps<kLanes, kFilters, kVectors>(tile, inputs + j, weights, taps, bias, activation,
                                         sums + j, step);
  }
  for (; j < count; j += kLanes)
    add_taps<kLanes, kFilters, 1>(tile, inputs + j, weights, taps, bias, activation, sums + j,
                                  step);
}

/// The operands and results of a tile: x, weights as floats, bias or null, y.
template <class T>
struct TileArrays {
  const T* x;            ///< [N][C][H][W]
  const float* weights;  ///< [K][C/groups][R][S]
  const float* bias;     ///< [K], or null
  T* y;                  ///< [N][K][P][Q]
};

/// The position of a tile's outputs.
struct TilePlace {
  int n = 0;         ///< the image
  int group = 0;     ///< the group of filters
  int p = 0, q = 0;  ///< the first row and column
};

/// Stores the accumulators of a filter.
/// @param y the first output @param rows,columns extents of the outputs
/// @param left outputs of this tile from y on if they are contiguous, else 0
template <int kLanes, class T>
[[gnu::always_inline]] inline void store_sums(const InputTile& tile, const float* sums, int rows,
                                              int columns, int Q, std::int64_t left, T* y) {
  for (int p = 0; p < rows; ++p, sums += tile.pitch, y += Q, left -= Q) {
    if constexpr (std::is_same_v<T, float>) {
      const bool whole_vectors = left >= columns + kLanes;  // the next row overwrites the rest
      whole_vectors ? copy_vectors<kLanes>(sums, columns, y) : copy_strided(sums, 1, columns, y);
    } else {
      for (int q = 0; q < columns; ++q) y[q] = rounded_to<T>(sums[q]);
    }
  }
}

/// Computes a tile's outputs.
template <int kLanes, class T>
[[gnu::always_inline]] inline void compute_tile(const Conv2dProblem& conv, const InputTile& tile,
                                                const TileArrays<T>& arrays,
                                                const TilePlace& place) {
  constexpr int kFilters = InputTile::kFilters;
  alignas(64) float inputs[InputTile::kFloats], sums[kFilters * InputTile::kFloats];
  const Index4 x_at{conv.C, conv.H, conv.W}, y_at{conv.K, conv.P, conv.Q};
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int taps = group_c * conv.R * conv.S;
  const int groups = std::min(tile.groups, conv.groups - place.group);
  const int rows = std::min(tile.rows, conv.P - place.p);
  const int columns = std::min(tile.columns, conv.Q - place.q);
  const std::int64_t from = x_at(place.n, place.group * group_c, 0, 0);
  copy_inputs<kLanes>(conv, tile, arrays.x + from, x_at(conv.N, 0, 0, 0) - from, groups * group_c,
                      place.p, place.q, rows, inputs);
  const int step = tile.sums(rows) + InputTile::kVector;
  const std::int64_t outputs = columns == conv.Q ? std::int64_t{rows} * columns : 0;
  // With several filters, outputs are contiguous only for whole planes.
  std::int64_t left = rows == conv.P ? groups * group_k * outputs : outputs;
  for (int g = 0; g < groups; ++g) {
    const float* const group_inputs = inputs + g * group_c * tile.plane();
    for (int i = 0; i < group_k;) {
      const int k = (place.group + g) * group_k + i;
      const float* const weights = arrays.weights + std::int64_t{k} * taps;
      const float* const bias = arrays.bias != nullptr ? arrays.bias + k : nullptr;
      const int filters = group_k - i >= kFilters ? kFilters : 1;
      if (filters == kFilters) {
        sum_up<kLanes, kFilters>(tile, group_inputs, weights, taps, bias, conv.activation,
                                 tile.sums(rows), sums, step);
      } else {
        sum_up<kLanes, 1>(tile, group_inputs, weights, taps, bias, conv.activation, tile.sums(rows),
                          sums, step);
      }
      for (int f = 0; f < filters; ++f) {
        store_sums<kLanes>(tile, sums + f * step, rows, columns, conv.Q, left,
                           arrays.y + y_at(place.n, k + f, place.p, place.q));
        if (rows == conv.P) left -= outputs;
      }
      i += filters;
    }
  }
}

/// compute_tile() in vectors of four floats, which every x86-64 and AArch64 processor has.
template <class T>
void compute_tile_with_four_lanes(const Conv2dProblem& conv, const InputTile& tile,
                                  const TileArrays<T>& arrays, const TilePlace& place) {
  compute_tile<4>(conv, tile, arrays, place);
}

#ifdef __x86_64__
/// compute_tile() in vectors of eight floats (AVX2 and FMA).
template <class T>
[[gnu::target("avx2,fma")]] void compute_tile_with_eight_lanes(const Conv2dProblem& conv,
                                                               const InputTile& tile,
                                                               const TileArrays<T>& arrays,
                                                               const TilePlace& place) {
  compute_tile<8>(conv, tile, arrays, place);
}

/// compute_tile() in vectors of sixteen floats (AVX-512).
template <class T>
[[gnu::target("avx512f")]] void compute_tile_with_sixteen_lanes(const Conv2dProblem& conv,
                                                                const InputTile& tile,
                                                                const TileArrays<T>& arrays,
                                                                const TilePlace& place) {
  compute_tile<16>(conv, tile, arrays, place);
}
#endif

/// compute_tile() in the widest vectors that the CPU supports.
template <class T>
void compute_tile_on_this_cpu(const Conv2dProblem& conv, const InputTile& tile,
                              const TileArrays<T>& arrays, const TilePlace& place) {
#ifdef __x86_64__
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx512) return compute_tile_with_sixteen_lanes(conv, tile, arrays, place);
  if (has_avx2) return compute_tile_with_eight_lanes(conv, tile, arrays, place);
#endif
  compute_tile_with_four_lanes(conv, tile, arrays, place);
}

}  // namespace convladder::cpu_reference::conv2d
