/// @file sparse_conv_problem.hpp
/// @brief Sparse convolution over a rulebook, forward and backward.
#pragma once

#include <string>

#include "core/activation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

/// The parameters of a sparse convolution with a given rulebook; N input and M output rows.
/// Trivially copyable.
///
///     y[out][co]     = bias[co] + sum of features[in][ci] * weights[k][ci][co]
///     dx[in][ci]     =            sum of dy[out][co]      * weights[k][ci][co]
///     dw[k][ci][co]  =            sum of features[in][ci] * dy[out][co]
///
/// each over all pairs (k, in, out) of its row or tap, and over all channels that are not indices
/// of the result. The forward pass stores activated() sums. At one tap no row occurs in two pairs,
/// neither as input nor as output.
struct SparseConvProblem {
  RulebookProblem book = {};              ///< The rulebook's problem.
  int Cin = 1, Cout = 1;                  ///< Channels of input and output rows.
  int N = 0, M = 0;                       ///< Input and output rows; may be 0.
  std::int64_t pairs = 0;                 ///< Of the rulebook, less than 2^31.
  std::int64_t most_pairs = 0;            ///< Largest number of pairs per tap.
  DType dtype = DType::f32;               ///< Of features, weights, y, dy and dx: f32, f16 or bf16.
  Precision precision = Precision::fp32;  ///< Least precision of the products of f32.
  bool bias = false;                      ///< Add bias[co] (forward).
  Activation activation = Activation::none;  ///< Applied to the sums with their bias (forward).
};

/// As on the command line: "fp16".
const char* dtype_name(const SparseConvProblem& problem);

/// The same problem. @throws BadInput if an extent is out of range.
SparseConvProblem validated(SparseConvProblem problem);

/// One line: "subm, 1000 sites in ..., 16 to 32 channels, 6280 pairs".
std::string describe(const SparseConvProblem& problem);

/// The arrays of the forward pass: features [N][Cin], weights [KV][Cin][Cout], bias [Cout]
/// (float32) if the problem has one, and the rulebook to y [M][Cout].
///
/// The rulebook, int32, in all its forms (see rulebook_signature()): pairs [P][3] (k, in, out),
/// sorted by k, then out; offsets [KV + 1], where pairs of tap k begin; nbr [KV][M], mask, order
/// [M] by whole masks and split_order [2][M] by each half of the taps.
Signature sparse_conv_signature(const SparseConvProblem& problem);

/// The arrays of the input gradient: dy [M][Cout], weights and the rulebook to dx [N][Cin]. In
/// addition to nbr its mirror, nbr_back [KV][N], the output row of each input at each tap, or -1,
/// with the masks and orders of its rows: mask_back, order_back, split_order_back.
Signature sparse_dgrad_signature(const SparseConvProblem& problem);

/// The arrays of the weight gradient: features, dy, pairs, offsets, nbr, mask and order to dw
/// [KV][Cin][Cout], which is float32 for every dtype, because the number of terms grows with the
/// number of rows.
Signature sparse_wgrad_signature(const SparseConvProblem& problem);

/// The arrays of the forward pass at the place where a rung runs.
struct SparseConvArrays {
  using Problem = SparseConvProblem;          ///< The problem type of these arrays.
  Input features = {};                        ///< [N][Cin]
  Input weights = {};                         ///< [KV][Cin][Cout]
  const float* bias = nullptr;                ///< [Cout], or null
  Output y = {};                              ///< [M][Cout]
  const std::int32_t* pairs = nullptr;        ///< [P][3], sorted
  const std::int32_t* offsets = nullptr;      ///< [KV + 1]
  const std::int32_t* nbr = nullptr;          ///< [KV][M], input rows or -1
  const std::int32_t* mask = nullptr;         ///< [M][mask_words(KV)]
  const std::int32_t* order = nullptr;        ///< [M]
  const std::int32_t* split_order = nullptr;  ///< [2][M]
};

/// The arrays of the input gradient.
struct SparseDgradArrays {
  using Problem = SparseConvProblem;               ///< The problem type of these arrays.
  Input dy = {};                                   ///< [M][Cout]
  Input weights = {};                              ///< [KV][Cin][Cout]
  Output dx = {};                                  ///< [N][Cin]
  const std::int32_t* pairs = nullptr;             ///< [P][3], sorted
  const std::int32_t* offsets = nullptr;           ///< [KV + 1]
  const std::int32_t* nbr = nullptr;               ///< [KV][M], input rows or -1
  const std::int32_t* mask = nullptr;              ///< [M][mask_words(KV)]
  const std::int32_t* order = nullptr;             ///< [M]
  const std::int32_t* split_order = nullptr;       ///< [2][M]
  const std::int32_t* nbr_back = nullptr;          ///< [KV][N], output rows or -1
  const std::int32_t* mask_back = nullptr;         ///< [N][mask_words(KV)]
  const std::int32_t* order_back = nullptr;        ///< [N]
  const std::int32_t* split_order_back = nullptr;  ///< [2][N]
};

/// The arrays of the weight gradient.
struct SparseWgradArrays {
  using Problem = SparseConvProblem;          ///< The problem type of these arrays.
  Input features = {};                        ///< [N][Cin]
  Input dy = {};                              ///< [M][Cout]
  float* dw = nullptr;                        ///< [KV][Cin][Cout]
  const std::int32_t* pairs = nullptr;        ///< [P][3], sorted
  const std::int32_t* offsets = nullptr;      ///< [KV + 1]
  const std::int32_t* nbr = nullptr;          ///< [KV][M], input rows or -1
  const std::int32_t* mask = nullptr;         ///< [M][mask_words(KV)]
  const std::int32_t* order = nullptr;        ///< [M]
  const std::int32_t* split_order = nullptr;  ///< [2][M]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const SparseConvProblem& problem, const SparseConvArrays& arrays);
/// The same.
void require_complete(const SparseConvProblem& problem, const SparseDgradArrays& arrays);
/// The same.
void require_complete(const SparseConvProblem& problem, const SparseWgradArrays& arrays);

}  // namespace convladder
