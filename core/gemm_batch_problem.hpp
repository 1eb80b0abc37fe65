/// @file gemm_batch_problem.hpp
/// @brief Batched GEMMs and GEMMs with transposed operands, as problems of the ladder gemm beside
/// GemmProblem. Rungs do not handle them directly: see ladders/gemm_batch.hpp.
#pragma once

#include <string>

#include "core/gemm_problem.hpp"

namespace convladder {

/// The same GEMM for several contiguous pairs of matrices, each of them transposed or not. bias,
/// activation and scales apply to all. Trivially copyable.
struct GemmBatchProblem {
  GemmProblem product = {};  ///< Of one pair; M, N and K without transposition.
  int batch = 0;  ///< Pairs, along a first axis of a, b and c; 0: one pair, without that axis.
  bool transpose_a = false;  ///< a is [K][M].
  bool transpose_b = false;  ///< b is [N][K].

  /// Number of GEMMs.
  constexpr int count() const { return batch > 0 ? batch : 1; }
};

/// The same problem. @throws BadInput like validated(GemmProblem), or if the batch is negative
GemmBatchProblem validated(GemmBatchProblem problem);

/// One line: "m 512, n 512, k 512, batch 8, transpose ab".
std::string describe(const GemmBatchProblem& problem);

/// The arrays: a [batch][M][K] or [batch][K][M], b [batch][K][N] or [batch][N][K] (and bias [N]) to
/// c [batch][M][N]; without the first axis if batch is 0.
Signature gemm_signature(const GemmBatchProblem& problem);

}  // namespace convladder
