/// @file shared_halves.cuh
/// @brief From matrices of 16-bit numbers to the stages of wgmma_clusters.cu: sources, as in
/// wgmma_halves.cuh.
#pragma once

#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/gemm/wgmma_halves.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// a [M][K] and b [K][N] by the copy engine: of a the block's own rows, of the b that a cluster
/// shares a part, for all of its blocks.
template <class Shape>
struct SharedHalves : TiledHalves<Shape> {
  static constexpr int kCluster = 2;                  ///< Blocks of a cluster.
  static constexpr int kPart = kHalfStep / kCluster;  ///< Rows of a stage's b that a block loads.

  /// Brings the block's part of the stages that the cluster's cursors stand at.
  __device__ void load(const typename TiledHalves<Shape>::Cursor& cursor, char* a_tile,
                       char* b_tile, std::uint64_t* full) const {
    // All bytes of the stage, also those that come from the other block, perhaps before this.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load<2>(a_tile, &this->a, full, {cursor.k, cursor.m});
    const int row = static_cast<int>(ptx::cluster_rank()) * kPart;
#pragma unroll
    for (int i = 0; i < Shape::N / kHalfColumns; ++i) {
      ptx::tma_load_multicast<2>(b_tile + i * kPieceBytes + row * kHalfColumns * 2, &this->b, full,
                                 {cursor.n + i * kHalfColumns, cursor.k + row},
                                 (1u << kCluster) - 1);
    }
  }
};

/// By a warp, for its own block.
template <class Shape, class T>
struct LoneHalves : GatheredHalves<Shape, T> {
  static constexpr int kCluster = 1;  ///< Blocks of a cluster.
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
