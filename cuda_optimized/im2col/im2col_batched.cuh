/// @file im2col_batched.cuh
/// @brief im2col as a building block of other rungs; im2col_batched.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::im2col {

/// The rung.
extern const Implementation<Im2colArrays> im2col_batched;

}  // namespace convladder::BACKEND::cuda_optimized::im2col
