/// @file implicit_gemm.cuh
/// @brief The parameters of the implicit GEMMs in FP32, the two halves of its taps, and how four
/// accumulators are stored; implicit_gemm.cu and implicit_gemm_split_masks.cu explain them.
#pragma once

#include "core/activation.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// y[row][co] = bias[co] + sum over the taps k with in = nbr[k][row] >= 0, and over all ci, of
/// features[in][ci] * weights[k][ci][co].
struct ImplicitGemm {
  int KV, M, Cin, Cout;      ///< As in the problem.
  const std::int32_t* nbr;   ///< [KV][M]: rows of features, or -1
  const std::int32_t* mask;  ///< [M][mask_words(KV)]: which entries of nbr are not -1
  const float* features;     ///< [N][Cin]
  const float* weights;      ///< [KV][Cin][Cout]
  const float* bias;         ///< [Cout], or null
  float* y;                  ///< [M][Cout], wholly written
  Activation activation;     ///< Applied to complete results.
  bool add = false;          ///< Adds to y instead of the bias.
};

/// A forward pass over all taps.
inline ImplicitGemm implicit_gemm_of(const SparseConvProblem& conv,
                                     const SparseConvArrays& arrays) {
  return {.KV = conv.book.KV,
          .M = conv.M,
          .Cin = conv.Cin,
          .Cout = conv.Cout,
          .nbr = arrays.nbr,
          .mask = arrays.mask,
          .features = arrays.features,
          .weights = arrays.weights,
          .bias = arrays.bias,
          .y = arrays.y,
          .activation = conv.activation};
}

/// Stores 4 neighbouring accumulators, channels co to co + 3 of a row, to y.
/// @tparam kAligned y begins at a multiple of 16 bytes, and Cout is a multiple of 4
template <bool kAligned>
__device__ inline void store_sums(const ImplicitGemm& conv, std::int64_t row, int co, float4 four) {
  float* const to = conv.y + row * conv.Cout + co;
  float sums[4] = {four.x, four.y, four.z, four.w};
  float before[4] = {};
  if (conv.add) {
    if constexpr (kAligned) {
      *reinterpret_cast<float4*>(before) = *reinterpret_cast<const float4*>(to);
    } else {
      for (int j = 0; j < 4 && co + j < conv.Cout; ++j) before[j] = to[j];
    }
  } else if (conv.bias != nullptr) {
    for (int j = 0; j < 4 && co + j < conv.Cout; ++j) before[j] = conv.bias[co + j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) sums[j] = activated(conv.activation, before[j] + sums[j]);
  if constexpr (kAligned) {
    *reinterpret_cast<float4*>(to) = {sums[0], sums[1], sums[2], sums[3]};
  } else {
    for (int j = 0; j < 4 && co + j < conv.Cout; ++j) to[j] = sums[j];
  }
}

/// A half of the taps.
struct HalfOfTaps {
  int first_tap, end_tap;     ///< The range of taps of this half.
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

/// The bits of a mask's word for the half's taps.
__device__ inline unsigned taps_in_word(const HalfOfTaps& half, int word) {
  const int begin = half.first_tap - 32 * word, end = half.end_tap - 32 * word;
  const unsigned from_begin = begin <= 0 ? ~0u : begin < 32 ? ~0u << begin : 0u;
  const unsigned from_end = end <= 0 ? ~0u : end < 32 ? ~0u << end : 0u;
  return from_begin & ~from_end;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
