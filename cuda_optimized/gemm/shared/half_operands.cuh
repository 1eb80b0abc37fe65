/// @file half_operands.cuh
/// @brief From matrices of 16-bit numbers to the stages of persistent.cu: sources, as in
/// tma_matrices.cuh.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// a [M][K] and b [K][N] by TMA, as they lie.
template <class Shape>
struct TiledHalves {
  static constexpr bool kWholeWarp = false;  ///< One thread calls load().
  CUtensorMap a, b;                          ///< of both operands

  /// A step of a tile.
  struct Cursor {
    int m, n, k;  ///< its first row of a, column of b, and step
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {static_cast<int>(item.m) * Shape::M, item.n * Shape::N, item.first * kHalfStep};
  }
  /// Brings the stage that the cursor stands at.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    // Whole boxes count, also the zeros past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load<2>(a_tile, &a, full, {cursor.k, cursor.m});
#pragma unroll
    for (int i = 0; i < Shape::N / kHalfColumns; ++i) {
      ptx::tma_load<2>(b_tile + i * kPieceBytes, &b, full, {cursor.n + i * kHalfColumns, cursor.k});
    }
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kHalfStep; }
};

/// The same by a warp, number by number, for arrays whose rows TMA cannot take.
template <class Shape, class T>
struct GatheredHalves {
  static constexpr bool kWholeWarp = true;  ///< All 32 call load().
  const T *a, *b;                           ///< [M][K]; [K][N]
  GemmProblem gemm;                         ///< their sizes

  /// A step of a tile.
  struct Cursor {
    std::int64_t m, n, k;  ///< its first row of a, column of b, and step
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {item.m * Shape::M, std::int64_t{item.n} * Shape::N,
            std::int64_t{item.first} * kHalfStep};
  }
  /// Brings the stage that the cursor stands at.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < Shape::M; ++i) {
      for (int k = lane; k < kHalfStep; k += 32) {
        const bool inside = cursor.m + i < gemm.M && cursor.k + k < gemm.K;
        reinterpret_cast<T*>(a_tile)[swizzled_half(i, k)] =
            inside ? a[(cursor.m + i) * gemm.K + cursor.k + k] : T{};
      }
    }
    for (int k = 0; k < kHalfStep; ++k) {
      for (int j = lane; j < Shape::N; j += 32) {
        const bool inside = cursor.k + k < gemm.K && cursor.n + j < gemm.N;
        T* const piece = reinterpret_cast<T*>(b_tile + j / kHalfColumns * kPieceBytes);
        piece[swizzled_half(k, j % kHalfColumns)] =
            inside ? b[(cursor.k + k) * gemm.N + cursor.n + j] : T{};
      }
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kHalfStep; }
};

/// c [M][N] by the threads, where TMA cannot take it; for tma_store.cu.
template <class Shape, class T>
struct PlainResult {
  RowMajor<Shape, T> matrix;  ///< where they go

  /// Stores a consumer's sums of a tile. 128 threads call it.
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&sums)[Shape::kRowTiles][Shape::N / 2], char*, int&) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const auto place = matrix.place(item);
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t row =
          item.m * Shape::M + (consumer * Shape::kRowTiles + i) * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = matrix.columns(place, j * 8 + lane % 4 * 2);
        matrix.store(pair, matrix.row(place, row), sums[i][4 * j], sums[i][4 * j + 1]);
        matrix.store(pair, matrix.row(place, row + 8), sums[i][4 * j + 2], sums[i][4 * j + 3]);
      }
    }
  }
  /// Nothing is under way.
  __device__ void finish() const {}
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
