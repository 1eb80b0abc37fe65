/// @file channel_bias.hpp
/// @brief A bias for each channel, added to a result that is complete: for rungs that have none.
#pragma once

#include <cstdint>

#include "core/half.hpp"
#include "core/types.hpp"

namespace convladder {

/// y, `count` numbers of float, Half or BFloat16, and what is added to each: number i is of channel
/// i / step % channels, and becomes y[i] + bias of that channel in float, rounded once to the type.
struct ChannelBias {
  void* y;             ///< [count], in place
  DType dtype;         ///< of y
  std::int64_t count;  ///< numbers of y
  std::int64_t step;   ///< from one channel to the next: H * W, with channels innermost 1
  int channels;        ///< of y
  const float* bias;   ///< [channels]
};

/// Number i of y, of type T, with its bias.
template <class T>
HOST_DEVICE inline void add_bias_to(const ChannelBias& to, std::int64_t i) {
  T* const y = static_cast<T*>(to.y) + i;
  *y = rounded_to<T>(to_float(*y) + to.bias[i / to.step % to.channels]);
}

/// In host memory.
void add_channel_bias(const ChannelBias& to);

// core/cuda/channel_bias.cu is compiled once for each; they launch in the run's stream.
namespace emulated {
/// In cuda_on_cpu's memory.
void add_channel_bias(const ChannelBias& to);
}  // namespace emulated

namespace gpu {
/// In the GPU's memory.
void add_channel_bias(const ChannelBias& to);
}  // namespace gpu

}  // namespace convladder
