/// @file sparse_global_pool_problem.hpp
/// @brief Global pooling: the maximum or the mean of all sites of each image of the batch.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "core/sparse_pool_problem.hpp"

namespace convladder {

/// The reduction of a global pooling.
enum class PoolReduction {
  max,  ///< the largest
  mean  ///< their sum over their number
};

/// Every reduction, by its name on the command line.
inline constexpr std::array<std::string_view, 2> kPoolReductions = {"max", "mean"};

/// As on the command line: "max".
constexpr std::string_view name_of(PoolReduction reduce) {
  return kPoolReductions[static_cast<std::size_t>(reduce)];
}

/// The parameters of global pooling. Trivially copyable. This comment is the definition of the
/// operation.
///
///     max    y[n][c] = the largest features[row][c] over all rows of image n, by exceeds()
///     mean   y[n][c] = (sum of features[row][c] over all rows of image n) / (number of rows)
///
/// - Image n has the rows with coords[row][0] == n, in any order among those of other images. The
///   other columns of coords are not used; the sites are distinct and inside of the grid, as for a
///   rulebook.
/// - Only existing sites contribute, as in average pooling. A dense global mean divides by the
///   number of cells.
/// - Sums are in float, in an order that is the same in every run; one division, rounded to
///   nearest, follows.
/// - An image without any row has y = 0 for both reductions.
/// - NaN exceeds every number, and is thus propagated to y. Among zeros of both signs, either may
///   be the maximum.
struct SparseGlobalPoolProblem {
  RulebookProblem grid = {};                  ///< Axes, batch, sites and shape, with a kernel of 1.
  int C = 1;                                  ///< Channels.
  PoolReduction reduce = PoolReduction::max;  ///< The reduction.
};

/// The neutral element: combined with any feature, it gives that feature.
HOST_DEVICE constexpr float neutral(PoolReduction reduce) {
  constexpr float kBelowAll = -std::numeric_limits<float>::infinity();
  return reduce == PoolReduction::mean ? 0.0f : kBelowAll;
}

/// Combines two values: features, or results of earlier combinations.
HOST_DEVICE constexpr float combined(PoolReduction reduce, float a, float b) {
  if (reduce == PoolReduction::mean) return a + b;
  return exceeds(b, a) ? b : a;
}

/// The final value of y for this number of combined features.
HOST_DEVICE constexpr float finished(PoolReduction reduce, float all, int count) {
  if (count == 0) return 0.0f;
  return reduce == PoolReduction::mean ? all / static_cast<float>(count) : all;
}

/// The same problem. @throws BadInput if an extent is out of range.
SparseGlobalPoolProblem validated(SparseGlobalPoolProblem problem);

/// One line: "1000 sites in 40x40x10, batch 2, 16 channels, mean".
std::string describe(const SparseGlobalPoolProblem& problem);

/// The arrays: features [sites][C] and coords [sites][1 + ndim] (int32) to y [batch][C].
Signature sparse_global_pool_signature(const SparseGlobalPoolProblem& problem);

/// The arrays at the place where a rung runs.
struct SparseGlobalPoolArrays {
  using Problem = SparseGlobalPoolProblem;  ///< The problem type of these arrays.
  const float* features = nullptr;          ///< [sites][C]
  const std::int32_t* coords = nullptr;     ///< [sites][1 + ndim]
  float* y = nullptr;                       ///< [batch][C]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const SparseGlobalPoolProblem& problem, const SparseGlobalPoolArrays& arrays);

}  // namespace convladder
