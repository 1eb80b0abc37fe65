/// @file tables.hpp
/// @brief One function per ladder; each returns the table in the .cpp file with the ladder's name.
#pragma once

#include "core/rung.hpp"

namespace convladder {

Ladder conv2d_ladder();                 ///< ladders/conv2d.cpp
Ladder conv2d_dgrad_ladder();           ///< ladders/conv2d_dgrad.cpp
Ladder conv2d_wgrad_ladder();           ///< ladders/conv2d_wgrad.cpp
Ladder im2col_ladder();                 ///< ladders/im2col.cpp
Ladder col2im_ladder();                 ///< ladders/col2im.cpp
Ladder gemm_ladder();                   ///< ladders/gemm.cpp
Ladder tile_map_ladder();               ///< ladders/tile_map.cpp
Ladder rulebook_ladder();               ///< ladders/rulebook.cpp
Ladder sparse_conv_ladder();            ///< ladders/sparse_conv.cpp
Ladder sparse_dgrad_ladder();           ///< ladders/sparse_dgrad.cpp
Ladder sparse_wgrad_ladder();           ///< ladders/sparse_wgrad.cpp
Ladder sparse_max_pool_ladder();        ///< ladders/sparse_max_pool.cpp
Ladder sparse_max_pool_dgrad_ladder();  ///< ladders/sparse_max_pool_dgrad.cpp
Ladder sparse_avg_pool_ladder();        ///< ladders/sparse_avg_pool.cpp
Ladder sparse_global_pool_ladder();     ///< ladders/sparse_global_pool.cpp
Ladder sparse_to_dense_ladder();        ///< ladders/sparse_to_dense.cpp
Ladder voxelize_ladder();               ///< ladders/voxelize.cpp
Ladder fft_ladder();                    ///< ladders/fft.cpp

Ladder conv2d_transpose_alias();  ///< ladders/conv2d_transpose.cpp

}  // namespace convladder
