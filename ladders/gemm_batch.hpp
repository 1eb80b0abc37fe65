/// @file gemm_batch.hpp
/// @brief How the rungs of gemm, which know one product of row-major matrices, compute a
/// GemmBatchProblem: one product after the other, on copies of transposed factors.
#pragma once

#include "core/rung.hpp"

namespace convladder {

/// The rung with code that takes GemmBatchProblem, too. A factor that lies transposed is copied
/// into the workspace, the other way round, before each product; all else the rung reads and writes
/// where it lies. So its time is that of the copies and of `batch` launches.
Rung in_batches(Rung rung);

}  // namespace convladder
