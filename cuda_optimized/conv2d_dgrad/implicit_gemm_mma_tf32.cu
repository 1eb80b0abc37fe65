/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d_dgrad in NHWC on the tensor cores: the forward pass's kernel on turned filters.
///
/// - Before: implicit_gemm_cp_async.cu (float arithmetic, NCHW)
/// - After:  implicit_gemm_wgmma_tf32.cu (Hopper: the copy engine finds the windows)
/// - Made of: cuda_optimized/conv2d/gathered_gemm_mma.cuh
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the input gradient is a convolution of dy: pixel h of dx takes
/// p = h + pad - r * dilation of dy, so the taps walk backwards, and the sum runs over the output
/// channels. Nothing has to be flipped or transposed in memory: the tap's step is negative, and the
/// weights w[k][r][s][c] are staged along c, as gemm/mma_tf32.cu does with b.
///
/// With a stride, h + pad - r * dilation must be a multiple of it. All pixels with the same
/// (h + pad) % stride have the same taps, so they form a class of their own, dense again:
///
///     stride 2, 3 taps, pad 1    h = 0 2 4 ...   taps r = 1       from p = h/2
///                                h = 1 3 5 ...   taps r = 0, 2    from p = (h + 1)/2, (h - 1)/2
///
/// Each class is one launch: stride.h * stride.w of them, none of which multiplies by a zero that
/// the stride put there. A class without taps writes zeros.
///
/// **Expect.** As many products as the forward pass, at nearly its speed: the fragments of the
/// weights are loaded a float at a time.
/// **Costs.** With a stride, smaller launches one after the other. All else as in the forward rung;
/// 16-byte copies want output channels in fours, and input channels too.
/// **Try.** Launch all classes at once, with the class in blockIdx.z: what does B8 gain?
#include <numeric>

#include "core/rung.hpp"
#include "cuda_optimized/conv2d/gathered_gemm_mma.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::FastDivision;
using conv2d::GatheredGemm;
using Shapes = conv2d::GatheredShapes<conv2d::TileOrder::across_k>;

/// The pixels first, first + stride, ... of dx along one axis, and their taps.
struct Class {
  int first, count;     ///< `count` pixels
  int tap_first, taps;  ///< tap_first, tap_first + tap_step, ...: `taps` taps
  int tap_step;
  int source_first;  ///< row of dy that the first pixel's first tap reads; may be negative
  int source_step;   ///< from a tap's row to the next one's
};

Class class_of(int first, int size, int pad, int stride, int dilation, int taps) {
  Class found{};
  found.first = first;
  found.count = ceil_div(size - first, stride);
  const std::int64_t residue = (std::int64_t{first} + pad) % stride;
  // r * dilation % stride repeats every stride / gcd taps, and takes each value once in between.
  const int gcd = std::gcd(stride, dilation);
  found.tap_step = stride / gcd;
  found.source_step = -(dilation / gcd);
  int r = 0;
  while (r < taps && r < found.tap_step && std::int64_t{r} * dilation % stride != residue) ++r;
  if (r < taps && r < found.tap_step) {
    found.tap_first = r;
    found.taps = ceil_div(taps - r, found.tap_step);
    found.source_first =
        static_cast<int>(floor_div(std::int64_t{first} + pad - std::int64_t{r} * dilation, stride));
  }
  return found;
}

GatheredGemm product_of(const Conv2dProblem& conv, const Class& h, const Class& w) {
  const int channels = conv.K / conv.groups, filters = conv.C / conv.groups;
  const std::int64_t weights_s = filters, weights_r = conv.S * weights_s;
  const int taps_across = h.taps > 0 ? w.taps : 0;
  return {.N = conv.N,
          .rows = h.count,
          .columns = w.count,
          .first = {h.source_first, w.source_first},
          .stride = {1, 1},
          .H = conv.P,
          .W = conv.Q,
          .channels = channels,
          .source_channels = conv.K,
          .R = h.taps,
          .S = taps_across,
          .tap = {h.source_step, w.source_step},
          .filters = filters,
          .out_channels = conv.C,
          .out_H = conv.H,
          .out_W = conv.W,
          .out_first = {h.first, w.first},
          .out_stride = conv.stride,
          .groups = conv.groups,
          .weights_group = channels * conv.R * weights_r,
          .weights_first = h.tap_first * weights_r + w.tap_first * weights_s,
          .weights_r = h.tap_step * weights_r,
          .weights_s = w.tap_step * weights_s,
          .weights_c = conv.R * weights_r,
          .weights_f = 1,
          .by_channels = FastDivision(channels),
          .by_taps_across = FastDivision(std::max(taps_across, 1))};
}

Declined supports(const Conv2dProblem& conv) {
  return conv2d::why_not_gathered(conv, std::int64_t{conv.R} * conv.S * (conv.K / conv.groups));
}

/// dy [N][P][Q][K], weights [K][R][S][C/groups], dx [N][H][W][C].
void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* dy = arrays.in<float>("dy");
  const float* weights = arrays.in<float>("weights");
  const bool in_fours =
      conv.K / conv.groups % 4 == 0 && conv.C / conv.groups % 4 == 0 &&
      (reinterpret_cast<std::uintptr_t>(dy) | reinterpret_cast<std::uintptr_t>(weights)) % 16 == 0;
  for (int i = 0; i < std::min(conv.stride.h, conv.H); ++i) {
    const Class h = class_of(i, conv.H, conv.pad.top, conv.stride.h, conv.dilation.h, conv.R);
    for (int j = 0; j < std::min(conv.stride.w, conv.W); ++j) {
      const Class w = class_of(j, conv.W, conv.pad.left, conv.stride.w, conv.dilation.w, conv.S);
      Shapes::launch(product_of(conv, h, w), in_fours, dy, weights, nullptr,
                     arrays.out<float>("dx"));
    }
  }
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_mma_tf32() {
  return {.supports = supports, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
