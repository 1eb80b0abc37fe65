/// @file tile_map.hpp
/// @brief The rungs of tile_map: which thread block computes which output tile and k-steps.
#pragma once

#include "core/tile_map_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(TileMapArrays, cpu_reference, tile_map, maps)
CUDA_RUNG(TileMapArrays, cuda_naive, tile_map, row_major)
CUDA_RUNG(TileMapArrays, cuda_optimized, tile_map, maps)
