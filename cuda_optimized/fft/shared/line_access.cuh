/// @file line_access.cuh
/// @brief How the rungs of fft read and write points, and the table of their twiddle factors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/complex.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::fft {

/// Points [..][2] in memory. @tparam Float float or const float
template <class Float>
struct Points {
  Float* data;    ///< The first one.
  bool in_pairs;  ///< It is aligned to 8 bytes: a point is one access, not two.
  bool exchange;  ///< Real and imaginary parts are exchanged, see exchanged_if().

  /// Point i.
  template <class T>
  __device__ Complex<T> get(std::int64_t i) const {
    if (!in_pairs) return point_of<T>(data, i, exchange);
    const float2 pair = reinterpret_cast<const float2*>(data)[i];
    return exchanged_if(exchange, Complex<T>{number_from<T>(pair.x), number_from<T>(pair.y)});
  }
  /// Sets point i.
  template <class T>
  __device__ void set(std::int64_t i, Complex<T> z) const {
    if (!in_pairs) return set_point(data, i, exchange, z);
    const Complex<T> point = exchanged_if(exchange, z);
    reinterpret_cast<float2*>(data)[i] = make_float2(to_array(point.re), to_array(point.im));
  }
};

/// The points of an array.
template <class Float>
Points<Float> points_of(Float* data, bool exchange) {
  return {data, reinterpret_cast<std::uintptr_t>(data) % sizeof(float2) == 0, exchange};
}

/// The twiddle factors of a transform in passes of one radix R (the last pass may have a smaller
/// one), in the order of their use. A pass that combines lines of `before` points into lines of R *
/// before points multiplies point k of line r by the (r k)-th power of exp(-2 pi i / (R * before)),
/// which is stored at r * before + k. The passes use consecutive parts of the table, neighbouring
/// threads read neighbouring entries, and all parts together have L entries. The first entry, of
/// the pass without twiddle factors, is not read.
///
///     R = 2, L = 8    - | w2^0 | w4^0 w4^1 | w8^0 w8^1 w8^2 w8^3        wn = exp(-2 pi i / n)
///
/// table [L]. Any one-dimensional grid.
template <class T>
__global__ void fft_twiddles(int L, int radix, Complex<T>* table) {
  const int grid_threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < L; i += grid_threads) {
    std::int64_t before = 1;
    while (before * radix <= i) before *= radix;
    const std::int64_t together = before * radix < L ? before * radix : L;
    table[i] = root_of_unity<T>(i / before * (i % before), together);
  }
}

/// Fills table [L]. @param radix of the passes
template <class T>
void launch_twiddles(int L, int radix, Complex<T>* table) {
  constexpr int kThreads = 128, kMaxBlocks = 1024;
  launch(fft_twiddles<T>, {blocks_for(L, kThreads, kMaxBlocks), kThreads}, L, radix, table);
}

/// Of a table of L entries; the same size in both rings.
inline std::size_t twiddle_bytes(const FftProblem& fft) {
  return static_cast<std::size_t>(fft.L) * sizeof(Complex<float>);
}

}  // namespace convladder::BACKEND::cuda_optimized::fft
