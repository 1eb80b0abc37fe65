/// @file implicit_gemm_wgmma_tf32.cu
/// @brief conv2d with Hopper's instructions: the copy engine finds the windows, wgmma multiplies.
///
/// - Before: implicit_gemm_mma_tf32.cu
/// - The kernel: wgmma_windows.cuh, cuda_optimized/gemm/wgmma_tile.cuh
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The product of \ref rung_cuda_optimized_gemm_wgmma_tf32 "gemm/wgmma_tf32", with
/// pixels as rows, filters as columns and (r, s, c) along k. In NHWC the channels of a pixel lie
/// side by side, so 32 of them are a row of a stage. The copy engine has a mode for the rest: it
/// loads a box of pixels, those where windows begin, along w, then h, then n, shifted by an offset,
/// the tap. A convolution then needs no index arithmetic after the first pixel of a tile.
///
///     first windows    -pad .. W + pad - window         one load: 128 pixels, shifted by (r, s)
///     + - - - - - +
///     | o o o o   |    o: where windows begin,           o->  o->  o->  o->   32 channels each,
///     | o o o o   |       `stride` apart                 o->  o->  o->  o->   zeros in the padding
///     + - - - - - +
///
/// **Expect.** What limits differs. With 64 filters (B4, B9) a value of x in shared memory serves
/// 64 multiply-adds, and shared memory's 128 bytes a cycle are the limit; with 512 (B10) it is the
/// tensor cores: 330 to 390 TFLOP/s, 0.6 to 0.7 ms. 1 x 1 filters (B5, B8) wait for memory. B6 and
/// B7 have fewer large tiles than the GPU has SMs: smaller tiles, or sums in parts.
/// **Costs.** nchw arrays are transposed first. What the engine cannot take (stride over 8, padding
/// over 128, channels of a group not in fours) the producer warp gathers: right, and slow. Loads
/// always bring 32 channels: a depthwise convolution wastes 31. Declined: fp32 problems, filters of
/// over 1024 taps, the map stream_k, GPUs other than compute capability 9.0.
/// **Try.** Walk along k with the taps inside and the channels outside. Are there more or fewer
/// bytes from L2, and is it faster?
#include "core/conv2d_problem.hpp"
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
          .out_stride = {1, 1},
          .activation = conv.activation,
          .map = conv.map};
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
  if (const Declined why = why_no_windows(conv)) return why;
  if (const Declined why = gemm::why_no_wgmma()) return why;
  switch (conv.map) {
    case TileMap::row_major: return {};  // an order of its own, without a grid
    case TileMap::stream_k: return "the map stream_k: all tiles are cut into the same parts";
    default: return why_no_grid(smallest_tiles(windows_of(conv)));
  }
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

std::string choice_in_words(const Conv2dProblem& conv) {
  Windows windows = windows_of(conv);
  if (!repacks(conv)) return in_words(windows, conv.layout, conv.layout);
  windows.group_c = padded_channels(windows.group_c);
  return text("repacked, ", in_words(windows, Layout::nhwc, Layout::nhwc));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_wgmma_tf32() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
