/// @file col2im_batched.cuh
/// @brief col2im as a building block of other rungs; col2im_batched.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::col2im {

/// The rung.
extern const Implementation<Col2imArrays> col2im_batched;

}  // namespace convladder::BACKEND::cuda_optimized::col2im
