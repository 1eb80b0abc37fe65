/// @file gathered_plan.cuh
/// @brief The tiles of an NHWC convolution's product, and which of them a problem gets, in how many
/// parts.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/cuda/device_attribute.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/gemm/shared/mma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kMmaStep;
using gemm::TileOrder;

/// Bytes of a row of the table of windows, which the copies keep in shared memory.
inline constexpr std::size_t kRowBytes = 16;

/// The sizes of a kernel.
struct GatheredShape {
  int M, N;            ///< of a block's tile: pixels x filters
  int warp_m, warp_n;  ///< of a warp's
  int stages;          ///< of cp.async, in shared memory
  int blocks;          ///< that an SM must hold at once

  /// Of a block.
  HOST_DEVICE constexpr int threads() const { return M / warp_m * (N / warp_n) * 32; }
  /// Of a stage: M pixels and N filters, kMmaStep steps of k each.
  HOST_DEVICE constexpr int stage_floats() const { return (M + N) * kMmaStep; }
  /// Shared memory of a block: the stages, and of each pixel its window and output offset.
  constexpr std::size_t shared_bytes() const {
    return static_cast<std::size_t>(stages * stage_floats()) * sizeof(float) +
           static_cast<std::size_t>(M) * (kRowBytes + sizeof(std::int64_t));
  }
  constexpr bool operator==(const GatheredShape&) const = default;  ///< all sizes
};

/// For many pixels and filters.
inline constexpr GatheredShape kLargeGathered{
    .M = 128, .N = 256, .warp_m = 64, .warp_n = 64, .stages = 4, .blocks = 1};
/// For at most 128 filters.
inline constexpr GatheredShape kMediumGathered{
    .M = 128, .N = 128, .warp_m = 64, .warp_n = 64, .stages = 3, .blocks = 2};
/// For at most 64 filters.
inline constexpr GatheredShape kNarrowGathered{
    .M = 128, .N = 64, .warp_m = 64, .warp_n = 32, .stages = 3, .blocks = 3};
/// For few pixels.
inline constexpr GatheredShape kSmallGathered{
    .M = 64, .N = 64, .warp_m = 32, .warp_n = 32, .stages = 3, .blocks = 3};
/// For at most 16 filters.
inline constexpr GatheredShape kThinGathered{
    .M = 128, .N = 16, .warp_m = 32, .warp_n = 16, .stages = 3, .blocks = 3};

/// The same as types: host code of nvcc 13.0 has no kernels whose template arguments are values of
/// a class.
struct LargeGathered {
  static constexpr GatheredShape kShape = kLargeGathered;  ///< see there
};
struct MediumGathered {
  static constexpr GatheredShape kShape = kMediumGathered;  ///< see there
};
struct NarrowGathered {
  static constexpr GatheredShape kShape = kNarrowGathered;  ///< see there
};
struct SmallGathered {
  static constexpr GatheredShape kShape = kSmallGathered;  ///< see there
};
struct ThinGathered {
  static constexpr GatheredShape kShape = kThinGathered;  ///< see there
};

/// How a product is computed.
struct GatheredPlan {
  GatheredShape shape;  ///< one of those above
  int splits;           ///< parts of each sum
  double seconds;       ///< estimated
};

/// What the model of plan_gathered() knows of a GPU: numbers fitted to an H200. Another GPU has
/// others, but the choice depends on their ratios only.
struct GatheredModel {
  static constexpr double kSmProducts = 110e12 / 132;  ///< a second: a busy SM, large tiles
  static constexpr double kBytes = 3.5e12;  ///< a second, written or read, through the L2
  static constexpr double kBlock = 3e-6;    ///< before and after the stages of a block
  static constexpr double kLaunch = 2e-6;   ///< of the kernel that adds the parts
};

/// The best plan with tiles of this shape, by the model.
/// @param most_splits as many parts at most
/// @param efficiency a busy SM's products, compared with the large tiles
inline GatheredPlan plan_shape(const GatheredGemm& product, const GatheredShape& shape,
                               int most_splits, double efficiency) {
  using Model = GatheredModel;
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), shape.M) *
                             ceil_div(product.filters, shape.N) * product.groups;
  const int steps = ceil_div(product.R * product.S * product.channels, kMmaStep);
  const int sms = multiprocessors();
  GatheredPlan best{shape, 1, 1e300};
  for (int splits = 1; splits <= std::max(1, std::min(most_splits, steps)); ++splits) {
    // Blocks of the busiest SM. When fewer are left than fit at a time, they go a little faster;
    // when several fit, one stores its sums while others multiply.
    const std::int64_t blocks = ceil_div<std::int64_t>(tiles * splits, sms);
    const double rounds = static_cast<double>(blocks / shape.blocks) +
                          std::pow(static_cast<double>(blocks % shape.blocks) / shape.blocks, 0.8);
    const double step = static_cast<double>(shape.M * shape.N * kMmaStep * shape.blocks) /
                        (Model::kSmProducts * efficiency);
    const double ends = Model::kBlock * (0.5 + 0.5 / shape.blocks);
    double seconds = rounds * (ceil_div(steps, splits) * step + ends);
    if (splits > 1) {
      const double sums = static_cast<double>(product.pixels()) * product.out_channels;
      seconds += (2.0 * splits + 1) * sums * sizeof(float) / Model::kBytes + Model::kLaunch;
    }
    if (seconds < best.seconds) best = {shape, splits, seconds};
  }
  return best;
}

/// The best plan, by a model of the time.
/// @param may_split whether several blocks may share the accumulators of a tile
inline GatheredPlan plan_gathered(const GatheredGemm& product, bool may_split) {
  const int most_splits = may_split ? 32 : 1;
  if (product.filters <= kThinGathered.N) return plan_shape(product, kThinGathered, most_splits, 1);
  const std::size_t shared = max_shared_bytes();
  GatheredPlan best = plan_shape(product, kSmallGathered, most_splits, 0.6);
  const auto consider = [&](const GatheredShape& shape, double efficiency) {
    if (shape.shared_bytes() > shared) return;
    const GatheredPlan plan = plan_shape(product, shape, most_splits, efficiency);
    if (plan.seconds < best.seconds) best = plan;
  };
  consider(kNarrowGathered, 0.7);
  consider(kMediumGathered, 0.95);
  consider(kLargeGathered, 1);
  return best;
}

/// For a rung's choice.
inline std::string in_words(const GatheredGemm& product, const GatheredPlan& plan) {
  return text(
      plan.shape.M, " x ", plan.shape.N, ", ", how_many(plan.splits, "part"),
      channels_in_fours(product) && product.fits_ints(plan.shape.M) ? ", channels in fours" : "");
}

/// The share of one of several splits of the steps, in whole stages.
__device__ inline Depth share_of(Depth depth, int split, int splits) {
  const int share = ceil_div(ceil_div(depth.end - depth.begin, kMmaStep), splits) * kMmaStep;
  const int begin = min(depth.begin + split * share, depth.end);
  return {begin, min(begin + share, depth.end)};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
