/// @file tables.hpp
/// @brief One function a ladder; each is the table in the .cpp file of the ladder's name.
#pragma once

#include "core/rung.hpp"

namespace convladder {

Ladder conv2d_ladder();
Ladder conv2d_dgrad_ladder();
Ladder conv2d_wgrad_ladder();
Ladder im2col_ladder();
Ladder col2im_ladder();
Ladder gemm_ladder();
Ladder tile_map_ladder();

}  // namespace convladder
