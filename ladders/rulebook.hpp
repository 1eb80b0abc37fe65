/// @file rulebook.hpp
/// @brief The rungs of rulebook: the rulebook of a sparse convolution, which gives the input site
/// of each output site and tap.
#pragma once

#include "core/rulebook_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(RulebookArrays, cpu_reference, rulebook, hash_map)
CPU_RUNG(RulebookArrays, cpu_reference, rulebook, sorted_search)
CPU_RUNG(RulebookArrays, cpu_reference, rulebook, neighbour_table)
CUDA_RUNG(RulebookArrays, cuda_naive, rulebook, dense_grid)
CUDA_RUNG(RulebookArrays, cuda_naive, rulebook, two_phases)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_symmetric)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_aggregated_counters)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_output_stationary)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_linear_probing)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_hash_table)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_filtered_hash)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_count_scan_fill)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, strided_compact_before_sort)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, neighbour_table)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_occupancy_bits)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_bit_grid)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_cooperative_launch)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_paged_bricks)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, submanifold_brick_lists)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, strided_hash_set)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, strided_bit_grid)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, strided_gather)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, strided_input_lists)
