/// @file implicit_gemm_cp_async.cuh
/// @brief The forward pass with asynchronous copies as a building block of gradients;
/// implicit_gemm_cp_async.cu has the kernel.
#pragma once

#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// Takes a convolution over any table: its rows need not be those of the problem's rulebook.
extern const Implementation<SparseConvArrays> implicit_gemm_cp_async;

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
