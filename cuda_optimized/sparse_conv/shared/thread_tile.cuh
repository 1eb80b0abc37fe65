/// @file thread_tile.cuh
/// @brief Another numbering of a warp's lanes, for loads without bank conflicts.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// Which of a ThreadTile's threads a thread is, such that four lanes that are neighbours multiply a
/// square of 2 x 2 of its places, and not four side by side:
///
///     lanes 0  1  4  5  8  9 12 13     instead of     lanes 0  1  2  3  4  5  6  7
///           2  3  6  7 10 11 14 15                          8  9 10 11 12 13 14 15
///          16 17 ...                                       16 17 ...
///
/// A profiler shows on an H200: the lanes of a load of 16 bytes are served 8 at a time, but 16 at a
/// time where each lane reads the same as its neighbour, or as the lane after that. In a square
/// this holds for rows and for weights.
template <int kLanesN>
__device__ unsigned thread_in_squares(unsigned thread) {
  const unsigned lane = thread % 32, square = lane / 4, squares_n = kLanesN / 2;
  const unsigned m = square / squares_n * 2 + lane / 2 % 2, n = square % squares_n * 2 + lane % 2;
  return thread - lane + m * kLanesN + n;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
