/// @file wgmma_tf32.cu
/// @brief TF32 `wgmma`: each residue class of pixels is a forward pass over dy.
///
/// - Before: mma.cu
/// - After: warp_specialized.cu
/// - The kernels: cuda_optimized/conv2d/implicit_gemm/wgmma_tf32.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** dx[h] gets a product from tap r if h = p * stride - pad + r * dilation for some p.
/// With stride 1 every tap reaches every pixel: a forward pass over dy with the taps in reverse
/// order. With a stride, the taps that reach h depend on h modulo the stride alone; so the pixels
/// of one residue class are a forward pass of their own, with stride 1 and some of the taps:
///
///     stride 2, 3 taps, pad 1   h  0   1   2   3   4   5
///     even h: tap 1 alone          1       1       1        dx[2i]     = w1 dy[i]
///     odd h:  taps 0 and 2            0 2     0 2     0 2   dx[2i + 1] = w2 dy[i] + w0 dy[i + 1]
///
/// This file describes each class as windows of dy (shared/window_classes.cuh), and copies the
/// weights of each as [c][taps][k]. The kernel is the forward pass's, whose main loop is
///
///     for step = (r, s, 32 channels k of dy):     accumulators[i][c] += dy[window i][k] * w[c][k]
///
/// **Expect.** The forward pass's times and limits, and 3 to 8 us for the weights: B4 45 us, B10
/// 590 us.
/// @expect on --n 1 --c 32 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect requests.shared.async 2 * 18 * 2 = 72, two tiles, 18 steps, two boxes
/// @expect lanes_per_request.shared.async 1, one thread issues the copy of a box
/// @expect loads_per_output.weights 9 * 64 * 32 / 8192 = 2.25, transposed once
/// @expect loads_per_output.global 2.25, nothing else is loaded by threads
/// **Costs.** As the forward pass; two launches for each residue class that has taps. Pixels that
/// no tap reaches (B8: three of four) are set to zero by a memset of dx. Not supported: fp32
/// problems, filters of over 1024 taps, and GPUs other than sm_90a.
/// **Try.** For stride 3, dilation 2 and 4 taps, write down the taps of each residue class. When do
/// all classes have the same number of taps?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/implicit_gemm/wgmma_tf32.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"
#include "cuda_optimized/gemm/shared/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

/// The pixels of one residue: a forward pass over dy with some of the taps, in reverse order.
struct WindowClass {
  ResidueClass residue;  ///< its pixels and taps
  Windows windows;       ///< the forward pass
  std::int64_t weights;  ///< floats of the weights before its own
};

/// How an input gradient is computed.
struct ClassesPlan {
  std::vector<WindowClass> classes;  ///< those that a tap reaches
  bool all_pixels = true;            ///< some tap reaches every pixel of dx
  bool packs = false;                ///< dy is copied into the workspace
  std::int64_t weights = 0;          ///< floats of all classes' weights
  std::int64_t dy = 0;               ///< floats of the copy
  std::int64_t parts = 0;            ///< floats of sums in parts
};

/// All classes that a tap reaches, and the room for what they read.
ClassesPlan plan_of(const Conv2dProblem& conv) {
  ClassesPlan plan;
  bool all_fit = true;
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& product) {
    if (product.R == 0 || product.S == 0) {
      plan.all_pixels = false;
      return;
    }
    const Windows windows = windows_of(conv, residue, product);
    plan.classes.push_back({residue, windows, plan.weights});
    plan.weights += ceil_div(std::int64_t{product.out_channels()} * product.R * product.S *
                                 conv2d::padded_channels(product.channels),
                             std::int64_t{64}) *
                    64;
    all_fit = all_fit && conv2d::fits_im2col(windows);
    plan.parts = std::max(plan.parts, conv2d::part_floats(windows));
    plan.dy = conv2d::packed_source_floats(windows);
  });
  // Where no tap reaches any pixel there is no class, and dx is zero.
  plan.packs = conv.layout == Layout::nchw && all_fit && !plan.classes.empty();
  if (!plan.packs) plan.dy = 0;
  return plan;
}

/// Copies the class's weights: w[k][c][tap] becomes [c][taps, the last one first][k].
void pack_weights(const Conv2dProblem& conv, const WindowClass& part, int padded,
                  const float* weights, float* packed) {
  const auto& [h, w] = part.residue;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const bool nchw = conv.layout == Layout::nchw;
  const std::int64_t filter = std::int64_t{conv.R} * conv.S * group_c;
  const std::int64_t tap = nchw ? 1 : group_c, row = tap * conv.S;
  const std::int64_t packed_c = std::int64_t{h.taps} * w.taps * padded;
  const std::int64_t last_r = h.first_tap + (h.taps - 1) * std::int64_t{h.tap_step};
  const std::int64_t last_s = w.first_tap + (w.taps - 1) * std::int64_t{w.tap_step};
  gemm::launch_transpose(
      {.axes = {{.count = conv.groups, .from = group_k * filter, .to = group_c * packed_c},
                {.count = h.taps, .from = -h.tap_step * row, .to = std::int64_t{w.taps} * padded},
                {.count = w.taps, .from = -w.tap_step * tap, .to = padded}},
       .rows = group_k,
       .columns = group_c,
       .from_row = filter,
       .from_column = nchw ? std::int64_t{conv.R} * conv.S : 1,
       .to_row = packed_c,
       .padded = padded},
      weights + last_r * row + last_s * tap, packed);
}

/// The workspace, front to back.
struct Workspace {
  float *weights, *dy;  ///< Packed.
  float* parts;         ///< Of sums.
  std::size_t bytes;    ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const ClassesPlan& plan, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.weights = cutter.take<float>(plan.weights);
  work.dy = cutter.take<float>(plan.dy);
  work.parts = cutter.take<float>(plan.parts);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return workspace_at(plan_of(conv), nullptr).bytes;
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const ClassesPlan plan = plan_of(conv);
  const std::int64_t size = std::int64_t{conv.N} * conv.C * conv.H * conv.W;
  if (size == 0) return;
  const int group_k = conv.K / conv.groups;
  const float *dy = arrays.dy, *weights = arrays.weights;
  float* dx = arrays.dx;
  const Workspace work = workspace_at(plan, context.workspace_as<std::byte>());
  if (!plan.all_pixels) {
    check(cudaMemsetAsync(dx, 0, static_cast<std::size_t>(size) * sizeof(float), current_stream()));
  }
  if (plan.packs) conv2d::launch_pack_source(plan.classes.front().windows, dy, work.dy);
  for (const WindowClass& part : plan.classes) {
    Windows windows = part.windows;
    // If dy is read as it is, the weights have its number of channels; if it is copied, both are
    // padded.
    const int padded = plan.packs ? conv2d::padded_channels(group_k) : group_k;
    windows.group_c = padded;
    pack_weights(conv, part, padded, weights, work.weights + part.weights);
    conv2d::launch_windows_tf32(windows, {.source = plan.packs ? work.dy : dy,
                                          .weights = work.weights + part.weights,
                                          .bias = nullptr,
                                          .source_layout = plan.packs ? Layout::nhwc : conv.layout,
                                          .weights_layout = Layout::nhwc,
                                          .out = dx,
                                          .parts = work.parts});
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const ClassesPlan plan = plan_of(conv);
  std::vector<std::string> words;
  for (const WindowClass& part : plan.classes) {
    Windows windows = part.windows;
    if (plan.packs) windows.group_c = conv2d::padded_channels(windows.group_c);
    words.push_back(conv2d::windows_tf32_in_words(windows, plan.packs ? Layout::nhwc : conv.layout,
                                                  Layout::nhwc));
  }
  return text(plan.packs ? "repacked, " : "", classes_in_words(words, plan.all_pixels));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_wgmma_tf32 = {
    .supports = conv2d::why_no_tf32_windows,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
