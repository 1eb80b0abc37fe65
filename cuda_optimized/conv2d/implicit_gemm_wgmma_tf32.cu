/// @file implicit_gemm_wgmma_tf32.cu
/// @brief conv2d with Hopper's own instructions: the copy engine finds the windows, wgmma
/// multiplies.
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/wgmma_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

Windows windows_of(const Conv2dProblem& conv) {
  return {.layout = conv.layout,
          .N = conv.N,
          .P = conv.P,
          .Q = conv.Q,
          .K = conv.K,
          .groups = conv.groups,
          .H = conv.H,
          .W = conv.W,
          .group_c = conv.C / conv.groups,
          .R = conv.R,
          .S = conv.S,
          .first = {-conv.pad.top, -conv.pad.left},
          .stride = conv.stride,
          .dilation = conv.dilation,
          .out_H = conv.P,
          .out_W = conv.Q,
          .out_first = {0, 0},
          .out_stride = {1, 1}};
}

/// Whether x and weights are copied into the workspace first, with their channels innermost.
bool repacks(const Conv2dProblem& conv) {
  return conv.layout == Layout::nchw && fits_the_copy_engine(windows_of(conv));
}

std::int64_t packed_weights_floats(const Conv2dProblem& conv) {
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  return ceil_div(conv.K * taps * padded_channels(conv.C / conv.groups), std::int64_t{64}) * 64;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  return gemm::why_no_wgmma();
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Windows windows = windows_of(conv);
  std::int64_t floats = part_floats(windows);
  if (repacks(conv)) floats += packed_source_floats(windows) + packed_weights_floats(conv);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  Windows windows = windows_of(conv);
  float* workspace = arrays.workspace<float>();
  WindowArrays product = {.source = arrays.in<float>("x"),
                          .weights = arrays.in<float>("weights"),
                          .bias = arrays.in_or_null<float>("bias"),
                          .source_layout = conv.layout,
                          .weights_layout = conv.layout,
                          .out = arrays.out<float>("y"),
                          .parts = workspace};
  if (repacks(conv)) {
    const int padded = padded_channels(windows.group_c), taps = conv.R * conv.S;
    float* x = workspace;
    float* weights = x + packed_source_floats(windows);
    product.parts = weights + packed_weights_floats(conv);
    pack_source(windows, product.source, x);
    gemm::launch_transpose({.axes = {{.count = conv.K,
                                      .from = std::int64_t{windows.group_c} * taps,
                                      .to = std::int64_t{padded} * taps},
                                     {},
                                     {}},
                            .rows = windows.group_c,
                            .columns = taps,
                            .from_row = taps,
                            .from_column = 1,
                            .to_row = padded,
                            .padded = padded},
                           product.weights, weights);
    product.source = x;
    product.weights = weights;
    product.source_layout = product.weights_layout = Layout::nhwc;
    windows.group_c = padded;
  }
  launch_windows(windows, product);
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_wgmma_tf32() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
