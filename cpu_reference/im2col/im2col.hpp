/// @file im2col.hpp
/// @brief im2col as a building block of other rungs; im2col.cpp explains it.
#pragma once

#include "core/im2col_problem.hpp"

namespace convladder::cpu_reference::im2col {

/// x [N][C][D][H][W] to col [N][rows][columns], as the problem's request says.
void im2col(const Im2colProblem& problem, const float* x, float* col);

}  // namespace convladder::cpu_reference::im2col
