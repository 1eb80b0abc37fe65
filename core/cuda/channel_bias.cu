/// @file channel_bias.cu
/// @brief The kernel of channel_bias.hpp.
#include "core/channel_bias.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Largest grid; larger problems are processed by a
                                              ///< grid-stride loop.

/// One thread per element of y. Launch with any one-dimensional grid.
template <class T>
__global__ void add_bias(ChannelBias to) {
  for (const std::int64_t i : grid_stride(to.count)) add_bias_to<T>(to, i);
}

}  // namespace

void add_channel_bias(const ChannelBias& to) {
  with_float_type(to.dtype, [&]<class T>(T) {
    launch(add_bias<T>, {blocks_for(to.count, kThreads, kMaxBlocks), kThreads}, to);
  });
}

}  // namespace convladder::BACKEND
