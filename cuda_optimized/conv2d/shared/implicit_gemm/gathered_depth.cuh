/// @file gathered_depth.cuh
/// @brief Which steps of an NHWC convolution's sums a block adds up: those of its split that do not
/// lie in the padding.
#pragma once

#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Steps of k, from `begin` up to `end`.
struct Depth {
  int begin, end;  ///< indices k of the sums
};

/// The k of those filter rows that meet the source for any of the `count` pixels from m0 on; the
/// others lie in the padding, above or below. Filters almost as large as the image have many.
__device__ inline Depth depth_of(const GatheredGemm& product, std::int64_t m0, int count) {
  const int row_depth = product.S * product.channels;
  const Place from = place_of(product, m0), to = place_of(product, m0 + count - 1);
  const auto source_row = [&](int of) {
    return product.first.h + std::int64_t{of} * product.stride.h;
  };
  const std::int64_t top = source_row(from.n == to.n ? from.row : 0);
  const std::int64_t bottom = source_row(from.n == to.n ? to.row : product.rows - 1);
  const int step = product.tap.h;  // never 0; r * step must lie in [-bottom, H - 1 - top]
  const std::int64_t reach = std::int64_t{product.R - 1} * step;
  if (top >= 0 && top + reach >= 0 && bottom < product.H && bottom + reach < product.H) {
    return {0, product.R * row_depth};  // no division, which takes some hundred instructions
  }
  const std::int64_t r_begin =
      step > 0 ? -floor_div(bottom, step) : -floor_div(product.H - 1 - top, -step);
  const std::int64_t r_end =
      1 + (step > 0 ? floor_div(product.H - 1 - top, step) : floor_div(bottom, -step));
  const int begin = static_cast<int>(r_begin < 0 ? 0 : r_begin < product.R ? r_begin : product.R);
  const int end = static_cast<int>(r_end < begin ? begin : r_end < product.R ? r_end : product.R);
  return {begin * row_depth, end * row_depth};
}

/// The share of one of several splits of the steps, in whole stages.
__device__ inline Depth share_of(Depth depth, int split, int splits) {
  const int share = ceil_div(ceil_div(depth.end - depth.begin, kMmaStep), splits) * kMmaStep;
  const int begin = min(depth.begin + split * share, depth.end);
  return {begin, min(begin + share, depth.end)};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
