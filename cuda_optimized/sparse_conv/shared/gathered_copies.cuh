/// @file gathered_copies.cuh
/// @brief Gathers the rows of a step into shared memory: first their indices, then the rows.
#pragma once

#include "cuda_optimized/sparse_conv/shared/permuted_pieces.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

template <class Shape>
class TapList;

/// Asks for the rows of `from` that the tile's rows meet at a step's taps.
/// @param to shared memory [Shape::kTaps][Shape::M]
template <class Shape>
__device__ void ask_for_indices(const GatheredRows<typename Shape::Number>& conv,
                                const TapList<Shape>& list, int step, std::int32_t* to) {
#pragma unroll
  for (int t = 0; t < Shape::kTaps; ++t, to += Shape::M) {
    const int entry = list.entry(step) + t;
    const std::int32_t* const table =
        conv.table + (list.exists(entry) ? std::int64_t{list.tap(entry)} * conv.rows : 0);
    for (int i = static_cast<int>(threadIdx.x); i < Shape::M; i += Shape::kThreads) {
      if (list.exists(entry)) {
        ptx::cp_async<4>(to + i, table + list.row(i));
      } else {
        to[i] = -1;
      }
    }
  }
}

/// Asks for a step's part of the rows; zeros for rows that meet nothing, and past the last channel.
/// @param indices as ask_for_indices() has brought them
/// @param stage shared memory [Shape::M], rows of Shape::kRowBytes
template <class Shape>
__device__ void ask_for_rows(const GatheredRows<typename Shape::Number>& conv,
                             const TapList<Shape>& list, int step, const std::int32_t* indices,
                             char* stage) {
  constexpr int kPieces = Shape::kRowBytes / kPiece, kRows = Shape::kThreads / kPieces;
  static_assert(Shape::M % kRows == 0 && kRows % 8 == 0, "the permutation must repeat");
  constexpr int kTapPieces = kPieces / Shape::kTaps;
  const int thread = static_cast<int>(threadIdx.x);
  const int piece = thread % kPieces, row = thread / kPieces, t = piece / kTapPieces;
  const int s = list.channel(step) + piece % kTapPieces * (kPiece / Shape::kSize);
  const auto* const from = conv.from + s;
  const int left = conv.summed - s;
  const std::int32_t* const met = indices + t * Shape::M + row;
  char* const a = stage + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;
#pragma unroll
  for (int i = 0; i < Shape::M; i += kRows) {
    const int index = met[i];
    const std::int64_t at = std::int64_t{index < 0 ? 0 : index} * conv.summed;
    copy_piece<Shape::kPieces>(a + i * Shape::kRowBytes, from + at, index < 0 ? 0 : left);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
