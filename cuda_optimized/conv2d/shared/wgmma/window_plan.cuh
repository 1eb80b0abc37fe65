/// @file window_plan.cuh
/// @brief Which tiles a product of windows gets, and in how many parts its sums are computed.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/cuda/device_attribute.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_pixels.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kMaxWindowSplits = 8;  ///< Parts of the sums.

/// A kernel's shape, and in how many parts it computes the sums.
struct WindowPlan {
  enum { narrow, tall, medium, large } shape;  ///< Narrow, Tall, Medium or Large
  int splits;                                  ///< parts of each sum, >= 1
};

/// The tiles of Shape that cover pixels by filters, and the steps: 32 channels of one tap each.
template <class Shape>
WgmmaWork work_of(const Windows& windows, int splits) {
  return {.tiles_m = ceil_div(windows.pixels(), std::int64_t{Shape::M}),
          .tiles_n = windows.groups * ceil_div(windows.group_k(), Shape::N),
          .splits = splits,
          .steps = windows.R * windows.S * windows.chunks(),
          .products = windows.groups,
          .map = windows.map};
}

/// The largest number of tiles for which the map must have a grid: that of the smallest tiles.
inline TileMapProblem smallest_tiles(const Windows& windows) {
  const WgmmaWork work = work_of<Narrow>(windows, 1);
  return {.map = windows.map,
          .tiles_m = static_cast<int>(std::min<std::int64_t>(work.tiles_m, 0x7fffffff)),
          .tiles_n = work.tiles_n / work.products,
          .batch = work.products * kMaxWindowSplits};
}

/// Estimated cycles: rounds of blocks, in each the steps and the stores, and what adding up the
/// parts costs. A step's cycles and the bytes a cycle are fitted to an H200.
template <class Shape>
double cycles(const Windows& windows, int splits, double step_cycles) {
  constexpr double kStoredBytes = 19, kAddedBytes = 1800;  // a cycle: of an SM, of all
  constexpr double kLaunch = 5000;
  const WgmmaWork work = work_of<Shape>(windows, splits);
  // Two blocks of an SM share its tensor cores: they take as long as one after the other.
  const double rounds = std::ceil(static_cast<double>(work.items()) / multiprocessors());
  const double item = step_cycles * work.steps / splits + Shape::M * Shape::N * 4 / kStoredBytes;
  const double bytes = 4.0 * static_cast<double>(windows.out_size()) * (splits + 1);
  return rounds * item + (splits > 1 ? kLaunch + bytes / kAddedBytes : 0);
}

/// The fastest by that estimate. Only results that follow one another are computed in parts; under
/// the map split_k, all of them are.
inline WindowPlan plan_of(const Windows& windows) {
  constexpr int kLeastSteps = 8;  // of a part
  const int steps = work_of<Narrow>(windows, 1).steps;
  const bool whole = windows.out_stride.h == 1 && windows.out_stride.w == 1;
  const int fewest = windows.map == TileMap::split_k ? std::min(kDefaultSplits, steps) : 1;
  WindowPlan best = {WindowPlan::narrow, fewest};
  double least = cycles<Narrow>(windows, fewest, 600);
  for (int splits = fewest;
       splits == fewest || (whole && splits <= kMaxWindowSplits && splits * kLeastSteps <= steps);
       ++splits) {
    const auto consider = [&](decltype(WindowPlan::shape) shape, double estimate) {
      if (estimate >= least) return;
      best = {shape, splits};
      least = estimate;
    };
    consider(WindowPlan::tall, cycles<Tall>(windows, splits, 1150));
    consider(WindowPlan::medium, cycles<Medium>(windows, splits, 620));
    consider(WindowPlan::large, cycles<Large>(windows, splits, 1050));
  }
  return best;
}

/// Floats of the workspace in which the parts of the sums lie.
inline std::int64_t part_floats(const Windows& windows) {
  const int splits = plan_of(windows).splits;
  return splits > 1 ? splits * windows.out_size() : 0;
}

/// For a rung's choice: how they are computed.
inline std::string in_words(const Windows& windows, Layout source, Layout weights) {
  if (windows.pixels() == 0) return "nothing to do";
  const WindowPlan plan = plan_of(windows);
  const bool engine = takes_the_copy_engine(windows, source, weights);
  const char* const shape = !engine || plan.shape == WindowPlan::narrow ? "128 x 64"
                            : plan.shape == WindowPlan::tall            ? "256 x 64"
                            : plan.shape == WindowPlan::medium          ? "128 x 128"
                                                                        : "128 x 256";
  return text(
      shape, ", ", how_many(plan.splits, "part"), engine ? ", by TMA" : ", by a warp",
      windows.layout == Layout::nhwc && filters_in_pairs(windows) ? ", filters in pairs" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
