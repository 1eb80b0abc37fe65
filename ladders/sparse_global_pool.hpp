/// @file sparse_global_pool.hpp
/// @brief The rungs of sparse_global_pool: the maximum or the mean of all sites of each image.
#pragma once

#include "core/sparse_global_pool_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseGlobalPoolArrays, cpu_reference, sparse_global_pool, direct)
CUDA_RUNG(SparseGlobalPoolArrays, cuda_naive, sparse_global_pool, direct)
CUDA_RUNG(SparseGlobalPoolArrays, cuda_optimized, sparse_global_pool, row_parts)
