/// @file wgmma_tf32.cuh
/// @brief Sums over windows in TF32 by wgmma, also for the input gradient; wgmma_tf32.cu has the
/// kernel.
#pragma once

#include <string>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The arrays of a product of windows in TF32.
struct WindowArrays {
  const float *source, *weights, *bias;  ///< bias or null
  Layout source_layout,                  ///< of source in memory, which may have been repacked
      weights_layout;                    ///< nhwc: [K][R][S][group_c], nchw: [K][group_c][R][S]
  float *out, *parts;                    ///< parts: of part_floats(), where there are several
};

/// Computes out, in windows.layout. Returns without waiting.
void launch_windows_tf32(const Windows& windows, const WindowArrays& arrays);

/// For a rung's choice: how it does so with arrays of these layouts.
std::string windows_tf32_in_words(const Windows& windows, Layout source, Layout weights);

/// Channels rounded up to a multiple of 4, 16 bytes, as TMA needs.
inline int padded_channels(int channels) { return ceil_div(channels, 4) * 4; }

/// Floats of a source whose channels are innermost, padded in each group.
inline std::int64_t packed_source_floats(const Windows& windows) {
  const std::int64_t pixels = std::int64_t{windows.N} * windows.H * windows.W;
  return pixels * windows.groups * padded_channels(windows.group_c);
}

/// Copies an nchw source into that form.
void launch_pack_source(const Windows& windows, const float* source, float* packed);

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
