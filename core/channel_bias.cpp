#include "core/channel_bias.hpp"

void convladder::add_channel_bias(const ChannelBias& to) {
  with_float_type(to.dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < to.count; ++i) add_bias_to<T>(to, i);
  });
}
