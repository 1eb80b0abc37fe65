/// @file async_rows.cuh
/// @brief The shape of a tile whose rows are copied asynchronously, and whose warps skip taps on
/// their own; implicit_gemm_cp_async.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// The shape of a block's work, and its shared memory: first the stages, then the rest.
/// @tparam Tile_ a gemm::ThreadTile: rows x channels of y, and how deep a step is
/// @tparam kStages_ steps whose tiles are in shared memory, or on their way; at least 2
template <class Tile_, int kStages_>
struct AsyncRows {
  using Tile = Tile_;                                 ///< Of y.
  static constexpr int kStages = kStages_;            ///< See above.
  static constexpr int kWarps = Tile::kThreads / 32;  ///< Of a block.
  static constexpr int kWarpRows = Tile::kWarpM;      ///< A warp copies and multiplies them.
  static constexpr int kPitchA = Tile::kBlockK + 4;   ///< Of the gathered rows.
  static constexpr int kPitchB = Tile::kBlockN;       ///< Of the weights.
  static constexpr int kRowFloats = Tile::kBlockM * kPitchA;  ///< Of a stage's gathered rows.
  static constexpr int kStageFloats = kRowFloats + Tile::kBlockK * kPitchB;  ///< Of a stage.
  static_assert(Tile::kBlockK % 8 == 0 && kWarpRows <= 32);
  static_assert(Tile::kWarpsN == 1, "a warp multiplies the rows that it copies, and no others");
  static_assert(kWarps <= 16, "a list's entry has 16 bits for them");

  /// Dynamic shared memory of a block.
  static constexpr std::size_t shared_bytes(int taps) {
    const int words = mask_words(taps);
    const int behind = Tile::kBlockM * (1 + kStages) + kWarps * words + 32 * words + 1;
    return (static_cast<std::size_t>(kStages) * kStageFloats + static_cast<std::size_t>(behind)) *
           sizeof(float);
  }

  /// [kBlockM][kPitchA]: a stage's gathered rows.
  static __device__ float* rows_at(int stage) {
    return dynamic_shared<float>() + stage * kStageFloats;
  }
  /// [kBlockK][kPitchB]: a stage's weights.
  static __device__ float* weights_at(int stage) { return rows_at(stage) + kRowFloats; }
  /// [kBlockM]: numbers of the tile's rows, or -1.
  static __device__ std::int32_t* rows() {
    return dynamic_shared<std::int32_t>() + kStages * kStageFloats;
  }
  /// [kStages][kBlockM]: nbr at some taps.
  static __device__ std::int32_t* inputs(int slot) { return rows() + (1 + slot) * Tile::kBlockM; }
  /// [kWarps][words]: taps that any row of a warp has.
  static __device__ unsigned* masks() { return reinterpret_cast<unsigned*>(inputs(kStages)); }
  /// [32 * words + 1]: taps that the block does, with a bit from 16 on for each warp that has it;
  /// last their number.
  static __device__ unsigned* list(int words) { return masks() + kWarps * words; }
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
