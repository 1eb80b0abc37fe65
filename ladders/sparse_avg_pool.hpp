/// @file sparse_avg_pool.hpp
/// @brief The rungs of sparse_avg_pool: average pooling over a rulebook, y[out] = the mean of the
/// features[in] that exist.
#pragma once

#include "core/sparse_avg_pool.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseAvgPoolArrays, cpu_reference, sparse_avg_pool, direct)
CUDA_RUNG(SparseAvgPoolArrays, cuda_naive, sparse_avg_pool, direct)
CUDA_RUNG(SparseAvgPoolArrays, cuda_optimized, sparse_avg_pool, vectorized)
