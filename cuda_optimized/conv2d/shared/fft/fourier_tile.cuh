/// @file fourier_tile.cuh
/// @brief The discrete Fourier transform of a tile in shared memory, by a team of threads.
#pragma once

#include "core/complex.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A number of a tile, or of its spectrum.
using Point = Complex<float>;

/// A team's tile of T x T points. Each thread has eight points of a line, which lie T / 8 apart:
/// point i of the thread is number place + i T/8 of the line. Lines are rows first, and columns
/// after turn_lines(). All T / 8 threads of a line belong to the same warp.
/// @tparam T 16, 32 or 64
template <int T>
class FourierTile {
 public:
  static constexpr int kLine = T / 8;      ///< Threads of a line.
  static constexpr int kTeam = T * kLine;  ///< Threads of a tile.
  static constexpr int kPoints = T * T;    ///< Of a tile.
  const int line,                          ///< The thread's.
      place;                               ///< Of its first point in the line.

  /// @param thread of the team @param points [T][T] in shared memory, the team's own
  /// @param twiddles [T], of passes of radix 8: see fft_twiddles()
  __device__ FourierTile(int thread, Point* points, const Point* twiddles)
      : line(thread / kLine), place(thread % kLine), points_(points) {
#pragma unroll
    for (int power = 0; power < kPowers; ++power) {
#pragma unroll
      for (int b = 0; b < kButterflies; ++b)
        turns_[power][b] = twiddles[(8 << power) + ((place + b * kLine) & 7)];
    }
  }

  /// Which number of the line point i of this thread is.
  __device__ int number(int i) const { return place + i * kLine; }

  /// Transforms the lines, in two passes (see cuda_optimized/fft/radix8.cu): frequencies lie as
  /// the points do. @tparam kDown whether they are columns
  template <bool kDown>
  __device__ void transform_lines(Point (&v)[8]) const {
    fft::butterfly<8, 1>(v);
    // The line's threads exchange what they have: point i is number 8 place + i, of which the low
    // bits are flipped by the high ones, for the banks.
    const int to = spot<kDown>(9 * place, line), from = spot<kDown>(place, line);
#pragma unroll
    for (int i = 0; i < 8; ++i) points_[to ^ spot<kDown>(i, 0)] = v[i];
    __syncwarp();  // separates these stores of the line's threads from the loads below
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = points_[from ^ spot<kDown>(i * kLine ^ i * kLine / 8, 0)];
    __syncwarp();  // separates these loads from what the line's threads store next
#pragma unroll
    for (int b = 0; b < kButterflies; ++b) {
      Point turns[kLine];
#pragma unroll
      for (int r = 1; r < kLine; ++r) {
        const int power = r / 4 == 1 ? 2 : r / 2, rest = r - (1 << power);
        turns[r] = rest == 0 ? turns_[power][b] : turns[rest] * turns_[power][b];
        v[r * kButterflies + b] = v[r * kButterflies + b] * turns[r];
      }
      fft::butterfly<kLine, kButterflies>(v + b);
    }
  }

  /// From rows to columns, or back. All threads of the block call it.
  /// @tparam kDown whether they are columns now
  /// @param stores whether to store point i of this thread
  template <bool kDown, class Stores>
  __device__ void turn_lines(Point (&v)[8], const Stores& stores) const {
    const int to = spot<kDown>(place, line), from = spot<!kDown>(place, line);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (stores(i)) points_[to ^ spot<kDown>(i * kLine, 0)] = v[i];
    }
    __syncthreads();  // separates these stores of all lines from the loads of those across
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = points_[from ^ spot<!kDown>(i * kLine, 0)];
    __syncwarp();  // separates these loads from what the warp stores next, in these lines alone
  }

 private:
  static constexpr int kButterflies = 8 / kLine;  ///< Of a thread in the second pass.
  /// What a point of a butterfly is turned by is a product of so few factors that registers hold
  /// them: those of points 1, 2 and 4.
  static constexpr int kPowers = kLine == 8 ? 3 : kLine == 4 ? 2 : 1;

  /// Where a number of a line lies. Half of a warp meets all 16 pairs of banks once, in lines of
  /// both directions: a column's number is flipped by the bits of the row that neighbours differ
  /// in. All this is XOR, so that spot(a ^ b, line) is spot(a, line) ^ spot(b, 0): what belongs to
  /// the thread is computed once, and what belongs to a point by the compiler.
  template <bool kDown>
  __device__ static constexpr int spot(int number, int line) {
    const int row = kDown ? number : line, column = kDown ? line : number;
    const int flips = T == 32 ? (row & 3) << 2 : (row & 1) << 3 | (row & 6);
    return row * T ^ flips ^ column;
  }

  Point* points_;
  Point turns_[kPowers][kButterflies];
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
