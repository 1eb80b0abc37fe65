/// @file window_classes.cuh
/// @brief The input gradient as sums over windows of dy: one forward pass for each residue of the
/// stride, with the weights that belong to it.
#pragma once

#include <algorithm>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_packing.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"
#include "cuda_optimized/gemm/shared/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

using conv2d::Windows;

/// The pixels of one residue: a forward pass over dy with some of the taps, in reverse order.
struct WindowClass {
  ResidueClass residue;  ///< its pixels and taps
  Windows windows;       ///< the forward pass
  std::int64_t weights;  ///< floats of the weights before its own
};

/// Where the windows of a class begin along an axis, if its taps go upwards. Larger taps come from
/// smaller positions of dy: the last tap is the first of the window.
inline int first_of(const ClassAxis& axis) {
  return static_cast<int>(axis.start + (axis.taps - 1) * std::int64_t{axis.move});
}

/// The forward pass of a class that some tap reaches.
inline Windows windows_of(const Conv2dProblem& conv, const ResidueClass& residue,
                          const conv2d::WindowProduct& product) {
  Windows windows = conv2d::windows_of(product, conv.layout);
  windows.first = {first_of(residue.h), first_of(residue.w)};
  windows.dilation = {-residue.h.move, -residue.w.move};
  windows.out_H = conv.H;
  windows.out_W = conv.W;
  windows.out_stride = conv.stride;
  return windows;
}

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
inline ClassesPlan plan_of(const Conv2dProblem& conv) {
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
    all_fit = all_fit && conv2d::fits_the_copy_engine(windows);
    plan.parts = std::max(plan.parts, conv2d::part_floats(windows));
    plan.dy = conv2d::packed_source_floats(windows);
  });
  // Where no tap reaches any pixel there is no class, and dx is zero.
  plan.packs = conv.layout == Layout::nchw && all_fit && !plan.classes.empty();
  if (!plan.packs) plan.dy = 0;
  return plan;
}

/// Copies the class's weights: w[k][c][tap] becomes [c][taps, the last one first][k].
inline void pack_weights(const Conv2dProblem& conv, const WindowClass& part, int padded,
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

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
