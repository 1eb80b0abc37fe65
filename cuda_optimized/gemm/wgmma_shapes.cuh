/// @file wgmma_shapes.cuh
/// @brief The shapes of wgmma_low_tiles.cu's tiles: for two consumers, or for one.
#pragma once

#include "cuda_optimized/gemm/wgmma_halves.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// A tile for two consumers, of 64 rows each.
template <int kN, int kStages>
struct TallShape : WgmmaShape<128, kN, kStages, 1> {
  static constexpr int kWarpgroups = 2;             ///< Consumers.
  static constexpr int kRegistersToMultiply = 232;  ///< Of their threads.
};
/// A tile for one.
template <int kN, int kStages_>
struct LowShape : WgmmaShape<128, kN, kStages_, 1> {
  static constexpr int M = 64,                       ///< Rows.
      kWarpgroups = 1;                               ///< Consumers.
  static constexpr int kRegistersToMultiply = 240;   ///< Of their threads.
  static constexpr int kBytesA = M * kHalfStep * 2,  ///< Of a stage's a.
      kStageBytes = kBytesA + kN * kHalfStep * 2;    ///< a, then b.
  static constexpr std::size_t kSharedBytes = kStages_ * kStageBytes + kAtom;  ///< Of a block.
};
/// Threads of a block that multiply.
template <class Shape>
inline constexpr int kMultiply = 128 * Shape::kWarpgroups;
/// All threads of a block: those, and a warpgroup of which one warp loads.
template <class Shape>
inline constexpr int kThreads = kMultiply<Shape> + 128;

}  // namespace convladder::BACKEND::cuda_optimized::gemm
