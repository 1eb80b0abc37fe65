/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d_dgrad in NHWC on the tensor cores: the forward pass's kernel on turned filters.
///
/// - Before: implicit_gemm_cp_async.cu
/// - After: implicit_gemm_wgmma_tf32.cu
/// - The kernel: cuda_optimized/conv2d/gathered_gemm_mma.cuh
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the input gradient is a convolution of dy: pixel h of dx takes pixel
/// p = h + pad - r * dilation of dy, so the taps walk backwards, and the sum runs over the output
/// channels. Nothing has to be flipped in memory: the step from tap to tap is negative. A small
/// kernel transposes the weights w[k][r][s][c], so that k is fastest, and rounds them to TF32. Then
/// a filter lies along the sums, as in the forward pass, and ldmatrix loads its fragments.
///
/// With a stride, h + pad - r * dilation must be a multiple of it. All pixels with the same
/// h % stride have the same taps, so they form a class of their own, dense again:
///
///     stride 2, 3 taps, pad 1    h = 0 2 4 ...   taps r = 1       from p = h/2
///                                h = 1 3 5 ...   taps r = 0, 2    from p = (h + 1)/2, (h - 1)/2
///
/// Each class is one launch. No product is by a zero that the stride put in.
///
/// **Expect.** As many products as the forward pass, at its speed: 1150 us for B10. Transposing its
/// 9.4 MB of weights takes 5 us at 4 TB/s.
/// **Costs.** With a stride, smaller launches one after the other, whose sums are not split. All
/// else as in the forward rung; copies of 16 bytes need output channels in fours.
/// **Try.** Launch all classes at once, with the class in blockIdx.z. What does B8 gain?
#include <numeric>

#include "core/conv2d_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/gathered_gemm_mma.cuh"
#include "cuda_optimized/gemm/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::GatheredGemm;
using conv2d::GatheredPlan;

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

/// The product of a class. Its weights are w as [groups][R][S][C/groups][K/groups].
GatheredGemm product_of(const Conv2dProblem& conv, const Class& h, const Class& w) {
  const int channels = conv.K / conv.groups, filters = conv.C / conv.groups;
  const std::int64_t weights_s = std::int64_t{filters} * channels, weights_r = conv.S * weights_s;
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
          .weights_group = conv.R * weights_r,
          .weights_first = h.tap_first * weights_r + w.tap_first * weights_s,
          .weights_r = h.tap_step * weights_r,
          .weights_s = w.tap_step * weights_s,
          .weights_f = channels,
          .by_channels = FastDivision(channels),
          .by_taps_across = FastDivision(std::max(taps_across, 1)),
          .by_columns = FastDivision(w.count),
          .by_rows = FastDivision(h.count)};
}

std::int64_t products_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.R} * conv.S * (conv.K / conv.groups);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = conv2d::why_not_gathered(conv, products_of(conv))) return reason;
  if (products_of(conv) / (conv.K / conv.groups) * (conv.C / conv.groups) > conv2d::kMaxDepth) {
    return "filters of 2^31 weights and more";
  }
  return {};
}

/// Weights, and a few more so that what follows them begins at 16 bytes.
std::int64_t padded_weights_of(const Conv2dProblem& conv) {
  return ceil_div<std::int64_t>(products_of(conv) * conv.C, 4) * 4;
}

std::int64_t outputs_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.H * conv.W * conv.C;
}

/// Calls body(product, plan) for each class of pixels.
template <class Body>
void for_each_class(const Conv2dProblem& conv, const Body& body) {
  const int classes_h = std::min(conv.stride.h, conv.H),
            classes_w = std::min(conv.stride.w, conv.W);
  for (int i = 0; i < classes_h; ++i) {
    const Class h = class_of(i, conv.H, conv.pad.top, conv.stride.h, conv.dilation.h, conv.R);
    for (int j = 0; j < classes_w; ++j) {
      const Class w = class_of(j, conv.W, conv.pad.left, conv.stride.w, conv.dilation.w, conv.S);
      const GatheredGemm product = product_of(conv, h, w);
      // Parts are added up for the whole of dx.
      body(product, conv2d::plan_gathered(product, classes_h * classes_w == 1));
    }
  }
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  std::int64_t parts = 0;
  for_each_class(conv, [&](const GatheredGemm&, const GatheredPlan& plan) {
    if (plan.splits > 1) parts = plan.splits * outputs_of(conv);
  });
  return static_cast<std::size_t>(padded_weights_of(conv) + parts) * sizeof(float);
}

/// dy [N][P][Q][K], weights [K][R][S][C/groups], dx [N][H][W][C].
void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* dy = arrays.in<float>("dy");
  const int channels = conv.K / conv.groups;
  const auto columns = static_cast<int>(products_of(conv) / channels * (conv.C / conv.groups));
  float* const turned = arrays.workspace<float>();
  const std::int64_t of_group = std::int64_t{channels} * columns;
  gemm::launch_transpose<gemm::Rounding::to_tf32>(
      {.axes = {{}, {}, {.count = conv.groups, .from = of_group, .to = of_group}},
       .rows = channels,
       .columns = columns,
       .from_row = columns,
       .from_column = 1,
       .to_row = channels,
       .padded = channels},
      arrays.in<float>("weights"), turned);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(dy) % 16 == 0;
  for_each_class(conv, [&](const GatheredGemm& product, const GatheredPlan& plan) {
    const bool in_fours = channels_in_fours(product) && is_aligned;
    conv2d::launch_gathered(product, plan, in_fours, dy, turned, nullptr,
                            turned + padded_weights_of(conv), outputs_of(conv),
                            arrays.out<float>("dx"));
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  std::string first;
  bool all_alike = true, without_taps = false;
  for_each_class(conv, [&](const GatheredGemm& product, const GatheredPlan& plan) {
    const std::string words = in_words(product, plan);
    if (first.empty()) first = words;
    all_alike = all_alike && words == first;
    without_taps = without_taps || product.R * product.S == 0;
  });
  return text(first, all_alike ? "" : ", classes differ", without_taps ? ", some without taps" : "",
              std::min(conv.stride.h, conv.H) == 1 && std::min(conv.stride.w, conv.W) == 1
                  ? ", one class"
                  : ", several classes");
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_mma_tf32() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
