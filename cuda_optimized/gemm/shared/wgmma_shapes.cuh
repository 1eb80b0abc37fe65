/// @file wgmma_shapes.cuh
/// @brief The shapes of hopper/small_tiles.cu's tiles, for two consumers, or for one; and where
/// they lie.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_optimized/gemm/shared/half_operands.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

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

/// item_at() of whole tiles, in 32 bits.
__device__ inline bool whole_item_at(const WgmmaWork& work, const WgmmaPlaces& places,
                                     unsigned index, WgmmaItem* item) {
  if (work.map != TileMap::row_major) return item_at(work, places, index, item);
  const auto tiles_m = static_cast<unsigned>(work.tiles_m);
  const unsigned group = index / (tiles_m * kColumnGroup);
  const unsigned n0 = group * kColumnGroup;
  const unsigned columns = min(unsigned{kColumnGroup}, work.tiles_n - n0);
  const unsigned inside = index - n0 * tiles_m;
  *item = {inside / columns, static_cast<int>(n0 + inside % columns), 0, 0, work.steps};
  return true;
}

/// Calls body(piece) for each piece of a tile, with a number that the compiler knows: what is
/// indexed by it stays in registers.
template <int kPieces, class Body>
__device__ void for_each_piece(const Body& body) {
  [&]<int... kPiece>(std::integer_sequence<int, kPiece...>) {
    (body(std::integral_constant<int, kPiece>()), ...);
  }(std::make_integer_sequence<int, kPieces>());
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
