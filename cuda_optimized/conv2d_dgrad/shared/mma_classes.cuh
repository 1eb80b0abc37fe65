/// @file mma_classes.cuh
/// @brief The input gradient in NHWC and half precision as products for mma.sync: one for each
/// residue class of pixels; cuda_optimized/conv2d_dgrad/implicit_gemm/mma.cu explains them.
#pragma once

#include <algorithm>

#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves_plan.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

using conv2d::GatheredGemm;
using conv2d::HalfPlan;

inline constexpr int kHalfClasses = 4;  ///< Of a grid, at most: all that stride 2 has.

/// The classes that a grid computes.
struct HalfClasses {
  GatheredGemm of[kHalfClasses];  ///< the first `count` are used
  int count;                      ///< classes
  int weights_channel;            ///< from a weight to that of the next channel of dy

  /// Pixels of the largest class.
  std::int64_t most_pixels() const {
    std::int64_t most = 0;
    for (int i = 0; i < count; ++i) most = std::max(most, of[i].pixels());
    return most;
  }
};

/// The product of a class, with the weights [K][R][S][C/groups] as they are.
inline GatheredGemm half_product_of(const Conv2dProblem& conv, const ResidueClass& residue,
                                    const conv2d::WindowProduct& window) {
  const int columns = conv.C / conv.groups;
  const std::int64_t row = std::int64_t{conv.S} * columns;
  GatheredGemm product = gathered_gemm(
      window, {.group = conv.K / conv.groups * conv.R * row,
               .first = residue.h.first_tap * row + residue.w.first_tap * std::int64_t{columns},
               .r = residue.h.tap_step * row,
               .s = residue.w.tap_step * std::int64_t{columns},
               .f = 1});
  product.out_H = conv.H;
  product.out_W = conv.W;
  product.out_stride = conv.stride;
  return product;
}

/// Whether the weights can be copied in vectors, if they begin at a multiple of 16 bytes.
inline bool rows_in_vectors(const Conv2dProblem& conv) {
  return conv.C / conv.groups % conv2d::kVector == 0;
}

/// The plan of a problem: that of its first class, which has most pixels, for all classes.
inline HalfPlan half_plan_of(const Conv2dProblem& conv) {
  const ResidueClass residue(conv, 0, 0);
  const GatheredGemm product = half_product_of(conv, residue, residue.product(conv, 0, 0));
  const int classes = std::min(conv.stride.h, conv.H) * std::min(conv.stride.w, conv.W);
  return conv2d::plan_halves(product, std::min(classes, kHalfClasses),
                             conv2d::in_vectors(product) && rows_in_vectors(conv));
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
