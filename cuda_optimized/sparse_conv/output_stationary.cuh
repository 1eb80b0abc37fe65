/// @file output_stationary.cuh
/// @brief The output-stationary sparse convolution, for the forward pass and for dgrad.
#pragma once

#include "core/activation.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// to[row][c] = bias[c] + sum over the taps k with from_row = table[k][row] >= 0, and over all s,
/// of from[from_row][s] * weights[k][s][c].
struct OutputStationary {
  int taps;                                  ///< KV
  int rows;                                  ///< of `to`
  int summed;                                ///< Channels of `from`, over which the sum runs.
  int channels;                              ///< Channels of `to`.
  const std::int32_t* table;                 ///< [taps][rows]: rows of `from`, or -1
  const float* from;                         ///< [...][summed]
  const float* weights;                      ///< [taps][summed][channels]
  float* to;                                 ///< [rows][channels], wholly written
  const float* bias = nullptr;               ///< [channels], or null
  Activation activation = Activation::none;  ///< Applied to complete results.
};

/// Computes all of `to` in one launch; the order of all additions is fixed.
void launch_output_stationary(const OutputStationary& conv);

/// A short description of its choice for this number of channels.
std::string output_stationary_in_words(int channels);

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
