/// @file channel_bias.hpp
/// @brief A bias per channel, added to a complete result: for rungs that do not fuse it.
#pragma once

#include <cstdint>

#include "core/half.hpp"
#include "core/types.hpp"

namespace convladder {

/// y, `count` elements of float, Half or BFloat16, and the bias. Element i belongs to channel i /
/// step % channels; it becomes y[i] + bias of that channel, computed in float and rounded once to
/// the type.
struct ChannelBias {
  void* y;             ///< [count], in place
  DType dtype;         ///< element type of y
  std::int64_t count;  ///< elements of y
  std::int64_t step;   ///< distance between channels in elements: H * W; 1 with channels innermost
  int channels;        ///< channels of y
  const float* bias;   ///< [channels]
};

/// Element i of y, of type T, plus its bias.
template <class T>
HOST_DEVICE inline void add_bias_to(const ChannelBias& to, std::int64_t i) {
  T* const y = static_cast<T*>(to.y) + i;
  *y = rounded_to<T>(to_float(*y) + to.bias[i / to.step % to.channels]);
}

/// In host memory.
void add_channel_bias(const ChannelBias& to);

// core/cuda/channel_bias.cu is compiled once for each; the kernels run in the run's stream.
namespace emulated {
/// In cuda_on_cpu's memory.
void add_channel_bias(const ChannelBias& to);
}  // namespace emulated

namespace gpu {
/// In the GPU's memory.
void add_channel_bias(const ChannelBias& to);
}  // namespace gpu

}  // namespace convladder
