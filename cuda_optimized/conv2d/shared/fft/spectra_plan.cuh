/// @file spectra_plan.cuh
/// @brief Where the real tiles of fft/3xtf32.cu lie, and how large its products are.
#pragma once

#include <limits>

#include "core/conv2d_problem.hpp"
#include "cuda_optimized/conv2d/shared/fft/real_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// How outputs are divided, and the sizes of the products: of each frequency and group, a complex
/// matrix of m x n from m x k and k x n.
struct SpectraPlan {
  int rows, columns;      ///< Outputs that are kept of a tile.
  int down, across;       ///< Tiles of an image.
  std::int64_t tiles;     ///< Of all images.
  bool tensor_cores;      ///< They compute the products, of whole tiles: filled up with zeros.
  std::int64_t m, n, k;   ///< Filters, tiles and channels.
  std::int64_t products;  ///< Frequencies times groups.

  /// Of the convolution.
  HOST_DEVICE int groups() const { return static_cast<int>(products / RealTile::kFrequencies); }
  /// The first output of a tile.
  struct Place {
    int n, p, q;  ///< image, row and column of y
  };
  /// Of tile `tile`.
  __device__ Place place_of(unsigned tile) const {
    const unsigned row = tile / static_cast<unsigned>(across);
    const unsigned image = row / static_cast<unsigned>(down);
    return {static_cast<int>(image),
            static_cast<int>(row - image * static_cast<unsigned>(down)) * rows,
            static_cast<int>(tile - row * static_cast<unsigned>(across)) * columns};
  }

  explicit SpectraPlan(const Conv2dProblem& conv);  ///< Of one that is taken.
};

/// Pixels that a filter reaches over.
inline std::int64_t reach_of(int taps, int dilation) {
  return std::int64_t{taps - 1} * dilation + 1;
}

inline SpectraPlan::SpectraPlan(const Conv2dProblem& conv)
    : rows(RealTile::kSide + 1 - static_cast<int>(reach_of(conv.R, conv.dilation.h))),
      columns(RealTile::kSide + 1 - static_cast<int>(reach_of(conv.S, conv.dilation.w))),
      down(ceil_div(conv.P, rows)), across(ceil_div(conv.Q, columns)),
      tiles(std::int64_t{conv.N} * down * across),
      products(std::int64_t{RealTile::kFrequencies} * conv.groups) {
  // Below so many, the tensor cores' tiles would be zeros for the most part.
  constexpr int kFewFilters = 8, kFewChannels = 8, kFewTiles = 16;
  const std::int64_t filters = conv.K / conv.groups, channels = conv.C / conv.groups;
  tensor_cores = filters >= kFewFilters && channels >= kFewChannels && tiles >= kFewTiles &&
                 !gemm::why_no_wgmma();
  const auto up = [&](std::int64_t extent, int to) {
    return tensor_cores ? ceil_div<std::int64_t>(extent, to) * to : extent;
  };
  m = up(filters, 64), n = up(tiles, RealTile::kTiles), k = up(channels, 32);
}

/// Nothing, or why real tiles are no way to compute it.
inline Declined why_no_real_tiles(const Conv2dProblem& conv) {
  constexpr int kMostTaps = RealTile::kSide / 2 + 1;  // half of a line is kept
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (reach_of(conv.R, conv.dilation.h) > kMostTaps ||
      reach_of(conv.S, conv.dilation.w) > kMostTaps)
    return "filters that reach over at most 9 pixels only";
  // Tiles may end beyond y by less than one, and rows of the products beyond what there is.
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() - 1024;
  if (conv.P > kMost || conv.Q > kMost) return "an extent of 2^31 - 1024 or more";
  const SpectraPlan plan(conv);
  if (plan.tiles > kMost) return "2^31 - 1024 or more tiles";
  if (plan.products > kMost / 3 / std::max(plan.m, plan.k)) return "2^31 or more rows of U or V";
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
