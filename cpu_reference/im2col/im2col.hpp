/// @file im2col.hpp
/// @brief im2col as a building block of other rungs; see im2col.cpp.
#pragma once

#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::im2col {

/// The rung.
extern const Implementation<Im2colArrays> im2col;

}  // namespace convladder::cpu_reference::im2col
