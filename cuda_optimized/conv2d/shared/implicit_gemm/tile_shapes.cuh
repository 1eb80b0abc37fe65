/// @file tile_shapes.cuh
/// @brief Which block computes which tile of a convolution's product, and how large tiles are.
#pragma once

#include "cuda_optimized/conv2d/shared/implicit_gemm/gemm_sizes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The tile of a block, in a grid of all tiles. Blocks with the same pixels are neighbours: what
/// one of them gathers is in the L2 cache for the others.
struct TileOfBlock {
  int group;   ///< which group of filters
  int filter;  ///< the first one, counted within the group
  int pixel;   ///< the first one

  /// The tile of this block. T::kTileM x T::kTileN are a tile's filters and pixels.
  template <class T>
  __device__ static TileOfBlock find(const ProductSizes& sizes) {
    const int m_tiles = ceil_div(sizes.filters, T::kTileM);
    const auto n_tiles = static_cast<int>(ceil_div<std::int64_t>(sizes.pixels, T::kTileN));
    const Divided rest = divided(static_cast<int>(blockIdx.x), m_tiles);
    const Divided group = divided(rest.quotient, n_tiles);
    return {group.quotient, rest.remainder * T::kTileM, group.remainder * T::kTileN};
  }

  /// The grid.
  template <class T>
  static dim3 grid(const Conv2dProblem& conv) {
    const ProductSizes sizes(conv);
    const std::int64_t tiles =
        ceil_div<std::int64_t>(sizes.pixels, T::kTileN) * ceil_div(sizes.filters, T::kTileM);
    return dim3(static_cast<unsigned>(tiles * conv.groups));
  }
};

/// How large a block's tile is, filters x pixels.
enum class TileShape {
  large,  ///< 128 x 128
  half,   ///< 64 x 128, where half of the last large tile would be empty, or large ones are few
  small   ///< 32 x 32, where larger ones would be mostly empty, or too few
};

/// For a rung's choice.
inline const char* in_words(TileShape shape) {
  return shape == TileShape::large  ? "128 x 128"
         : shape == TileShape::half ? "64 x 128"
                                    : "32 x 32";
}

/// The shape that suits products of that many filters of a group, and pixels of all images.
inline TileShape shape_for(int filters, std::int64_t pixels, int groups) {
  constexpr std::int64_t kFewTiles = 64;  // an H200 has 132 SMs: most of them would be idle
  if (filters <= 32 || pixels < 1024) return TileShape::small;
  const int rest = filters % 128;  // filters of the last large tile
  const std::int64_t tiles = ceil_div<std::int64_t>(pixels, 128) * ceil_div(filters, 128);
  return (rest > 0 && rest <= 64) || tiles * groups <= kFewTiles ? TileShape::half
                                                                 : TileShape::large;
}
/// The shape that suits a problem's forward pass.
inline TileShape shape_for(const Conv2dProblem& conv) {
  const ProductSizes sizes(conv);
  return shape_for(sizes.filters, sizes.pixels, conv.groups);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
