/// @file sparse_max_pool_dgrad.hpp
/// @brief The rungs of sparse_max_pool_dgrad: the gradient of max pooling over a rulebook with
/// respect to its features.
#pragma once

#include "core/sparse_pool_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseMaxPoolDgradArrays, cpu_reference, sparse_max_pool_dgrad, direct)
CPU_RUNG(SparseMaxPoolDgradArrays, cpu_reference, sparse_max_pool_dgrad, gather)
CUDA_RUNG(SparseMaxPoolDgradArrays, cuda_naive, sparse_max_pool_dgrad, scatter)
CUDA_RUNG(SparseMaxPoolDgradArrays, cuda_optimized, sparse_max_pool_dgrad, output_stationary)
CUDA_RUNG(SparseMaxPoolDgradArrays, cuda_optimized, sparse_max_pool_dgrad, vectorized)
