/// @file implicit_gemm.cuh
/// @brief A sparse convolution as products of tiles: a block owns rows and channels of the output,
/// and does the taps that any of its rows has. cuda_optimized/sparse_conv/implicit_gemm.cu explains
/// it.
#pragma once

#include "core/activation.hpp"
#include "core/cuda/launch.hpp"
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// to[row][c] = bias[c] + sum over the taps k with from_row = table[k][row] >= 0, and over all s,
/// of from[from_row][s] * weights[k][s][c]; only the taps first_tap <= k < end_tap, in tiles of
/// rows that are neighbours in `order`.
struct ImplicitGemm {
  int taps;                   ///< KV
  int rows;                   ///< of `to`
  int summed;                 ///< Channels of `from`, over which the sum runs.
  int channels;               ///< Channels of `to`.
  const std::int32_t* table;  ///< [taps][rows]: rows of `from`, or -1
  const std::int32_t* mask;   ///< [rows][mask_words(taps)]: which entries are not -1
  const std::int32_t* order;  ///< [rows]: which row is the 0th, 1st ...; null for 0, 1 ...
  int first_tap, end_tap;     ///< The others are left out.
  const float* from;          ///< [...][summed]
  const float* weights;       ///< [taps][summed][channels]
  float* to;                  ///< [rows][channels], wholly written
  bool add;                   ///< To what `to` holds, instead of the bias.
  const float* bias;          ///< [channels], or null
  Activation activation;      ///< Of complete sums.
};

/// Computes all of `to` in one launch, by the kernel of implicit_gemm.cu; the order of every sum is
/// fixed.
void launch_implicit_gemm(const ImplicitGemm& conv);

/// What it chooses for so many channels, in a few words.
std::string implicit_gemm_in_words(int channels);

/// A forward pass over all taps, rows as they are.
inline ImplicitGemm implicit_gemm_of(const SparseConvProblem& conv, const Arguments& arrays) {
  return {.taps = conv.book.KV,
          .rows = conv.M,
          .summed = conv.Cin,
          .channels = conv.Cout,
          .table = arrays.in<std::int32_t>("nbr"),
          .mask = arrays.in<std::int32_t>("mask"),
          .order = nullptr,
          .first_tap = 0,
          .end_tap = conv.book.KV,
          .from = arrays.in<float>("features"),
          .weights = arrays.in<float>("weights"),
          .to = arrays.out<float>("y"),
          .add = false,
          .bias = arrays.in_or_null<float>("bias"),
          .activation = conv.activation};
}

/// The same over one of the two halves of the taps, rows in the order of that half's masks. The
/// second half adds to what the first has stored, and activates.
inline ImplicitGemm half_of_implicit_gemm(const SparseConvProblem& conv, const Arguments& arrays,
                                          int half) {
  ImplicitGemm part = implicit_gemm_of(conv, arrays);
  part.order = arrays.in<std::int32_t>("split_order") + std::int64_t{half} * conv.M;
  part.first_tap = first_tap(conv.book.KV, 2, half);
  part.end_tap = first_tap(conv.book.KV, 2, half + 1);
  part.add = half == 1;
  if (half == 0) part.activation = Activation::none;
  return part;
}

/// What the sums of 4 neighbours, channels c to c + 3 of a row, become in `to`.
/// @tparam kAligned `to` begins at a multiple of 16 bytes, and `channels` is a multiple of 4
template <bool kAligned>
__device__ inline void store_sums(const ImplicitGemm& conv, std::int64_t row, int c, float4 four) {
  float* const to = conv.to + row * conv.channels + c;
  float sums[4] = {four.x, four.y, four.z, four.w};
  float before[4] = {};
  if (conv.add) {
    if constexpr (kAligned) {
      *reinterpret_cast<float4*>(before) = *reinterpret_cast<const float4*>(to);
    } else {
      for (int j = 0; j < 4 && c + j < conv.channels; ++j) before[j] = to[j];
    }
  } else if (conv.bias != nullptr) {
    for (int j = 0; j < 4 && c + j < conv.channels; ++j) before[j] = conv.bias[c + j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) sums[j] = activated(conv.activation, before[j] + sums[j]);
  if constexpr (kAligned) {
    *reinterpret_cast<float4*>(to) = {sums[0], sums[1], sums[2], sums[3]};
  } else {
    for (int j = 0; j < 4 && c + j < conv.channels; ++j) to[j] = sums[j];
  }
}

/// The bits of a mask's word that stand for taps first_tap <= k < end_tap.
__device__ inline unsigned taps_in_word(const ImplicitGemm& conv, int word) {
  const int begin = conv.first_tap - 32 * word, end = conv.end_tap - 32 * word;
  const unsigned from_begin = begin <= 0 ? ~0u : begin < 32 ? ~0u << begin : 0u;
  const unsigned from_end = end <= 0 ? ~0u : end < 32 ? ~0u << end : 0u;
  return from_begin & ~from_end;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
