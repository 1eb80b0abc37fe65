/// @file voxelize.hpp
/// @brief The rungs of voxelize: the points of a LiDAR sweep become ordered sites with mean
/// features.
#pragma once

#include "core/voxelize_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(VoxelizeArrays, cpu_reference, voxelize, hash_map)
CPU_RUNG(VoxelizeArrays, cpu_reference, voxelize, sorted_points)
CUDA_RUNG(VoxelizeArrays, cuda_naive, voxelize, sorted_points)
CUDA_RUNG(VoxelizeArrays, cuda_optimized, voxelize, bit_grid)
CUDA_RUNG(VoxelizeArrays, cuda_optimized, voxelize, point_lists)
