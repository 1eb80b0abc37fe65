/// @file sparse_avg_pool.hpp
/// @brief Average pooling over a rulebook. Its problem type is that of max pooling.
#pragma once

#include "core/sparse_pool_problem.hpp"

namespace convladder {

/// The arrays of average pooling: features [N][C] and the rulebook's table, nbr [KV][M] (see
/// rulebook_signature()), to y [M][C]. This comment is the definition of the operation.
///
///     y[out][c] = (sum of features[in][c] over the pairs (k, in, out)) / (number of these pairs)
///
/// - The divisor is the number of sites that exist in the window, as in spconv. A dense average
///   pooling divides by the kernel volume, or by the part of it inside of the grid (PyTorch's
///   count_include_pad).
/// - The sum is in float, in any order; one division, rounded to nearest, follows. If the sum is
///   exact, the bits of y are therefore determined. The sum, not only the mean, must be within the
///   range of float.
/// - An output without any pair (possible for `inverse`) has y = 0.
Signature sparse_avg_pool_signature(const SparsePoolProblem& problem);

/// The arrays at the place where a rung runs.
struct SparseAvgPoolArrays {
  using Problem = SparsePoolProblem;  ///< The problem type of these arrays.
  const float* features = nullptr;    ///< [N][C]
  const std::int32_t* nbr = nullptr;  ///< [KV][M], input rows or -1
  float* y = nullptr;                 ///< [M][C]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const SparsePoolProblem& problem, const SparseAvgPoolArrays& arrays);

}  // namespace convladder
