/// @file conv2d_gradients.hpp
/// @brief The arrays of a convolution's two gradients; their problem is that of the forward pass.
#pragma once

#include "core/conv2d_problem.hpp"

namespace convladder {

/// The arrays of the input gradient: dy, weights to dx.
Signature conv2d_dgrad_signature(const Conv2dProblem& problem);
/// The arrays of the weight gradient: x, dy to dw [K][C/groups][R][S] and db [K], which are float
/// for every dtype.
Signature conv2d_wgrad_signature(const Conv2dProblem& problem);

/// The arrays of the input gradient at the place where a rung runs; shapes are those of
/// Layout::nchw.
struct Conv2dDgradArrays {
  using Problem = Conv2dProblem;  ///< The problem type of these arrays.
  Input dy = {};                  ///< [N][K][P][Q]
  Input weights = {};             ///< [K][C/groups][R][S]
  Output dx = {};                 ///< [N][C][H][W]
};

/// The arrays of the weight gradient.
struct Conv2dWgradArrays {
  using Problem = Conv2dProblem;  ///< The problem type of these arrays.
  Input x = {};                   ///< [N][C][H][W]
  Input dy = {};                  ///< [N][K][P][Q]
  Output dw = {};                 ///< [K][C/groups][R][S], float
  Output db = {};                 ///< [K], float
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const Conv2dProblem& problem, const Conv2dDgradArrays& arrays);
/// The same.
void require_complete(const Conv2dProblem& problem, const Conv2dWgradArrays& arrays);

}  // namespace convladder
