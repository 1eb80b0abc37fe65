/// @file rulebook.hpp
/// @brief The rungs of rulebook: which input site of a sparse convolution meets which output site,
/// at which tap
#pragma once

#include "core/rulebook_problem.hpp"
#include "ladders/declare.hpp"

CPU_RUNG(RulebookArrays, cpu_reference, rulebook, hash_map)
CPU_RUNG(RulebookArrays, cpu_reference, rulebook, sorted_search)
CPU_RUNG(RulebookArrays, cpu_reference, rulebook, neighbour_table)
CUDA_RUNG(RulebookArrays, cuda_naive, rulebook, dense_grid)
CUDA_RUNG(RulebookArrays, cuda_naive, rulebook, two_phases)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, symmetric)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, aggregated_counters)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, hash_table)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, filtered_hash)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, count_scan_fill)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, compact_before_sort)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, neighbour_table)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, bit_grid)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, hash_of_runs)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, fused)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, paged_bit_grid)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, paged_bricks)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, mirrored_lists)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, lists_of_bricks)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, hash_set_of_outputs)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, bit_grid_of_outputs)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, gather)
CUDA_RUNG(RulebookArrays, cuda_optimized, rulebook, lists_of_inputs)
