/// @file gathered_classes.cuh
/// @brief The input gradient in NHWC as products for the tensor cores: one for each class of pixels
/// that the same taps reach.
#pragma once

#include <algorithm>

#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_plan.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

using conv2d::GatheredGemm;
using conv2d::GatheredPlan;

/// The product of a class. Its weights are w as [groups][R][S][C/groups][K/groups].
inline GatheredGemm product_of(const Conv2dProblem& conv, const ResidueClass& residue,
                               const conv2d::WindowProduct& product) {
  const std::int64_t weights_s = std::int64_t{product.filters} * product.channels;
  const std::int64_t weights_r = conv.S * weights_s;
  GatheredGemm gemm = conv2d::gathered_gemm(
      product, {.group = conv.R * weights_r,
                .first = residue.h.first_tap * weights_r + residue.w.first_tap * weights_s,
                .r = residue.h.tap_step * weights_r,
                .s = residue.w.tap_step * weights_s,
                .f = product.channels});
  gemm.out_H = conv.H;
  gemm.out_W = conv.W;
  gemm.out_stride = conv.stride;
  return gemm;
}

/// Calls body(product, plan) for each class of pixels.
template <class Body>
void for_each_pixel_class(const Conv2dProblem& conv, const Body& body) {
  // Parts are added up for the whole of dx.
  const bool may_split = std::min(conv.stride.h, conv.H) * std::min(conv.stride.w, conv.W) == 1;
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& window) {
    const GatheredGemm product = product_of(conv, residue, window);
    body(product, conv2d::plan_gathered(product, may_split));
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
