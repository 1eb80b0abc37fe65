/// @file half_plan.cuh
/// @brief Which tiles the weight gradient in 16 bits gets, and in how many parts its sums are
/// computed.
#pragma once

#include <cmath>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/half_pieces.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// @cond Doxygen looks for gemm among the classes.
using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Few filters; two blocks an SM.
using Medium = gemm::WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.
/// @endcond

/// The forward pass, with channels in words.
inline Windows half_windows_of(const Conv2dProblem& conv) {
  return conv2d::in_words(windows_of(conv2d::forward_product(conv), conv.layout));
}

/// Whether TMA can load the operands, if they begin at multiples of 16 bytes; it counts
/// pixels by an int.
inline bool half_by_the_copy_engine(const Conv2dProblem& conv) {
  const Windows windows = half_windows_of(conv);
  return conv2d::in_eights(conv.C / conv.groups) && conv2d::in_eights(conv.K / conv.groups) &&
         fits_the_copy_engine(windows) && windows.pixels() < INT32_MAX - kHalfStep;
}

/// The product: tiles of two pieces by Shape::N filters, and steps of 64 pixels.
template <class Shape>
gemm::WgmmaWork half_work_of(const Conv2dProblem& conv, int splits) {
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  return {.tiles_m = ceil_div(Pieces(conv).count, gemm::kConsumers),
          .tiles_n = conv.groups * ceil_div(conv.K / conv.groups, Shape::N),
          .splits = splits,
          .steps = static_cast<int>(ceil_div(pixels, std::int64_t{kHalfStep})),
          .products = conv.groups};
}

/// Floats of dw.
inline std::int64_t weights_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.K} * (conv.C / conv.groups) * conv.R * conv.S;
}

/// In how many parts the sums are computed: the estimated cycles of rounds of blocks, and of adding
/// up the parts, are least. A step's cycles are those of the forward pass.
template <class Shape>
int half_splits_of(const Conv2dProblem& conv) {
  constexpr int kMostSplits = 64, kLeastSteps = 4;      // steps of a part
  constexpr double kAddedBytes = 1800, kLaunch = 5000;  // a cycle; cycles
  constexpr double kStepCycles = Shape::N == 256 ? 1050 : 620, kStoredBytes = 19;
  int best = 1;
  double least = 0;
  for (int splits = 1; splits <= kMostSplits; ++splits) {
    const gemm::WgmmaWork work = half_work_of<Shape>(conv, splits);
    if (splits > 1 && work.steps < splits * kLeastSteps) break;
    const double rounds = std::ceil(static_cast<double>(work.items()) / multiprocessors());
    const double bytes = 4.0 * static_cast<double>(weights_of(conv)) * (splits + 1);
    const double cycles =
        rounds * (kStepCycles * work.steps / splits + Shape::M * Shape::N * 4 / kStoredBytes) +
        (splits > 1 ? kLaunch + bytes / kAddedBytes : 0);
    if (splits > 1 && cycles >= least) continue;
    best = splits;
    least = cycles;
  }
  return best;
}

/// Calls body(Shape) for the columns that the filters fill.
template <class Body>
auto with_half_shape(const Conv2dProblem& conv, const Body& body) {
  const int filters = conv.K / conv.groups;
  if (!half_by_the_copy_engine(conv) || filters <= Narrow::N) return body(Narrow{});
  if (filters <= Medium::N) return body(Medium{});
  return body(Large{});
}

/// Floats of the workspace: parts of dw, then of db.
inline std::int64_t half_part_floats(const Conv2dProblem& conv) {
  return with_half_shape(conv, [&]<class Shape>(Shape) {
    const int splits = half_splits_of<Shape>(conv);
    return splits > 1 ? splits * weights_of(conv) : std::int64_t{0};
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
