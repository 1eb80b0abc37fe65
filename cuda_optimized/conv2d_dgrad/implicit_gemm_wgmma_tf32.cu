/// @file implicit_gemm_wgmma_tf32.cu
/// @brief conv2d_dgrad with wgmma: a forward pass over dy for each residue of the stride.
///
/// - Before: implicit_gemm_mma_tf32.cu
/// - The kernel: cuda_optimized/conv2d/wgmma_windows.cuh
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** dx[h] gets a product from tap r if h = p * stride - pad + r * dilation for some p.
/// With stride 1 every tap reaches every pixel: a forward pass over dy with the taps in reverse
/// order. With a stride, which taps reach h depends on its residue alone; so the pixels of one
/// residue are a forward pass of their own, with stride 1 and some of the taps:
///
///     stride 2, 3 taps, pad 1   h  0   1   2   3   4   5
///     even h: tap 1 alone          1       1       1        dx[2i]     = w1 dy[i]
///     odd h:  taps 0 and 2            0 2     0 2     0 2   dx[2i + 1] = w2 dy[i] + w0 dy[i + 1]
///
/// No product is by a zero that the stride put in, and no two blocks add to the same pixel. The
/// kernel is that of \ref rung_cuda_optimized_conv2d_implicit_gemm_wgmma_tf32 "the forward pass"; a
/// small one first copies the weights of each residue as [c][taps][k].
///
/// **Expect.** The forward pass's times, and 3 to 8 us for the weights: B4 45 us, B10 590 us. The
/// limits are the forward pass's, too: shared memory for B4 and B9, the tensor cores for B10,
/// memory for B5 and B8, and few tiles for B6 and B7.
/// **Costs.** As the forward pass; two launches for each pair of residues that has taps. Pixels
/// that no tap reaches (B8: three of four) are zeroed by a memset of all of dx. Declined: fp32
/// problems, filters of over 1024 taps, and GPUs other than compute capability 9.0.
/// **Try.** For stride 3, dilation 2 and 4 taps, write down the taps of each residue. When do all
/// residues have the same number of taps?
#include <numeric>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/wgmma_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::Windows;

/// Along one axis, the pixels of dx whose number has the same residue modulo the stride.
struct Residue {
  int first;             ///< The first of those pixels.
  int count;             ///< How many there are.
  int taps;              ///< How many taps reach them; may be 0.
  int tap, tap_step;     ///< The first of these taps in w, and from one to the next.
  int window, dilation;  ///< Where in dy the first pixel's window begins, and its taps' distance.
};

/// For each residue of an axis. A tap r reaches pixel h from p = (h + pad - r * dilation) / stride
/// where that is a whole number.
std::vector<Residue> residues(int size, int pad, int stride, int dilation, int all_taps) {
  const int common = std::gcd(stride, dilation), tap_step = stride / common;
  std::vector<Residue> list;
  for (int first = 0; first < std::min(stride, size); ++first) {
    int tap = 0;
    const auto reaches = [&] {
      return (first + std::int64_t{pad} - std::int64_t{tap} * dilation) % stride == 0;
    };
    while (tap < std::min(tap_step, all_taps) && !reaches()) ++tap;
    const bool any = tap < std::min(tap_step, all_taps);
    const int taps = any ? ceil_div(all_taps - tap, tap_step) : 0;
    // Larger taps come from smaller p: the last tap is the first of the window.
    const std::int64_t last = tap + (taps - 1) * std::int64_t{tap_step};
    list.push_back({.first = first,
                    .count = ceil_div(size - first, stride),
                    .taps = taps,
                    .tap = tap,
                    .tap_step = tap_step,
                    .window = any ? static_cast<int>((first + pad - last * dilation) / stride) : 0,
                    .dilation = dilation / common});
  }
  return list;
}

/// One pair of residues: a forward pass over dy with some of the taps, in reverse order.
struct Class {
  Residue h, w;
  Windows windows;
  std::int64_t weights;  ///< floats in the workspace before its weights
};

struct Plan {
  std::vector<Class> classes;
  bool all_pixels = true;    ///< some tap reaches every pixel of dx
  bool packs = false;        ///< dy is copied into the workspace
  std::int64_t weights = 0;  ///< floats of all classes' weights
  std::int64_t dy = 0;       ///< floats of the copy
  std::int64_t parts = 0;    ///< floats of sums in parts
};

Plan plan_of(const Conv2dProblem& conv) {
  Plan plan;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  bool all_fit = true;
  for (const Residue& h : residues(conv.H, conv.pad.top, conv.stride.h, conv.dilation.h, conv.R)) {
    for (const Residue& w :
         residues(conv.W, conv.pad.left, conv.stride.w, conv.dilation.w, conv.S)) {
      if (h.taps == 0 || w.taps == 0) {
        plan.all_pixels = false;
        continue;
      }
      const Windows windows = {.layout = conv.layout,
                               .N = conv.N,
                               .P = h.count,
                               .Q = w.count,
                               .K = conv.C,
                               .groups = conv.groups,
                               .H = conv.P,
                               .W = conv.Q,
                               .group_c = group_k,
                               .R = h.taps,
                               .S = w.taps,
                               .first = {h.window, w.window},
                               .stride = {1, 1},
                               .dilation = {h.dilation, w.dilation},
                               .out_H = conv.H,
                               .out_W = conv.W,
                               .out_first = {h.first, w.first},
                               .out_stride = conv.stride};
      plan.classes.push_back({h, w, windows, plan.weights});
      plan.weights += ceil_div(std::int64_t{conv.groups} * group_c * h.taps * w.taps *
                                   conv2d::padded_channels(group_k),
                               std::int64_t{64}) *
                      64;
      all_fit = all_fit && conv2d::fits_the_copy_engine(windows);
      plan.parts = std::max(plan.parts, conv2d::part_floats(windows));
      plan.dy = conv2d::packed_source_floats(windows);
    }
  }
  // Where no tap reaches any pixel there is no class, and dx is zero.
  plan.packs = conv.layout == Layout::nchw && all_fit && !plan.classes.empty();
  if (!plan.packs) plan.dy = 0;
  return plan;
}

/// Copies the class's weights: w[k][c][tap] becomes [c][taps, the last one first][k].
void pack_weights(const Conv2dProblem& conv, const Class& part, int padded, const float* weights,
                  float* packed) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const bool nchw = conv.layout == Layout::nchw;
  const std::int64_t filter = std::int64_t{conv.R} * conv.S * group_c;
  const std::int64_t tap = nchw ? 1 : group_c, row = tap * conv.S;
  const std::int64_t packed_c = std::int64_t{part.h.taps} * part.w.taps * padded;
  const std::int64_t last_r = part.h.tap + (part.h.taps - 1) * std::int64_t{part.h.tap_step};
  const std::int64_t last_s = part.w.tap + (part.w.taps - 1) * std::int64_t{part.w.tap_step};
  gemm::launch_transpose(
      {.axes = {{.count = conv.groups, .from = group_k * filter, .to = group_c * packed_c},
                {.count = part.h.taps,
                 .from = -part.h.tap_step * row,
                 .to = std::int64_t{part.w.taps} * padded},
                {.count = part.w.taps, .from = -part.w.tap_step * tap, .to = padded}},
       .rows = group_k,
       .columns = group_c,
       .from_row = filter,
       .from_column = nchw ? std::int64_t{conv.R} * conv.S : 1,
       .to_row = packed_c,
       .padded = padded},
      weights + last_r * row + last_s * tap, packed);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (const Declined why = conv2d::why_no_windows(conv)) return why;
  return gemm::why_no_wgmma();
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Plan plan = plan_of(conv);
  return static_cast<std::size_t>(plan.weights + plan.dy + plan.parts) * sizeof(float);
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const Plan plan = plan_of(conv);
  const std::int64_t size = std::int64_t{conv.N} * conv.C * conv.H * conv.W;
  if (size == 0) return;
  const int group_k = conv.K / conv.groups;
  const float *dy = arrays.in<float>("dy"), *weights = arrays.in<float>("weights");
  float* dx = arrays.out<float>("dx");
  float* packed_weights = arrays.workspace<float>();
  float* packed_dy = packed_weights + plan.weights;
  if (!plan.all_pixels) {
    check(cudaMemsetAsync(dx, 0, static_cast<std::size_t>(size) * sizeof(float)));
  }
  if (plan.packs) conv2d::pack_source(plan.classes.front().windows, dy, packed_dy);
  for (const Class& part : plan.classes) {
    Windows windows = part.windows;
    // If dy is read as it is, the weights have its number of channels; if it is copied, both are
    // padded.
    const int padded = plan.packs ? conv2d::padded_channels(group_k) : group_k;
    windows.group_c = padded;
    pack_weights(conv, part, padded, weights, packed_weights + part.weights);
    conv2d::launch_windows(windows, {.source = plan.packs ? packed_dy : dy,
                                     .weights = packed_weights + part.weights,
                                     .bias = nullptr,
                                     .source_layout = plan.packs ? Layout::nhwc : conv.layout,
                                     .weights_layout = Layout::nhwc,
                                     .out = dx,
                                     .parts = packed_dy + plan.dy});
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Plan plan = plan_of(conv);
  if (plan.classes.empty()) return "zeros";
  std::string first;
  bool all_alike = true;
  for (const Class& part : plan.classes) {
    Windows windows = part.windows;
    if (plan.packs) windows.group_c = conv2d::padded_channels(windows.group_c);
    const std::string words =
        in_words(windows, plan.packs ? Layout::nhwc : conv.layout, Layout::nhwc);
    if (first.empty()) first = words;
    all_alike = all_alike && words == first;
  }
  return text(plan.packs ? "repacked, " : "", first, all_alike ? "" : ", classes differ",
              plan.classes.size() == 1 ? ", one class" : ", several classes",
              plan.all_pixels ? "" : ", zeros between them");
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_wgmma_tf32() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
