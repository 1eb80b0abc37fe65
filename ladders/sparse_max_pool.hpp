/// @file sparse_max_pool.hpp
/// @brief The rungs of sparse_max_pool: max pooling over a rulebook, y[out] = the largest
/// features[in], and the index of that input row.
#pragma once

#include "core/sparse_pool_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseMaxPoolArrays, cpu_reference, sparse_max_pool, direct)
CUDA_RUNG(SparseMaxPoolArrays, cuda_naive, sparse_max_pool, scatter)
CUDA_RUNG(SparseMaxPoolArrays, cuda_optimized, sparse_max_pool, output_stationary)
CUDA_RUNG(SparseMaxPoolArrays, cuda_optimized, sparse_max_pool, vectorized)
CUDA_RUNG(SparseMaxPoolArrays, cuda_optimized, sparse_max_pool, masked_taps)
