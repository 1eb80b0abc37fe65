/// @file sparse_conv_problem.hpp
/// @brief Sparse convolution over a rulebook, forward and backward.
#pragma once

#include <string>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// The parameters of a sparse convolution whose rulebook is there already; N input and M output
/// rows. Trivially copyable.
///
///     y[out][co]    += features[in][ci] * weights[k][ci][co]     for every pair (k, in, out), all
///     ci dx[in][ci]    += dy[out][co]      * weights[k][ci][co]     likewise, all co dw[k][ci][co]
///     += features[in][ci] * dy[out][co]
///
/// At one tap no row occurs in two pairs, neither as input nor as output.
struct SparseConvProblem {
  RulebookProblem book;         ///< Of which the pairs are.
  int Cin = 1, Cout = 1;        ///< Channels of input and output rows.
  int N = 0, M = 0;             ///< Input and output rows; 0 is legal.
  std::int64_t pairs = 0;       ///< Of the rulebook, less than 2^31.
  std::int64_t most_pairs = 0;  ///< The most that any one tap has.
  DType dtype = DType::f32;     ///< Of features, weights and gradients.
};

/// The same problem. @throws BadInput if an extent is out of range.
SparseConvProblem validated(SparseConvProblem problem);

/// One line: "subm, 1000 sites in ..., 16 to 32 channels, 6280 pairs".
std::string describe(const SparseConvProblem& problem);

/// The arrays: features [N][Cin], weights [KV][Cin][Cout] and the rulebook to y [M][Cout]. The
/// rulebook, int32: pairs [P][3] (k, in, out), sorted by k, then out; offsets [KV + 1], where pairs
/// of tap k begin; nbr [KV][M], the input row of each output at each tap, or -1.
Signature sparse_conv_signature(const SparseConvProblem& problem);

/// The arrays: dy [M][Cout], weights and the rulebook to dx [N][Cin]; instead of nbr its mirror
/// nbr_back [KV][N], the output row of each input at each tap, or -1.
Signature sparse_dgrad_signature(const SparseConvProblem& problem);

/// The arrays: features, dy, pairs and offsets to dw [KV][Cin][Cout].
Signature sparse_wgrad_signature(const SparseConvProblem& problem);

}  // namespace convladder
