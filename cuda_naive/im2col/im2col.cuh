/// @file im2col.cuh
/// @brief im2col as a building block of other rungs; see im2col.cu.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::im2col {

/// The rung.
extern const Implementation<Im2colArrays> im2col;

}  // namespace convladder::BACKEND::cuda_naive::im2col
