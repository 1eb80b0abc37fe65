/// @file real_tile.cuh
/// @brief The discrete Fourier transform of real tiles of 16 x 16: one thread per line, in
/// registers.
#pragma once

#include "core/complex.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Up to 32 tiles of 16 x 16 real numbers, which a block transforms in shared memory: eight threads
/// a tile, and each lane of a warp a tile of its own.
///
/// Two real lines a and b are one complex line a + i b, and half of its spectrum is that of both:
/// numbers 16 - u of a real line's are the conjugates of numbers u. Pulled apart, in place:
///
///     number     0         1 ... 7    8         9 ... 15
///     holds    A[0], B[0]  A[u]     A[8], B[8]  B[16 - u]       A[0], A[8], B[0], B[8] are real
///
/// So are rows 2 i and 2 i + 1. Of all rows, numbers 0 and 8 are then two real columns, a pair like
/// two rows, and numbers 1 to 7 are complex columns: eight columns of 16 complex numbers, which are
/// 256 real ones. Frequency 16 j + u is number u of column j. In frequencies 0 and 8 stand two real
/// numbers each, those that are their own conjugates.
class RealTile {
 public:
  static constexpr int kSide = 16;                  ///< Points along each axis.
  static constexpr int kFrequencies = 8 * kSide;    ///< Of complex numbers, or two real ones.
  static constexpr int kTiles = 32;                 ///< Of a block at most: a lane each.
  static constexpr int kLines = kSide / 2;          ///< Threads of a tile: one for two lines.
  static constexpr int kThreads = kLines * kTiles;  ///< Of a block at most.
  static constexpr int kPoints = kSide * kSide;     ///< Of a tile.
  static constexpr std::size_t kBytes = sizeof(float) * kPoints * (kTiles + 1);  ///< Shared memory.
  using Point = Complex<float>;  ///< A number of a spectrum.

  /// Whether a frequency holds two real numbers.
  __device__ static constexpr bool is_pair(int frequency) {
    return frequency == 0 || frequency == kSide / 2;
  }

  /// @param points in shared memory, kBytes of them
  __device__ explicit RealTile(float* points)
      : tiles(static_cast<int>(blockDim.x) / kLines), pair(static_cast<int>(threadIdx.x) / tiles),
        lane(static_cast<int>(threadIdx.x) % tiles), points_(points + lane) {}

  const int tiles,  ///< Of this block.
      pair,         ///< The thread's rows are 2 pair and 2 pair + 1, its column is number pair.
      lane;         ///< Its tile.

  /// A tile's point, for threads that fill the tiles or empty them: their lanes along w.
  __device__ static float& point(float* points, int tile, int h, int w) {
    return points[(h * kSide + w) * (kTiles + 1) + tile];
  }

  /// Calls body(tile, h, w) for this thread's share of all points: lanes run along w.
  template <class Body>
  __device__ void for_each_point(const Body& body) const {
    const int threads = static_cast<int>(blockDim.x);
    for (int i = static_cast<int>(threadIdx.x); i < tiles * kPoints; i += threads)
      body(i / kPoints, i / kSide % kSide, i % kSide);
  }

  /// Transforms this thread's rows in place; no other thread accesses them.
  __device__ void transform_rows() const {
    Point v[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i) v[i] = {at(0, i), at(1, i)};
    transform(v);
    pull_apart(v);
    at(0, 0) = v[0].re, at(1, 0) = v[0].im, at(0, 1) = v[8].re, at(1, 1) = v[8].im;
#pragma unroll
    for (int i = 1; i < kSide / 2; ++i) {
      at(0, 2 * i) = v[i].re, at(0, 2 * i + 1) = v[i].im;
      at(1, 2 * i) = v[kSide - i].re, at(1, 2 * i + 1) = v[kSide - i].im;
    }
  }
  /// The inverse transform, times kSide.
  __device__ void transform_rows_back() const {
    Point v[kSide];
    v[0] = {at(0, 0), at(1, 0)}, v[8] = {at(0, 1), at(1, 1)};
#pragma unroll
    for (int i = 1; i < kSide / 2; ++i) {
      v[i] = {at(0, 2 * i), at(0, 2 * i + 1)};
      v[kSide - i] = {at(1, 2 * i), at(1, 2 * i + 1)};
    }
    put_together(v);
    transform_back(v);
#pragma unroll
    for (int i = 0; i < kSide; ++i) at(0, i) = v[i].re, at(1, i) = v[i].im;
  }

  /// This thread's column of all rows' spectra: frequencies 16 pair ... 16 pair + 15.
  __device__ void transform_column(Point (&v)[kSide]) const {
#pragma unroll
    for (int h = 0; h < kSide; ++h) v[h] = {of_column(h, 0), of_column(h, 1)};
    transform(v);
    if (pair == 0) pull_apart(v);
  }
  /// The inverse transform, times kSide.
  __device__ void transform_column_back(Point (&v)[kSide]) const {
    if (pair == 0) put_together(v);
    transform_back(v);
#pragma unroll
    for (int h = 0; h < kSide; ++h) of_column(h, 0) = v[h].re, of_column(h, 1) = v[h].im;
  }

 private:
  __device__ float& at(int row, int w) const {
    return points_[((2 * pair + row) * kSide + w) * (kTiles + 1)];
  }
  __device__ float& of_column(int h, int part) const {
    return points_[(h * kSide + 2 * pair + part) * (kTiles + 1)];
  }

  /// z turned by `steps` sixteenths of a circle, as exp(-2 pi i steps / 16) does.
  template <int steps>
  __device__ static Point turned(Point z) {
    if constexpr (steps >= 4) {
      return turned<steps - 4>(quarter_turn(z));
    } else if constexpr (steps == 0) {
      return z;
    } else if constexpr (steps == 2) {
      return eighth_turn(z);
    } else {
      constexpr float kLarge = 0.92387953251128675613f, kSmall = 0.38268343236508977173f;
      return z * (steps == 1 ? Point{kLarge, -kSmall} : Point{kSmall, -kLarge});
    }
  }

  /// A line of 16 points in two passes of radix 4 (cuda_optimized/fft/radix8.cu), in order.
  __device__ static void transform(Point (&v)[kSide]) {
#pragma unroll
    for (int b = 0; b < 4; ++b) fft::butterfly<4, 4>(v + b);
    v[5] = turned<1>(v[5]), v[6] = turned<2>(v[6]), v[7] = turned<3>(v[7]);
    v[9] = turned<2>(v[9]), v[10] = turned<4>(v[10]), v[11] = turned<6>(v[11]);
    v[13] = turned<3>(v[13]), v[14] = turned<6>(v[14]), v[15] = turned<9>(v[15]);
    Point result[kSide];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      fft::butterfly<4, 1>(v + 4 * k);
#pragma unroll
      for (int i = 0; i < 4; ++i) result[k + 4 * i] = v[4 * k + i];
    }
#pragma unroll
    for (int k = 0; k < kSide; ++k) v[k] = result[k];
  }
  /// A transform between two exchanges of the parts leads back, times 16.
  __device__ static void transform_back(Point (&v)[kSide]) {
#pragma unroll
    for (int i = 0; i < kSide; ++i) v[i] = exchanged_if(true, v[i]);
    transform(v);
#pragma unroll
    for (int i = 0; i < kSide; ++i) v[i] = exchanged_if(true, v[i]);
  }

  /// The spectrum Z of a + i b to those of a and b: A[u] = (Z[u] + conj(Z[16 - u])) / 2, and B[u] =
  /// (Z[u] - conj(Z[16 - u])) / 2 i.
  __device__ static void pull_apart(Point (&v)[kSide]) {
#pragma unroll
    for (int u = 1; u < kSide / 2; ++u) {
      const Point z = v[u], mirrored = v[kSide - u];
      v[u] = {0.5f * (z.re + mirrored.re), 0.5f * (z.im - mirrored.im)};
      v[kSide - u] = {0.5f * (z.im + mirrored.im), 0.5f * (mirrored.re - z.re)};
    }
  }
  /// Z[u] = A[u] + i B[u] and Z[16 - u] = conj(A[u]) + i conj(B[u]).
  __device__ static void put_together(Point (&v)[kSide]) {
#pragma unroll
    for (int u = 1; u < kSide / 2; ++u) {
      const Point a = v[u], b = v[kSide - u];
      v[u] = {a.re - b.im, a.im + b.re};
      v[kSide - u] = {a.re + b.im, b.re - a.im};
    }
  }

  float* points_;  // of this lane's tile
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
