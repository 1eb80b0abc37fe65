/// @file sparse_to_dense.hpp
/// @brief The rungs of sparse_to_dense: rows of features are written to a dense tensor, with zeros
/// at empty cells.
#pragma once

#include "core/sparse_pool_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(SparseToDenseArrays, cpu_reference, sparse_to_dense, direct)
CPU_RUNG(SparseToDenseArrays, cpu_reference, sparse_to_dense, row_grid)
CUDA_RUNG(SparseToDenseArrays, cuda_naive, sparse_to_dense, scatter)
CUDA_RUNG(SparseToDenseArrays, cuda_optimized, sparse_to_dense, row_grid)
CUDA_RUNG(SparseToDenseArrays, cuda_optimized, sparse_to_dense, transposed_tiles)
