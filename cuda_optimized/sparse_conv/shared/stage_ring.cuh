/// @file stage_ring.cuh
/// @brief The ring of stages between producers and consumers, and the tiles that go through it;
/// implicit_gemm_warp_specialized.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/sparse_conv/shared/stage_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// The tiles of all rows.
template <class T>
struct Pass {
  GatheredRows<T> conv;  ///< `from` and `weights` as prepare() leaves them
  int pitch;             ///< numbers of a row of `from`
  int chunks;            ///< stages that a row's channels take
  int tiles_m, tiles_n;  ///< down, and side by side
  int tiles;             ///< of rows and channels
  unsigned* handed_out;  ///< tiles beyond the blocks' first ones
};

/// Where a tile begins.
struct Corner {
  std::int64_t row;  ///< Its place in the order.
  int channel;       ///< The first one.
};
/// The corner of a tile, by its number.
template <class Shape>
__device__ Corner corner_of(const Pass<typename Shape::Number>& pass, int tile) {
  // The last rows of the order have the most taps: their tiles begin first.
  const int m = tile / pass.tiles_n;
  return {std::int64_t{pass.tiles_m - 1 - m} * kTileRows, (tile - m * pass.tiles_n) * Shape::N};
}

/// A stage's place in the ring, and how often the ring has been gone through, modulo 2.
template <class Shape>
struct Place {
  int stage = 0;       ///< Its number.
  unsigned round = 0;  ///< Of the ring.
  /// The next stage.
  __device__ void advance() {
    if (++stage < Shape::kStages) return;
    stage = 0;
    round ^= 1;
  }
};

/// What ends with a stage: nothing, its tile, or all tiles of the block.
enum Ends { kNothing, kTile, kBlock };

/// What producers and consumers share, beside the stages.
template <class Shape>
struct Ring {
  std::uint64_t full[Shape::kStages],  ///< all copies have landed
      empty[Shape::kStages];           ///< all consumer warps have read it
  /// What a stage is: of which tile, and what ends with it.
  struct Label {
    int tile,               ///< Its number.
        ends;               ///< An Ends.
  } label[Shape::kStages];  ///< By stage.
  // For the producers alone; two of each, for this tile and the next one.
  unsigned met[2][kMaxWords][kProducerWarps];  ///< taps that any row of a warp has
  int following[2];                            ///< the tile after this one
};

/// A producer's number among the producers.
__device__ inline int producer() { return static_cast<int>(threadIdx.x) - kConsumers; }

/// Takes more registers, or gives some back. All warps of a warpgroup call it.
template <int kRegisters, int kBefore>
__device__ void set_registers() {
  if constexpr (kRegisters > kBefore) {
    ptx::setmaxnreg_inc<kRegisters>();
  } else if constexpr (kRegisters > 0 && kRegisters < kBefore) {
    ptx::setmaxnreg_dec<kRegisters>();
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
