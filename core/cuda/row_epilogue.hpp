/// @file row_epilogue.hpp
/// @brief Bias and activation as separate passes over the rows of a result, for rungs that do not
/// fuse them.
#pragma once

#include "core/activation.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

namespace row_epilogue {

inline constexpr int kThreads = 256;                 ///< Threads per block.
inline constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Largest grid; larger problems are
                                                     ///< processed by a grid-stride loop.

/// y [rows][channels]: sets each row to the bias [channels], or to zeros if it is null. Launch with
/// any one-dimensional grid.
static __global__ void fill_rows(std::int64_t count, int channels, const float* bias, float* y) {
  for (const std::int64_t i : grid_stride(count))
    y[i] = bias != nullptr ? bias[i % channels] : 0.0f;
}

/// y [count], in place. Launch with any one-dimensional grid.
static __global__ void activate(std::int64_t count, Activation activation, float* y) {
  for (const std::int64_t i : grid_stride(count)) y[i] = activated(activation, y[i]);
}

}  // namespace row_epilogue

/// Initialises y [rows][channels], to which sums are added: each row to the bias [channels], or to
/// zeros if it is null.
inline void launch_fill_rows(std::int64_t rows, int channels, const float* bias, float* y) {
  const std::int64_t count = rows * channels;
  launch(
      row_epilogue::fill_rows,
      {blocks_for(count, row_epilogue::kThreads, row_epilogue::kMaxBlocks), row_epilogue::kThreads},
      count, channels, bias, y);
}

/// Applies the activation to the complete sums y [rows][channels]; no launch for Activation::none.
inline void launch_activate(std::int64_t rows, int channels, Activation activation, float* y) {
  if (activation == Activation::none) return;
  const std::int64_t count = rows * channels;
  launch(
      row_epilogue::activate,
      {blocks_for(count, row_epilogue::kThreads, row_epilogue::kMaxBlocks), row_epilogue::kThreads},
      count, activation, y);
}

}  // namespace convladder::BACKEND
