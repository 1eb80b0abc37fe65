/// @file gathered_product.cuh
/// @brief The tiles of a convolution's product, in NCHW. The forward pass and the input gradient
/// share it.
#pragma once

#include <algorithm>

#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A product with its tiles, as the kernels of the rungs in NCHW see it.
struct GatheredProduct : WindowProduct {
  bool table = false;              ///< steps along k are (c, r, s); otherwise (r, s, c)
  int m_tiles = 0, n_tiles = 0;    ///< blocks along the channels, and along the pixels
  int steps = 0;                   ///< of T::kBlockK products each; 0 where there are no taps
  int k_rows = 0;                  ///< steps * T::kBlockK
  int padded_m = 0, padded_c = 0;  ///< filters and channels, rounded up to whole tiles
  FastDivision by_image = {};      ///< by rows * columns
  FastDivision by_row = {};        ///< by columns

  /// Floats of the packed weights.
  HOST_DEVICE std::int64_t packed_floats() const {
    return std::int64_t{groups} * k_rows * padded_m;
  }
};

/// Why a product whose sides are rounded up to whole tiles does not fit 31 bits.
inline Declined why_no_padded_product(std::int64_t filters, std::int64_t group_c,
                                      std::int64_t taps) {
  if (filters > 0x7fff0000) return "more than 2^31 - 2^16 filters, which tiles round up";
  if ((group_c + 31) * taps > 0x7fffffff) {
    return "a filter, its channels rounded up to 32, has 2^31 weights or more";
  }
  return {};
}

/// The product with its tiles, for blocks of T::kBlockM x T::kBlockN sums.
/// @param table whether steps along k are (c, r, s)
template <class T>
GatheredProduct planned(const WindowProduct& unplanned, bool table) {
  GatheredProduct product{unplanned};
  const int taps = product.R * product.S;
  product.table = table;
  product.m_tiles = ceil_div(product.filters, T::kBlockM);
  product.n_tiles = ceil_div(product.pixels(), T::kBlockN);
  product.padded_m = product.m_tiles * T::kBlockM;
  product.padded_c = ceil_div(product.channels, T::kBlockK) * T::kBlockK;
  product.steps =
      table ? ceil_div(product.channels * taps, T::kBlockK) : product.padded_c / T::kBlockK * taps;
  product.k_rows = product.steps * T::kBlockK;
  product.by_image = FastDivision(std::max(1, product.image_pixels()));
  product.by_row = FastDivision(std::max(1, product.columns));
  return product;
}

/// Where the sums of a block belong.
struct BlockPlace {
  int m, n;   ///< the first channel, counted within the group, and the first pixel
  int group;  ///< which group of channels
  int split;  ///< which part of the steps along k
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
