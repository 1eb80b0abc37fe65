#include "core/conv2d_transpose.hpp"

#include "core/channel_bias.hpp"
#include "ladders/tables.hpp"

namespace convladder {
namespace {

/// The conv2d_dgrad problem that the rung computes; it has no bias.
Problem without_bias(const Problem& problem) {
  Conv2dProblem gradient = std::get<Conv2dProblem>(problem);
  gradient.bias = false;
  return gradient;
}

void add_bias(const Conv2dProblem& gradient, const Arguments& arguments,
              void (*add_channel_bias)(const ChannelBias&)) {
  if (!gradient.bias) return;
  Output y;
  arguments.find("y", y);
  void* const elements =
      with_float_type(gradient.dtype, [&]<class T>(T) -> void* { return y.as<T>(); });
  const std::int64_t plane = std::int64_t{gradient.H} * gradient.W;
  add_channel_bias({.y = elements,
                    .dtype = gradient.dtype,
                    .count = gradient.N * gradient.C * plane,
                    .step = gradient.layout == Layout::nchw ? plane : 1,
                    .channels = gradient.C,
                    .bias = arguments.in<float>("bias")});
}

/// Wraps the code of a conv2d_dgrad rung: x is passed as dy and y as dx. The bias is added after
/// the rung.
AnyImplementation transposed(const AnyImplementation& code,
                             void (*add_channel_bias)(const ChannelBias&)) {
  const auto of_gradient = [](const Arguments& arguments) {
    return arguments.renamed({{"x", "dy"}, {"y", "dx"}});
  };
  AnyImplementation result;
  result.supports = [=](const Problem& p) { return code.supports(without_bias(p)); };
  result.workspace_bytes = [=](const Problem& p) { return code.workspace_bytes(without_bias(p)); };
  result.run = [=](const Problem& p, const Arguments& arguments) {
    code.run(without_bias(p), of_gradient(arguments));
    in_stream(arguments.context().stream,
              [&] { add_bias(std::get<Conv2dProblem>(p), arguments, add_channel_bias); });
  };
  result.finish = [=](const Problem& p, const Arguments& arguments) {
    code.finish(without_bias(p), of_gradient(arguments));
  };
  result.tile = [=](const Problem& p) { return code.tile(without_bias(p)); };
  result.choice = [=](const Problem& p) { return code.choice(without_bias(p)); };
  return result;
}

}  // namespace

Ladder conv2d_transpose_alias() {
  Ladder alias = conv2d_dgrad_ladder();
  alias.name = "conv2d_transpose";
  alias.summary = "transposed 2-D convolution, computed by the rungs of conv2d_dgrad";
  alias.signature = [](const Problem& problem) {
    return conv2d_transpose_signature(std::get<Conv2dProblem>(problem));
  };
  for (Rung& rung : alias.rungs) {
    const auto wrap = [&](Where where, void (*add_channel_bias)(const ChannelBias&)) {
      auto& code = rung.code[static_cast<std::size_t>(where)];
      if (code) code = transposed(*code, add_channel_bias);
    };
    wrap(Where::cpu, add_channel_bias);
    wrap(Where::emulated, emulated::add_channel_bias);
#ifdef CONVLADDER_HAVE_NVCC
    wrap(Where::gpu, gpu::add_channel_bias);
#endif
  }
  return alias;
}

}  // namespace convladder
