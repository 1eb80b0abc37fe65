/// @file gemm_batch.hpp
/// @brief Runs the rungs of gemm, which compute one GEMM of row-major matrices, on a
/// GemmBatchProblem: one GEMM per matrix, on copies of transposed operands.
#pragma once

#include "core/rung.hpp"

namespace convladder {

/// Returns the rung with code that also accepts GemmBatchProblem. A transposed operand is
/// transposed into the workspace before each GEMM; all other arrays are read and written in place.
/// The time is therefore that of the copies and of `batch` launches.
Rung in_batches(Rung rung);

}  // namespace convladder
