/// @file half_tiles.cuh
/// @brief Tiles of 16-bit numbers in shared memory, and the way of accumulators to c: what the
/// rungs mma, ldmatrix, tma, wgmma and warp_specialized share.
#pragma once

#include <cstdint>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/gemm/shared/half_types.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

inline constexpr int kHalfStep = kTensorMapHalves;  ///< Of k in a stage: rows of 128 bytes.
/// Columns of b that lie together in a stage: a row of one is 128 bytes, too.
inline constexpr int kHalfColumns = kTensorMapHalves;
/// Bytes of such a piece of b, [kHalfStep][kHalfColumns].
inline constexpr int kPieceBytes = kHalfStep * kHalfColumns * 2;

/// Where a number of rows of 64 lies, in numbers: the eight 16-byte pieces of a row are permuted by
/// exclusive or with the row's number, as the 128-byte swizzle of TMA does it.
HOST_DEVICE constexpr int swizzled_half(int row, int column) {
  return row * kHalfColumns + ((column / 8 ^ row % 8) * 8 | column % 8);
}

/// Copies eight neighbours of a row of a matrix, from matrix[at] on, to 16 bytes of shared memory.
/// Of these, `left` exist; the others become zeros, and with left <= 0 nothing is read. kAligned:
/// rows begin at multiples of 16 bytes, and the copy is asynchronous; otherwise the numbers pass
/// through registers one by one.
template <bool kAligned, class T>
__device__ inline void copy_eight(T* to, const T* matrix, std::int64_t at, int left) {
  const T* const from = matrix + (left > 0 ? at : 0);
  if constexpr (kAligned) {
    ptx::cp_async<16>(to, from, left > 0 ? 16 : 0);
  } else {
#pragma unroll 1
    for (int i = 0; i < 8; ++i) to[i] = i < left ? from[i] : T{};
  }
}

/// c [M][N], where the lanes of a warp store accumulators.
template <class T>
struct RowsOfC {
  T* c;            ///< row-major
  int M, N;        ///< rows, columns
  bool in_eights,  ///< eights of columns begin at multiples of 16 bytes
      in_pairs;    ///< pairs of columns begin at multiples of 4 bytes

  /// Row m, or null if there is none.
  __device__ T* row(std::int64_t m) const { return m < M ? c + m * N : nullptr; }

  /// Stores columns n ... n + 31 of a row for each quad of lanes, those that lie in c. A lane has a
  /// pair of accumulators of each eight columns, as mma.sync and wgmma leave them.
  __device__ void store(T* row, std::int64_t n, float2 p0, float2 p1, float2 p2, float2 p3) const {
    if (row == nullptr) return;  // the whole quad, whose lanes have the same row
    const int lane = static_cast<int>(threadIdx.x % 4);
    std::uint32_t pair[4] = {two_rounded<T>(p0.x, p0.y), two_rounded<T>(p1.x, p1.y),
                             two_rounded<T>(p2.x, p2.y), two_rounded<T>(p3.x, p3.y)};
    if (in_eights) {
      // Single pairs would fill half a sector with each store. The quad transposes its 4 x 4 pairs,
      // in two exchanges, so that each lane has eight columns: 16 bytes.
      exchange<1>(pair[0], pair[1]);
      exchange<1>(pair[2], pair[3]);
      exchange<2>(pair[0], pair[2]);
      exchange<2>(pair[1], pair[3]);
      n += 8 * lane;
      if (n < N) {
        reinterpret_cast<uint4*>(row)[n / 8] = {pair[0], pair[1], pair[2], pair[3]};
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t column = n + 8 * i + 2 * lane;
      if (column >= N) return;
      if (in_pairs) {
        reinterpret_cast<std::uint32_t*>(row)[column / 2] = pair[i];
      } else {
        row[column].bits = static_cast<std::uint16_t>(pair[i]);
        if (column + 1 < N) row[column + 1].bits = static_cast<std::uint16_t>(pair[i] >> 16);
      }
    }
  }

 private:
  /// Lanes whose number has the bit kBit give `low` and get the other's `high` in its place; lanes
  /// without it give `high` and get the other's `low`.
  template <int kBit>
  __device__ static void exchange(std::uint32_t& low, std::uint32_t& high) {
    const bool upper = (threadIdx.x & kBit) != 0;
    const unsigned quad = 0xFu << threadIdx.x % 32 / 4 * 4;
    const std::uint32_t got = __shfl_xor_sync(quad, upper ? low : high, kBit);
    low = upper ? got : low;
    high = upper ? high : got;
  }
};

/// The tiles of a problem. In place of row_major stands an order of the kernels' own: super-rows of
/// 8 tiles, walked column by column. Blocks that run at the same time then read few rows of a and
/// columns of b, most of them from the L2 cache.
inline TileMapProblem tiles_in_groups(const GemmProblem& gemm, OutputTile tile) {
  return {.map = gemm.map == TileMap::row_major ? TileMap::grouped : gemm.map,
          .tiles_m = ceil_div(gemm.M, tile.rows),
          .tiles_n = ceil_div(gemm.N, tile.columns),
          .k_steps = ceil_div(gemm.K, kHalfStep)};
}

/// Calls body(Shape) for the shape with which a multiprocessor has less to compute; a partial wave
/// counts as a whole one. The small tile loads more for each product: an eighth is added.
template <class Large, class Small, class Body>
auto with_less_work(const GemmProblem& gemm, const Body& body) {
  const auto work = [&](std::int64_t m, std::int64_t n) {
    return ceil_div(ceil_div<std::int64_t>(gemm.M, m) * ceil_div<std::int64_t>(gemm.N, n),
                    std::int64_t{multiprocessors()}) *
           m * n;
  };
  if (Large::kSharedBytes > max_shared_bytes() ||
      work(Small::M, Small::N) * 9 / 8 < work(Large::M, Large::N)) {
    return body(Small{});
  }
  return body(Large{});
}

/// A problem's c.
template <class T>
RowsOfC<T> rows_of_c(const GemmProblem& gemm, T* c) {
  const auto begins_at = [=](std::uintptr_t bytes) {
    return reinterpret_cast<std::uintptr_t>(c) % bytes == 0;
  };
  return {c, gemm.M, gemm.N, gemm.N % 8 == 0 && begins_at(16), gemm.N % 2 == 0 && begins_at(4)};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
