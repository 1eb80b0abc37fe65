/// @file sparse_pool_problem.hpp
/// @brief What a sparse network does beside convolving: max pooling over a rulebook, and the way
/// out of the sparse world, to a dense tensor.
#pragma once

#include <string>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// The parameters of max pooling over a rulebook that is there already; N input and M output rows.
/// Trivially copyable. What is computed is said here, and nowhere else.
///
/// The candidates of output row `out` are the input rows of its pairs (k, in, out), in the order of
/// their taps k. For each channel:
///
///     argmax[out][c] = the first candidate whose feature no other candidate's exceeds()
///     y[out][c]      = features[argmax[out][c]][c], bit for bit
///     dx[in][c]      = sum of dy[out][c] over all `out` with argmax[out][c] == in
///
/// - Only sites that exist take part. A dense max pooling of the same tensor takes the zeros
///   between them as well, so that the two agree only where no feature is negative.
/// - An output without any pair (`inverse` has them): y is 0, argmax is -1, its dy goes nowhere.
/// - NaN exceeds every number, and so goes on to y, as in PyTorch. Of several, the first.
/// - +0 and -0 are equal. y has the sign of the first.
/// - Equal candidates: the one with the lowest tap wins, and gets all of the gradient. PyTorch and
///   cuDNN give it to one input, too; spconv gives it to every input that equals y.
/// - The sums of dx may be in any order. An input that nobody chose has the gradient 0.
struct SparsePoolProblem {
  RulebookProblem book = {};  ///< Of which the pairs are.
  int C = 1;                  ///< Channels.
  int N = 0, M = 0;           ///< Input and output rows; 0 is legal.
  std::int64_t pairs = 0;     ///< Of the rulebook, less than 2^31.
};

/// Whether feature a takes the place of feature b as the largest: a strict order in which NaN is
/// above all numbers, and all NaN, as well as both zeros, are equal.
HOST_DEVICE constexpr bool exceeds(float a, float b) { return a > b || (a != a && b == b); }

/// The same problem. @throws BadInput if an extent is out of range.
SparsePoolProblem validated(SparsePoolProblem problem);

/// One line: "strided, 1000 sites in ..., 16 channels, 6280 pairs".
std::string describe(const SparsePoolProblem& problem);

/// The arrays of the forward pass: features [N][C] and the rulebook (pairs [P][3], sorted by k,
/// then out; nbr [KV][M] and mask, see rulebook_signature()) to y [M][C] and argmax [M][C] (int32).
Signature sparse_max_pool_signature(const SparsePoolProblem& problem);

/// The arrays of the gradient: dy [M][C], argmax [M][C] as the forward pass left it, and the
/// mirrored table, nbr_back [KV][N] (the output row of each input at each tap, or -1) with its
/// masks, mask_back, to dx [N][C].
Signature sparse_max_pool_dgrad_signature(const SparsePoolProblem& problem);

/// The arrays of the forward pass where a rung computes.
struct SparseMaxPoolArrays {
  using Problem = SparsePoolProblem;    ///< Whose arrays these are.
  const float* features = nullptr;      ///< [N][C]
  const std::int32_t* pairs = nullptr;  ///< [P][3], sorted
  const std::int32_t* nbr = nullptr;    ///< [KV][M], input rows or -1
  const std::int32_t* mask = nullptr;   ///< [M][mask_words(KV)]
  float* y = nullptr;                   ///< [M][C]
  std::int32_t* argmax = nullptr;       ///< [M][C]
};

/// Those of the gradient.
struct SparseMaxPoolDgradArrays {
  using Problem = SparsePoolProblem;        ///< Whose arrays these are.
  const float* dy = nullptr;                ///< [M][C]
  const std::int32_t* argmax = nullptr;     ///< [M][C]
  const std::int32_t* nbr_back = nullptr;   ///< [KV][N], output rows or -1
  const std::int32_t* mask_back = nullptr;  ///< [N][mask_words(KV)]
  float* dx = nullptr;                      ///< [N][C]
};

/// The parameters of the step from rows of features to a dense tensor. Trivially copyable.
///
///     x[n][c][z][y][x] = features[row][c] where coords[row] = (n, z, y, x), and 0 where there is
///     no row
///
/// for 1 to 4 axes beside the batch. The sites are distinct and inside of the grid, as a rulebook
/// wants them, too. A copy: every bit arrives. Its gradient is the gather dfeatures[row][c] =
/// dx[n][c][z][y][x].
struct SparseToDenseProblem {
  RulebookProblem grid = {};  ///< Axes, batch, sites and shape; the rest is that of a kernel of 1.
  int C = 1;                  ///< Channels.
};

/// The same problem. @throws BadInput if an extent is out of range.
SparseToDenseProblem validated(SparseToDenseProblem problem);

/// One line: "1000 sites in 40x40x10, batch 2, 16 channels".
std::string describe(const SparseToDenseProblem& problem);

/// The cells of one sample's grid.
HOST_DEVICE inline std::int64_t cells_of(const SparseToDenseProblem& problem) {
  std::int64_t cells = 1;
  for (int axis = 0; axis < problem.grid.ndim; ++axis) cells *= problem.grid.shape[axis];
  return cells;
}

/// The arrays: features [sites][C] and coords [sites][1 + ndim] (int32) to x [batch][C][extents].
Signature sparse_to_dense_signature(const SparseToDenseProblem& problem);

/// The arrays where a rung computes.
struct SparseToDenseArrays {
  using Problem = SparseToDenseProblem;  ///< Whose arrays these are.
  const float* features = nullptr;       ///< [sites][C]
  const std::int32_t* coords = nullptr;  ///< [sites][1 + ndim]
  float* x = nullptr;                    ///< [batch][C] and the extents
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const SparsePoolProblem& problem, const SparseMaxPoolArrays& arrays);
/// The same.
void require_complete(const SparsePoolProblem& problem, const SparseMaxPoolDgradArrays& arrays);
/// The same.
void require_complete(const SparseToDenseProblem& problem, const SparseToDenseArrays& arrays);

}  // namespace convladder
