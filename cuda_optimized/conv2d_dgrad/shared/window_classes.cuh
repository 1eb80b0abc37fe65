/// @file window_classes.cuh
/// @brief The input gradient as sums over windows of dy: one forward pass with stride 1 for each
/// residue class of pixels, with those taps of the filter that reach it, in reverse order.
#pragma once

#include <algorithm>
#include <vector>

#include "cuda_optimized/conv2d/shared/wgmma/windows.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

using conv2d::HalfProduct;
using conv2d::Windows;

/// The forward pass over dy of a class that some tap reaches.
inline Windows windows_of(const Conv2dProblem& conv, const ResidueClass& residue,
                          const conv2d::WindowProduct& product) {
  // Where the windows begin. Larger taps come from smaller positions of dy: the last tap is the
  // first one of the window.
  const auto first = [](const ClassAxis& axis) {
    return static_cast<int>(axis.start + (axis.taps - 1) * std::int64_t{axis.move});
  };
  return {.layout = conv.layout,
          .N = conv.N,
          .P = product.rows,
          .Q = product.columns,
          .K = conv.C,
          .groups = conv.groups,
          .H = conv.P,
          .W = conv.Q,
          .group_c = conv.K / conv.groups,
          .R = product.R,
          .S = product.S,
          .first = {first(residue.h), first(residue.w)},
          .stride = {1, 1},
          .dilation = {-residue.h.move, -residue.w.move},
          .out_H = conv.H,
          .out_W = conv.W,
          .out_first = product.out_first,
          .out_stride = conv.stride};
}

/// The input gradient in half precision. The weights are read as the forward pass has them, and so
/// they are transposed: [groups][K/groups][R*S][C/groups].
struct HalfClasses {
  std::vector<HalfProduct> products;  ///< of the classes that a tap reaches
  bool all_pixels = true;             ///< some tap reaches every pixel of dx
  std::int64_t parts = 0;             ///< floats of the workspace

  /// Of all classes.
  explicit HalfClasses(const Conv2dProblem& conv) {
    for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& product) {
      const auto& [h, w] = residue;
      if (h.taps == 0 || w.taps == 0) {
        all_pixels = false;
        return;
      }
      products.push_back({.dtype = conv.dtype,
                          .windows = conv2d::in_words(windows_of(conv, residue, product)),
                          .group_c = conv.K / conv.groups,
                          .transposed = true,
                          .filter_taps = conv.R * conv.S,
                          .taps = {.last_r = h.first_tap + (h.taps - 1) * h.tap_step,
                                   .step_r = h.tap_step,
                                   .last_s = w.first_tap + (w.taps - 1) * w.tap_step,
                                   .step_s = w.tap_step,
                                   .S = conv.S}});
      parts = std::max(parts, conv2d::part_floats(products.back().windows));
    });
  }
};

/// With stride 1, all pixels are one class: the product of the whole gradient.
inline HalfProduct product_of(const Conv2dProblem& conv) {
  return HalfClasses(conv).products.front();
}

/// Why the gradient is not one product in half precision, if so.
inline Declined why_not_one_product(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: else each residue class of pixels has halo tiles of its own";
  return {};
}

/// What a product reads and writes.
inline conv2d::HalfArrays arrays_of(const Conv2dDgradArrays& arrays) {
  return {.source = arrays.dy, .weights = arrays.weights, .bias = nullptr, .out = arrays.dx};
}

/// What the rungs whose classes have plans of their own say of them. @param words of each class
inline std::string classes_in_words(const std::vector<std::string>& words, bool all_pixels) {
  if (words.empty()) return "zeros";
  const bool alike = std::count(words.begin(), words.end(), words[0]) == std::ssize(words);
  return text(words[0], alike ? "" : ", classes differ",
              words.size() == 1 ? ", one class" : ", several classes",
              all_pixels ? "" : ", zeros between them");
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
