/// @file gemm_batch_problem.hpp
/// @brief Matrix products side by side, and products of matrices that lie transposed: as problems
/// of the ladder gemm, beside GemmProblem. Rungs do not know them: see ladders/gemm_batch.hpp.
#pragma once

#include <string>

#include "core/gemm_problem.hpp"

namespace convladder {

/// The same product of several pairs of matrices, which lie one behind the other, each of them
/// transposed or not. bias, activation and scales are those of all. Trivially copyable.
struct GemmBatchProblem {
  GemmProblem product = {};  ///< Of one pair; M, N and K as if nothing were transposed.
  int batch = 0;  ///< Pairs, along a first axis of a, b and c; 0: one, without that axis.
  bool transpose_a = false;  ///< a is [K][M].
  bool transpose_b = false;  ///< b is [N][K].

  /// Products.
  constexpr int count() const { return batch > 0 ? batch : 1; }
};

/// The same problem. @throws BadInput as validated(GemmProblem), or if the batch is negative
GemmBatchProblem validated(GemmBatchProblem problem);

/// One line: "m 512, n 512, k 512, batch 8, transpose ab".
std::string describe(const GemmBatchProblem& problem);

/// The arrays: a [batch][M][K] or [batch][K][M], b [batch][K][N] or [batch][N][K] (and bias [N]) to
/// c [batch][M][N]; without the first axis if batch is 0.
Signature gemm_signature(const GemmBatchProblem& problem);

}  // namespace convladder
