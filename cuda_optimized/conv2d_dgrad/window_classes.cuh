/// @file window_classes.cuh
/// @brief The input gradient as sums over windows of dy: one forward pass for each residue of the
/// stride, with the weights that belong to it.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "cuda_optimized/conv2d/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/window_packing.cuh"
#include "cuda_optimized/conv2d/window_plan.cuh"
#include "cuda_optimized/gemm/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

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
inline std::vector<Residue> residues(int size, int pad, int stride, int dilation, int all_taps) {
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
struct WindowClass {
  Residue h, w;          ///< of its pixels' rows and columns
  Windows windows;       ///< the forward pass
  std::int64_t weights;  ///< floats in the workspace before its weights
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

/// All pairs of residues that a tap reaches, and the room for what they read.
inline ClassesPlan plan_of(const Conv2dProblem& conv) {
  ClassesPlan plan;
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
inline void pack_weights(const Conv2dProblem& conv, const WindowClass& part, int padded,
                         const float* weights, float* packed) {
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

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
