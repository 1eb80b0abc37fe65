/// @file direct_rungs.cuh
/// @brief The direct rungs that others leave a problem to for which they have no kernel.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

extern const Implementation<Conv2dArrays> direct_tiled;     ///< direct/tiled.cu
extern const Implementation<Conv2dArrays> direct_cp_async;  ///< direct/cp_async.cu
extern const Implementation<Conv2dArrays> direct_row_tile;  ///< direct/row_tile.cu

/// A rung for any filter, stride and dilation: direct/cp_async, or direct/tiled, which needs less
/// shared memory.
inline const Implementation<Conv2dArrays>& any_filter(const Conv2dProblem& conv) {
  return direct_cp_async.supports(conv) ? direct_tiled : direct_cp_async;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
