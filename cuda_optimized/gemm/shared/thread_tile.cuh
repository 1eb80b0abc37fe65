/// @file thread_tile.cuh
/// @brief Register tile of a thread: from tiles in shared memory to accumulators, the inner part of
/// every fast GEMM.
///
/// A block computes kBlockM x kBlockN elements of c. Its warps divide that tile among them, and the
/// 32 threads of a warp divide the warp's part: kLanesM down, 32 / kLanesM across. A thread's
/// kThreadM x kThreadN sums are not one rectangle but pieces of 4 x 4, one piece's width of the
/// whole warp apart:
///
///     warp tile, kThreadM = kThreadN = 8, kLanesM = 4         + is thread 0, o thread 1
///
///               lanes 0 ... 7   lanes 0 ... 7
///              + - - - - - - - + - - - - - - - +     A warp's float4 loads of a row of b's tile
///     lane 0   | + o           | + o           |     thus read 8 neighbouring float4: 32
///     lane 8   |               |               |     different banks. Two 8 x 8 rectangles side
///     lane 16  |               |               |     by side would be 8 floats apart, and every
///     lane 24  |               |               |     load would meet half of the banks twice.
///              + - - - - - - - + - - - - - - - +
///     lane 0   | + o           | + o           |
///     ...      |               |               |
///              + - - - - - - - + - - - - - - - +
///
/// Interface, for a kernel with a block of kThreads threads (one dimension):
///
///     using Tile = ThreadTile<128, 128, 8>;            // block tile M x N x K, thread tile 8 x 8
///     const Tile tile(threadIdx.x);                    // this thread's place: tile.m, tile.n
///     float sums[Tile::kThreadM][Tile::kThreadN] = {};
///     tile.multiply<kPitchA, kPitchB>(a_tile, b_tile, sums);      // a_tile [k][m], b_tile [k][n]
///     tile.multiply_along_k<kPitchA, kPitchB>(a_tile, b_tile, sums);         // a_tile [m][k]
///     tile.for_each_four(sums, [&](int m, int n, float4 c) { ... });   // c[m][n ... n + 3]
///
/// or, step by step, where a kernel loads the operands of step k + 1 before the arithmetic of step
/// k (also across the barrier between two tiles):
///
///     Tile::Operands operands[2];
///     tile.load<kPitchA, kPitchB>(a_tile, b_tile, k, operands[k % 2]);        // a_tile [k][m]
///     tile.add_products(operands[k % 2], sums);
///
/// Tiles are aligned to 16 bytes. Pitches (floats from a row to the next) are multiples of four. A
/// [k][m] tile is read without bank conflicts with any such pitch; for an [m][k] tile pitch / 4
/// must be odd (kBlockK + 4 where kBlockK is a multiple of 8).
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The layout of a block's sums over its threads. Sizes in floats.
template <int kBlockM_, int kBlockN_, int kBlockK_, int kThreadM_ = 8, int kThreadN_ = 8,
          int kLanesM_ = 4>
struct ThreadTile {
  static constexpr int kBlockM = kBlockM_, kBlockN = kBlockN_, kBlockK = kBlockK_;  ///< Of tiles.
  static constexpr int kThreadM = kThreadM_, kThreadN = kThreadN_;  ///< A thread's accumulators.
  static constexpr int kLanesM = kLanesM_, kLanesN = 32 / kLanesM;  ///< Threads of a warp.
  static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;  ///< Of a warp.
  static constexpr int kWarpsM = kBlockM / kWarpM, kWarpsN = kBlockN / kWarpN;    ///< Warps.
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;                         ///< Of a block.
  static_assert(kThreadM % 4 == 0 && kThreadN % 4 == 0, "made of pieces of 4 x 4");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "made of whole warp tiles");

  int m, n;  ///< This thread's first row and column in the block's tile.

  /// @param thread 0 ... kThreads - 1
  __device__ explicit ThreadTile(unsigned thread) {
    const int lane = static_cast<int>(thread % 32), warp = static_cast<int>(thread / 32);
    m = warp / kWarpsN * kWarpM + lane / kLanesN * 4;
    n = warp % kWarpsN * kWarpN + lane % kLanesN * 4;
  }

  /// How far below m the thread's row i lies.
  HOST_DEVICE static constexpr int row(int i) { return i / 4 * (4 * kLanesM) + i % 4; }
  /// How far to the right of n the thread's column j lies.
  HOST_DEVICE static constexpr int column(int j) { return j / 4 * (4 * kLanesN) + j % 4; }

  /// What a thread needs of one step along k: a column of a and a row of b.
  struct Operands {
    float a[kThreadM], b[kThreadN];  ///< One for each row, one for each column of its sums.
  };

  /// Reads the operands of step k, from a_tile [k][m] and b_tile [k][n].
  template <int kPitchA, int kPitchB>
  __device__ void load(const float* a_tile, const float* b_tile, int k, Operands& to) const {
    load_row<kThreadM, 4 * kLanesM>(a_tile + k * kPitchA + m, to.a);
    load_row<kThreadN, 4 * kLanesN>(b_tile + k * kPitchB + n, to.b);
  }

  /// sums[i][j] += a[i] * b[j]. Odd rows run backwards: each multiply-add then shares an operand
  /// with the one before, which need not be read from the register file again.
  __device__ static void add_products(const Operands& step, float (&sums)[kThreadM][kThreadN]) {
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int s = 0; s < kThreadN; ++s) {
        const int j = i % 2 == 0 ? s : kThreadN - 1 - s;
        sums[i][j] += step.a[i] * step.b[j];
      }
    }
  }

  /// Adds the product of two whole tiles, a_tile [kBlockK][kPitchA] and b_tile [kBlockK][kPitchB].
  template <int kPitchA, int kPitchB>
  __device__ void multiply(const float* a_tile, const float* b_tile,
                           float (&sums)[kThreadM][kThreadN]) const {
    Operands operands[2];
    load<kPitchA, kPitchB>(a_tile, b_tile, 0, operands[0]);
#pragma unroll
    for (int k = 0; k < kBlockK; ++k) {
      if (k + 1 < kBlockK) load<kPitchA, kPitchB>(a_tile, b_tile, k + 1, operands[(k + 1) % 2]);
      add_products(operands[k % 2], sums);
    }
  }

  /// The same for a_tile [kBlockM][kPitchA], as it lies in memory: a thread reads four steps of
  /// each of its rows at once, which makes as many loads, but takes 4 * kThreadM registers.
  template <int kPitchA, int kPitchB>
  __device__ void multiply_along_k(const float* a_tile, const float* b_tile,
                                   float (&sums)[kThreadM][kThreadN]) const {
    static_assert(kBlockK % 4 == 0 && kPitchA % 8 == 4, "float4 along k without bank conflicts");
#pragma unroll
    for (int k4 = 0; k4 < kBlockK; k4 += 4) {
      float a[kThreadM][4];
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
        load_row<4, 4>(a_tile + (m_along_k() + i * kLanesM) * kPitchA + k4, a[i]);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        Operands step;
        load_row<kThreadN, 4 * kLanesN>(b_tile + (k4 + k) * kPitchB + n, step.b);
#pragma unroll
        for (int i = 0; i < kThreadM; ++i) step.a[i] = a[i][k];
        add_products(step, sums);
      }
    }
  }

  /// The thread's first row where multiply_along_k() made the sums: row i is kLanesM * i below,
  /// so that the rows of a warp's load are neighbours, and lie in different banks.
  __device__ int m_along_k() const { return m / kWarpM * kWarpM + m % kWarpM / 4; }

  /// Calls body(m, n, four) for all of the thread's accumulators, four neighbours of a row at a
  /// time; m and n count within the block's tile. A warp's calls cover whole 128-byte lines of c.
  template <class Body>
  __device__ void for_each_four(const float (&sums)[kThreadM][kThreadN], const Body& body) const {
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; j += 4) {
        body(m + row(i), n + column(j),
             float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]});
      }
    }
  }

  /// The same for the sums of multiply_along_k().
  template <class Body>
  __device__ void for_each_four_along_k(const float (&sums)[kThreadM][kThreadN],
                                        const Body& body) const {
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; j += 4) {
        body(m_along_k() + i * kLanesM, n + column(j),
             float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]});
      }
    }
  }

 private:
  /// kCount floats in pieces of four, the pieces kApart floats apart.
  template <int kCount, int kApart>
  __device__ static void load_row(const float* from, float* to) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i / 4 * kApart);
      to[i] = four.x;
      to[i + 1] = four.y;
      to[i + 2] = four.z;
      to[i + 3] = four.w;
    }
  }
};

/// Calls body(m, n, sum) for all accumulators of a warp so that its 32 lanes have 32 neighbours of
/// a row of the block's tile: the lanes exchange accumulators through shared memory. A lane's n are
/// the same for every row.
/// @param shared a row of every thread: kThreads * kThreadN floats, for this alone
template <class T, class Body>
__device__ void for_each_in_order(const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                                  float* shared, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int lane_m = tile.m % T::kWarpM / 4, lane_n = tile.n % T::kWarpN;
  const int warp_m = tile.m - lane_m * 4, warp_n = tile.n - lane_n;
  float* const rows = shared + warp * (T::kLanesM * T::kWarpN);  // this warp's own
#pragma unroll
  for (int i = 0; i < T::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < T::kThreadN; j += 4) {
      reinterpret_cast<float4*>(rows)[(lane_m * T::kWarpN + lane_n + T::column(j)) / 4] =
          float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
    }
    __syncwarp();  // separates these stores from the loads below
#pragma unroll
    for (int row = 0; row < T::kLanesM; ++row) {
#pragma unroll
      for (int n = 0; n < T::kWarpN; n += 32) {
        body(warp_m + row * 4 + T::row(i), warp_n + n + lane, rows[row * T::kWarpN + n + lane]);
      }
    }
    __syncwarp();  // separates these loads from the stores of the threads' next rows
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
