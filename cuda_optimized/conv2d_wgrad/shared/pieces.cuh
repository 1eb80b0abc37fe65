/// @file pieces.cuh
/// @brief The weight gradient in half precision as a GEMM of x and dy for wgmma, both read
/// transposed: what there is to compute, and the plan.
///
/// The rows of the GEMM are *pieces*: 64 channels of a group at one tap. Its columns are the
/// group's filters, its sums run over all pixels of y. A step is 64 pixels.
#pragma once

#include <cmath>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

using conv2d::Chunk;
using conv2d::Windows;
using gemm::kHalfColumns;
using gemm::kHalfStep;
using gemm::kPieceBytes;

/// The pieces of a group.
struct Pieces {
  int S,        ///< taps in a row of the filter
      per_tap,  ///< pieces of a tap: the last may have fewer than 64 channels
      count;    ///< of all taps
  int group_c,  ///< channels of a group
      taps;     ///< R * S

  /// Of a convolution's filters.
  explicit Pieces(const Conv2dProblem& conv)
      : S(conv.S), per_tap(ceil_div(conv.C / conv.groups, kHalfColumns)),
        count(conv.R * conv.S * per_tap), group_c(conv.C / conv.groups), taps(conv.R * conv.S) {}
  /// A piece's tap and first channel, in words. Behind the last piece, that one again.
  HOST_DEVICE Chunk at(int piece) const {
    const int there = piece < count ? piece : count - 1, tap = there / per_tap;
    return {tap / S, tap % S, there % per_tap * (kHalfColumns / 2)};
  }
  /// Where the gradient of a piece's first channel lies in that of a filter, [R][S][group_c].
  HOST_DEVICE std::int64_t offset(int piece) const {
    return std::int64_t{piece / per_tap} * group_c + piece % per_tap * kHalfColumns;
  }
};

/// @cond Doxygen looks for gemm among the classes.
using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Few filters; two blocks an SM.
using Medium = gemm::WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.
/// @endcond

/// The forward pass, with channels in words.
inline Windows half_windows_of(const Conv2dProblem& conv) {
  return conv2d::forward_product_of(conv).windows;
}

/// Whether TMA can load the operands, if they begin at multiples of 16 bytes; it counts
/// pixels by an int.
inline bool half_rows_for_tma(const Conv2dProblem& conv) {
  const Windows windows = half_windows_of(conv);
  return conv.C / conv.groups % 8 == 0 && conv.K / conv.groups % 8 == 0 && fits_im2col(windows) &&
         windows.pixels() < INT32_MAX - kHalfStep;
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
  if (!half_rows_for_tma(conv) || filters <= Narrow::N) return body(Narrow{});
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
