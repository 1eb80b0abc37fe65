/// @file window_packing.cuh
/// @brief Copies an nchw source as TMA can read it: channels innermost, in fours.
#pragma once

#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/gemm/shared/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Channels rounded up to a multiple of 4, 16 bytes, as TMA needs.
inline int padded_channels(int channels) { return ceil_div(channels, 4) * 4; }

/// Floats of the source with its channels innermost, a multiple of 4 in each group.
inline std::int64_t packed_source_floats(const Windows& windows) {
  const std::int64_t pixels = std::int64_t{windows.N} * windows.H * windows.W;
  return pixels * windows.groups * padded_channels(windows.group_c);
}

/// Copies an nchw source into that form.
inline void pack_source(const Windows& windows, const float* source, float* packed) {
  const int padded = padded_channels(windows.group_c), image = windows.H * windows.W;
  const std::int64_t pixel = std::int64_t{windows.groups} * padded;
  const std::int64_t group = std::int64_t{windows.group_c} * image;
  gemm::launch_transpose(
      {.axes = {{.count = windows.N, .from = windows.groups * group, .to = image * pixel},
                {.count = windows.groups, .from = group, .to = padded},
                {}},
       .rows = windows.group_c,
       .columns = image,
       .from_row = image,
       .from_column = 1,
       .to_row = pixel,
       .padded = padded},
      source, packed);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
