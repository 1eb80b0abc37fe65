/// @file multicast_operands.cuh
/// @brief From matrices of 16-bit numbers to the stages of clusters.cu: sources, as in
/// half_operands.cuh.
#pragma once

#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "cuda_optimized/gemm/shared/half_operands.cuh"
#include "cuda_optimized/gemm/shared/tma_store.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// a [M][K] and b [K][N] by TMA: of a the block's own rows, of the b that a cluster
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

/// Calls body(source, result) for a problem's arrays: by TMA for clusters, or, where
/// that cannot take one of them, by a warp and the consumers of lone blocks.
template <class Shape, class T, class Body>
void with_shared_halves(const GemmProblem& gemm, const T* a, const T* b, T* c, const Body& body) {
  if (!copy_engine_takes(gemm, a, b, c)) {
    body(LoneHalves<Shape, T>{{a, b, gemm}}, plain_result<Shape>(gemm, c));
    return;
  }
  using Source = SharedHalves<Shape>;
  const Source source = {
      {tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
       tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, Source::kPart}}, b)}};
  body(source, boxed_result<Shape>(gemm, c));
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
