/// @file sparse_pool_problem.hpp
/// @brief Max pooling over a rulebook, and the conversion of sparse features to a dense tensor.
#pragma once

#include <string>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// The parameters of max pooling over a given rulebook; N input and M output rows. Trivially
/// copyable. This comment is the definition of the operation.
///
/// The candidates of output row `out` are the input rows of its pairs (k, in, out), in the order of
/// their taps k. For each channel:
///
///     argmax[out][c] = the first candidate whose feature no other candidate's exceeds()
///     y[out][c]      = features[argmax[out][c]][c], bit for bit
///     dx[in][c]      = sum of dy[out][c] over all `out` with argmax[out][c] == in
///
/// - Only existing sites are candidates. A dense max pooling of the same tensor includes the zeros
///   between them, so that the two agree only if no feature is negative.
/// - An output without any pair (possible for `inverse`) has y = 0 and argmax = -1, and its dy is
///   ignored.
/// - NaN exceeds every number, and is thus propagated to y, as in PyTorch. Among several NaNs, the
///   first is selected.
/// - +0 and -0 are equal. y has the sign of the first.
/// - Among equal candidates, the one with the lowest tap is selected and receives the whole
///   gradient. PyTorch and cuDNN select one input, too; spconv adds the gradient to every input
///   that equals y.
/// - The sums of dx may be in any order. An input that no output selected has the gradient 0.
struct SparsePoolProblem {
  RulebookProblem book = {};  ///< The rulebook's problem.
  int C = 1;                  ///< Channels.
  int N = 0, M = 0;           ///< Input and output rows; may be 0.
  std::int64_t pairs = 0;     ///< Of the rulebook, less than 2^31.
};

/// Whether feature a replaces feature b as the largest: a strict order in which NaN is above all
/// numbers, and all NaNs, as well as both zeros, are equal.
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

/// The arrays of the forward pass at the place where a rung runs.
struct SparseMaxPoolArrays {
  using Problem = SparsePoolProblem;    ///< The problem type of these arrays.
  const float* features = nullptr;      ///< [N][C]
  const std::int32_t* pairs = nullptr;  ///< [P][3], sorted
  const std::int32_t* nbr = nullptr;    ///< [KV][M], input rows or -1
  const std::int32_t* mask = nullptr;   ///< [M][mask_words(KV)]
  float* y = nullptr;                   ///< [M][C]
  std::int32_t* argmax = nullptr;       ///< [M][C]
};

/// The arrays of the gradient.
struct SparseMaxPoolDgradArrays {
  using Problem = SparsePoolProblem;        ///< The problem type of these arrays.
  const float* dy = nullptr;                ///< [M][C]
  const std::int32_t* argmax = nullptr;     ///< [M][C]
  const std::int32_t* nbr_back = nullptr;   ///< [KV][N], output rows or -1
  const std::int32_t* mask_back = nullptr;  ///< [N][mask_words(KV)]
  float* dx = nullptr;                      ///< [N][C]
};

/// The parameters of the conversion of rows of features to a dense tensor. Trivially copyable.
///
///     x[n][c][z][y][x] = features[row][c] where coords[row] = (n, z, y, x), and 0 where there is
///     no row
///
/// for 1 to 4 axes beside the batch. The sites are distinct and inside of the grid, as for a
/// rulebook. The operation is a copy, so every bit is preserved. Its gradient is the gather
/// dfeatures[row][c] = dx[n][c][z][y][x].
struct SparseToDenseProblem {
  RulebookProblem grid = {};  ///< Axes, batch, sites and shape, with a kernel of 1.
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

/// The arrays at the place where a rung runs.
struct SparseToDenseArrays {
  using Problem = SparseToDenseProblem;  ///< The problem type of these arrays.
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
