/// @file col2im.hpp
/// @brief col2im as a building block of other rungs; see col2im.cpp.
#pragma once

#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::col2im {

/// The rung.
extern const Implementation<Col2imArrays> col2im;

}  // namespace convladder::cpu_reference::col2im
