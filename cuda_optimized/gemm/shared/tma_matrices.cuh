/// @file tma_matrices.cuh
/// @brief Loads of matrices to the stages of tf32/wgmma.cu, and from its accumulators to a matrix.
///
/// A source loads the operands. Its functions:
///
///     Cursor at(item)               the first step of a tile
///     load(cursor, a, b, barrier)   loads a stage: to a [Shape::M][32], to b [Shape::N][32], and
///                                   arrives at the barrier. If kWholeWarp, all 32 threads call it.
///     advance(cursor)               to the next step
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// a [M][K] and b transposed [N][K], as TMA reads them.
template <class Shape>
struct TiledSource {
  static constexpr bool kWholeWarp = false;  ///< One thread calls load().
  CUtensorMap a, b;                          ///< of both operands

  /// A step of a tile.
  struct Cursor {
    int m, n, k;  ///< its first row of a, row of b, and column
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {static_cast<int>(item.m) * Shape::M, item.n * Shape::N, item.first * kWgmmaStep};
  }
  /// Loads the stage at the cursor.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    // Whole boxes count, also the zeros past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load<2>(a_tile, &a, full, {cursor.k, cursor.m});
    ptx::tma_load<2>(b_tile, &b, full, {cursor.k, cursor.n});
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kWgmmaStep; }
};

/// The same by a warp, element by element, for arrays whose rows TMA cannot take.
template <class Shape>
struct GatheredSource {
  static constexpr bool kWholeWarp = true;  ///< All 32 call load().
  const float *a, *b;                       ///< [M][K]; [K][N]
  GemmProblem gemm;                         ///< their sizes

  /// A step of a tile.
  struct Cursor {
    std::int64_t m;  ///< its first row of a
    int n, k;        ///< its first column of b, and of a
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {item.m * Shape::M, item.n * Shape::N, item.first * kWgmmaStep};
  }
  /// Loads the stage at the cursor.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, k = cursor.k + lane;
    for (int i = 0; i < Shape::M; ++i) {
      const std::int64_t m = cursor.m + i;
      const bool inside = m < gemm.M && k < gemm.K;
      a_tile[swizzled(i, lane)] = inside ? __uint_as_float(ptx::to_tf32(a[m * gemm.K + k])) : 0.0f;
    }
    for (int j = 0; j < Shape::N; ++j) {
      const std::int64_t n = cursor.n + j;
      const bool inside = n < gemm.N && k < gemm.K;
      b_tile[swizzled(j, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(b[std::int64_t{k} * gemm.N + n])) : 0.0f;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kWgmmaStep; }
};

/// c [M][N], where the accumulators of a tile go. @tparam T the type of c
template <class Shape, class T = float>
struct RowMajor {
  T* c;               ///< [M][N]
  std::int64_t M, N;  ///< its sizes
  bool pairs;         ///< Two neighbours can be stored at once.

  /// Where a tile lies.
  struct Place {
    T* c;         ///< The tile's first column.
    int columns;  ///< From there to the last one.
  };
  /// The place of a tile.
  __device__ Place place(const WgmmaItem& item) const {
    const std::int64_t n = std::int64_t{item.n} * Shape::N;
    return {c + n, static_cast<int>(N - n)};
  }
  /// A row of c, from the column of `place` on; null beyond the last row.
  __device__ T* row(const Place& place, std::int64_t row) const {
    return row < M ? place.c + row * N : nullptr;
  }
  /// Two neighbouring columns.
  struct Pair {
    int column, count;  ///< The first one, and how many of the two there are.
  };
  /// The columns `first` and `first` + 1 from the place on.
  __device__ Pair columns(const Place& place, int first) const {
    return {first, place.columns - first};
  }
  /// Whether all of a tile lies in c, so that store_whole() may be called.
  __device__ bool whole(const Place& place, const WgmmaItem& item) const {
    return pairs && place.columns >= Shape::N && (item.m + 1) * Shape::M <= M;
  }
  /// Stores two neighbours.
  __device__ void store_whole(const Pair& pair, T* row, float v0, float v1) const {
    store_two(row + pair.column, v0, v1);
  }
  /// Stores those of two neighbours that lie in c.
  __device__ void store(const Pair& pair, T* row, float v0, float v1) const {
    if (row == nullptr || pair.count <= 0) return;
    if (pairs) {
      store_two(row + pair.column, v0, v1);
    } else {
      row[pair.column] = rounded_to<T>(v0);
      if (pair.count > 1) row[pair.column + 1] = rounded_to<T>(v1);
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
