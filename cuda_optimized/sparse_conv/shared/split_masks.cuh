/// @file split_masks.cuh
/// @brief The two halves of an implicit product's taps, each with an order of the rows;
/// implicit_gemm_split_masks.cu explains them.
#pragma once

#include "cuda_optimized/sparse_conv/shared/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// A half of the taps.
struct HalfOfTaps {
  int first_tap, end_tap;     ///< The others are left out.
  const std::int32_t* order;  ///< [M]: which row is the 0th, 1st ..., sorted by this half's masks
  ImplicitGemm conv;          ///< The second half adds to what the first has stored, and activates.
};

/// One of the two halves of a forward pass.
inline HalfOfTaps half_of(const SparseConvProblem& conv, const SparseConvArrays& arrays, int half) {
  ImplicitGemm part = implicit_gemm_of(conv, arrays);
  part.add = half == 1;
  if (half == 0) part.activation = Activation::none;
  return {.first_tap = first_tap(conv.book.KV, 2, half),
          .end_tap = first_tap(conv.book.KV, 2, half + 1),
          .order = arrays.split_order + std::int64_t{half} * conv.M,
          .conv = part};
}

/// The bits of a mask's word that stand for the half's taps.
__device__ inline unsigned taps_in_word(const HalfOfTaps& half, int word) {
  const int begin = half.first_tap - 32 * word, end = half.end_tap - 32 * word;
  const unsigned from_begin = begin <= 0 ? ~0u : begin < 32 ? ~0u << begin : 0u;
  const unsigned from_end = end <= 0 ? ~0u : end < 32 ? ~0u << end : 0u;
  return from_begin & ~from_end;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
