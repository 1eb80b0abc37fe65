/// @file winograd_gradient.cuh
/// @brief The transforms of F(3, 4) along a line of elements, and the products between them;
/// winograd/3xtf32.cu explains them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda_optimized/conv2d/winograd/4x4.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/split_k.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// F(3, 4), points 0, 1, -1, 2, -2 and infinity, with 3 G in place of G: see Winograd4, which has
/// the same points.
struct Gradient4 {
  static constexpr int kTile = 4, kN = 6;  ///< numbers of dy along an axis, products
  static constexpr int kScale = 3;         ///< how much larger than the weights the results are

  /// 3 G g of the first four elements, in place.
  __device__ static void times_g(float (&g)[kN]) {
    const float even1 = g[0] + g[2], odd1 = g[1] + g[3];
    const float even2 = g[0] + 4 * g[2], odd2 = 2 * g[1] + 8 * g[3];
    g[0] *= 0.75f;
    g[5] = 3 * g[3];
    g[1] = -(even1 + odd1) / 2, g[2] = -(even1 - odd1) / 2;
    g[3] = (even2 + odd2) / 8, g[4] = (even2 - odd2) / 8;
  }
  /// A^T m, in place: the first three are the result.
  __device__ static void times_a(float (&m)[kN]) {
    const float sum1 = m[1] + m[2], difference1 = m[1] - m[2];
    const float sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    m[0] += sum1 + sum2;
    m[1] = difference1 + 2 * difference2;
    m[2] = sum1 + 4 * sum2 + m[5];
  }
};

inline constexpr int kFilters = 32;        ///< Of a block: a warp has one tile of each.
inline constexpr int kBlockTiles = 16;     ///< Of a block that transforms dy.
inline constexpr int kWholeChannels = 64;  ///< What they are rounded up to: tiles of the product.
inline constexpr int kWholeTiles = 32;     ///< What tiles of dy are rounded up to: its steps.
inline constexpr int kMostParts = 16;      ///< Of a sum.

/// The sizes of the products, rounded up, with zeros.
struct GradientProduct {
  int products;        ///< frequencies * groups
  std::int64_t c, k;   ///< channels and filters of a group
  std::int64_t tiles;  ///< of all images
  int parts;           ///< of each sum

  /// V [product][c][tiles]
  HOST_DEVICE std::int64_t v_floats() const { return products * c * tiles; }
  /// U [product][tiles][k]
  HOST_DEVICE std::int64_t u_floats() const { return products * tiles * k; }
  /// Of M [part][product][c][k], a part.
  HOST_DEVICE std::int64_t m_floats() const { return products * c * k; }
  /// Blocks that transform tiles of a filter: so many sums of dy there are.
  HOST_DEVICE std::int64_t tile_blocks() const { return tiles / kBlockTiles; }
};

/// As many parts as take the least time: few leave SMs idle in the last wave of blocks, many are
/// written and read. It assumes an H200, as split_k.cuh does, so that no bits depend on the GPU.
inline int parts_of(const GradientProduct& product) {
  constexpr double kStepMicroseconds = 0.64, kStarts = 2;  // of 64 x 128 accumulators; steps that
                                                           // it costs
  const int rows = product.c % 128 == 0 ? 128 : 64;        // of a tile of the product
  const double all = static_cast<double>(product.products) * static_cast<double>(product.c / rows) *
                     static_cast<double>(ceil_div<std::int64_t>(product.k, 128));
  const double part_bytes = 2.0 * sizeof(float) * product.products *
                            static_cast<double>(product.c) * static_cast<double>(product.k);
  const std::int64_t steps = product.tiles / kWholeTiles;
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int parts = 1; parts <= std::min<std::int64_t>(kMostParts, steps); ++parts) {
    const double waves = std::ceil(all * parts / kSms);
    const double time = waves *
                            (static_cast<double>(ceil_div<std::int64_t>(steps, parts)) + kStarts) *
                            kStepMicroseconds * (rows / 64) +
                        parts * part_bytes / kPartBytes;
    if (time < least) best = parts, least = time;
  }
  return best;
}

/// Of a problem.
inline GradientProduct gradient_product_of(const Conv2dProblem& conv) {
  const auto up = [](std::int64_t extent, int to) {
    return ceil_div<std::int64_t>(extent, to) * to;
  };
  GradientProduct product{conv2d::kFrequencies4x4 * conv.groups,
                          up(conv.C / conv.groups, kWholeChannels),
                          up(conv.K / conv.groups, kFilters),
                          up(conv2d::WinogradTiles(conv, Gradient4::kTile).all, kWholeTiles), 1};
  product.parts = parts_of(product);
  return product;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
