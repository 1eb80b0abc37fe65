/// @file col2im.hpp
/// @brief col2im as a building block of other rungs; col2im.cpp explains it.
#pragma once

#include "core/im2col_problem.hpp"

namespace convladder::cpu_reference::col2im {

/// col [N][rows][columns] to x [N][C][D][H][W], as the problem's request says.
void col2im(const Im2colProblem& problem, const float* col, float* x);

}  // namespace convladder::cpu_reference::col2im
