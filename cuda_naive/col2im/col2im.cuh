/// @file col2im.cuh
/// @brief col2im as a building block of other rungs; see col2im.cu.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::col2im {

/// The rung.
extern const Implementation<Col2imArrays> col2im;

}  // namespace convladder::BACKEND::cuda_naive::col2im
