/// @file gather_scatter.hpp
/// @brief Rows of a rulebook's pairs: copied together, and added back to where they belong.
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "core/rulebook_problem.hpp"

namespace convladder::cpu_reference::sparse_conv {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixMap = Eigen::Map<Matrix>;             ///< A row-major matrix that lies elsewhere.
using ConstMatrixMap = Eigen::Map<const Matrix>;  ///< The same, to read.

/// The columns of `pairs` that hold rows.
enum class Side : int { in = 1, out = 2 };

/// Copies row pairs[i][side] of `from` [rows][channels] to row i of `to`, for each of `to`'s rows.
/// @param pairs the first of as many pairs as `to` has rows
inline void gather_rows(const float* from, const std::int32_t* pairs, Side side, MatrixMap to) {
  for (std::int64_t i = 0; i < to.rows(); ++i) {
    const std::int64_t row = pairs[kPairColumns * i + static_cast<int>(side)];
    to.row(i) = Eigen::Map<const Eigen::RowVectorXf>(from + row * to.cols(), to.cols());
  }
}

/// Adds row i of `from` to row pairs[i][side] of `to` [rows][channels]: gather_rows() backwards.
inline void scatter_add_rows(const ConstMatrixMap& from, const std::int32_t* pairs, Side side,
                             float* to) {
  for (std::int64_t i = 0; i < from.rows(); ++i) {
    const std::int64_t row = pairs[kPairColumns * i + static_cast<int>(side)];
    Eigen::Map<Eigen::RowVectorXf>(to + row * from.cols(), from.cols()) += from.row(i);
  }
}

}  // namespace convladder::cpu_reference::sparse_conv
