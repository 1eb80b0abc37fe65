/// @file stage_rows.cuh
/// @brief Copies the rows that a producer warp has found into a stage.
#pragma once

#include "cuda_optimized/sparse_conv/shared/permuted_pieces.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_ring.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// Asks for this warp's rows of a tap: channels `s0` and up.
/// @param index of the row that this lane owns
template <class Shape>
__device__ void ask_for_rows(const Pass<typename Shape::Number>& pass, std::int32_t index, int s0,
                             char* a) {
  constexpr int kAtOnce = 32 / Shape::kPieces;  // rows of a warp's copy
  const int lane = producer() % 32, piece = lane % Shape::kPieces, below = lane / Shape::kPieces;
  const int s = s0 + piece * Shape::kCount;
  const bool inside = s < pass.pitch;
#pragma unroll
  for (int j = 0; j < 32; j += kAtOnce) {
    const std::int32_t met = __shfl_sync(0xFFFFFFFF, index, j + below);
    const int row = producer() / 32 * 32 + j + below;
    const bool exists = met >= 0 && inside;
    ptx::cp_async<kPiece>(
        a + row * Shape::kTapBytes + (piece ^ permutation<Shape::kPieces>(row)) * kPiece,
        pass.conv.from + (exists ? std::int64_t{met} * pass.pitch + s : 0), exists ? kPiece : 0);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
