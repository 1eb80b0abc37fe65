/// @file mma_halves_plan.cuh
/// @brief Which tiles an NHWC convolution in half precision gets, and in how many splits.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// For many pixels and filters; 144 KB, which an A100 has, too.
using LargeHalves = HalfShape<128, 256, 64, 64, 3, 1>;
/// Where an SM has 100 KB, or for at most 128 filters.
using MediumHalves = HalfShape<128, 128, 64, 64, 3, 2>;
/// For at most 64 filters.
using NarrowHalves = HalfShape<128, 64, 64, 32, 3, 3>;
/// For few pixels, and where copies are not in vectors.
using SmallHalves = HalfShape<64, 64, 32, 32, 3, 4>;

/// The tiles of a problem.
struct HalfPlan {
  int M = 0, N = 0;      ///< pixels and filters of a block
  int splits = 1;        ///< blocks that share the sum of a tile
  double seconds = 0.0;  ///< estimated
};

/// Calls body(S{}) for the plan's shape.
template <class Body>
void with_shape(const HalfPlan& plan, const Body& body) {
  if (plan.N == LargeHalves::N) return body(LargeHalves{});
  if (plan.N == MediumHalves::N) return body(MediumHalves{});
  if (plan.M == NarrowHalves::M) return body(NarrowHalves{});
  body(SmallHalves{});
}

/// Whether the copies of WindowVectors can be used, if the arrays begin at multiples of 16 bytes.
inline bool in_vectors(const GatheredGemm& product) {
  return product.channels % kVector == 0 && product.fits_ints(LargeHalves::M);
}

/// What the model of plan_halves() knows of a GPU: fitted to an H200. The choice depends on ratios.
struct HalfModel {
  static constexpr double kSmProducts = 221e12 / 132;  ///< a second: a busy SM, large tiles
  static constexpr double kBytes = 9e12;   ///< a second: parts are written and read in the L2 cache
  static constexpr double kLaunch = 2e-6;  ///< of the kernel that adds the parts
  static constexpr double kOccupancy = 0.7;  ///< Of n blocks, k take (k / n) ^ this of the time.
};

/// The best plan with tiles of shape S, by the model.
/// @param grids of these tiles that run at the same time
/// @param efficiency of a busy SM, compared with the large tiles
/// @param ends seconds of a block before and after its stages
template <class S>
HalfPlan plan_shape(const GatheredGemm& product, int grids, double efficiency, double ends) {
  using Model = HalfModel;
  constexpr int kMostSplits = 16;
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), S::M) *
                             ceil_div(product.filters, S::N) * product.groups * grids;
  const int steps = ceil_div(product.R * product.S * product.channels, kHalfDepth);
  const double step = S::M * S::N * kHalfDepth * S::kBlocks / (Model::kSmProducts * efficiency);
  HalfPlan best{S::M, S::N, 1, 1e300};
  for (int splits = 1; splits <= std::max(1, std::min(kMostSplits, steps)); ++splits) {
    const std::int64_t blocks = ceil_div<std::int64_t>(tiles * splits, multiprocessors());
    const double last = static_cast<double>(blocks % S::kBlocks) / S::kBlocks;
    const double rounds =
        static_cast<double>(blocks / S::kBlocks) + std::pow(last, Model::kOccupancy);
    double seconds = rounds * (ceil_div(steps, splits) * step + ends);
    if (splits > 1) {
      const double sums = static_cast<double>(product.pixels()) * product.out_channels * grids;
      seconds += (2.0 * splits + 1) * sums * sizeof(float) / Model::kBytes + Model::kLaunch;
    }
    if (seconds < best.seconds) best = {S::M, S::N, splits, seconds};
  }
  return best;
}

/// The plan of the least estimated time.
/// @param vectors the small tiles alone have a kernel without vectors
inline HalfPlan plan_halves(const GatheredGemm& product, int grids, bool vectors) {
  HalfPlan best = plan_shape<SmallHalves>(product, grids, 0.69, 3e-6);
  if (!vectors) return best;
  const auto consider = [&]<class S>(S, double efficiency, double ends) {
    if (S::kSharedBytes > max_shared_bytes()) return;
    const HalfPlan plan = plan_shape<S>(product, grids, efficiency, ends);
    if (plan.seconds < best.seconds) best = plan;
  };
  consider(NarrowHalves{}, 0.86, 4.3e-6);
  consider(MediumHalves{}, 0.93, 5e-6);
  consider(LargeHalves{}, 1.0, 4.6e-6);
  return best;
}

/// Why the kernels cannot take a problem with `pixels` pixels, whose sums have `products` products.
inline Declined why_no_mma_halves(const Conv2dProblem& conv, std::int64_t pixels,
                                  std::int64_t products) {
  if (conv.dtype != DType::f16 && conv.dtype != DType::bf16) {
    return text("multiplies numbers of 16 bits, and the problem asks for ",
                dtype_name(conv.dtype, conv.precision));
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (const Declined why = why_not("sm_80")) return why;
  if (products > kMaxDepth) return "sums of 2^31 products and more";
  if (pixels > kMaxDepth) return "2^31 pixels and more";
  return {};
}

/// For a rung's choice. @param vectors what is copied comes in vectors
inline std::string in_words(const GatheredGemm& product, const HalfPlan& plan, bool vectors) {
  return text(plan.M, " x ", plan.N, ", ", how_many(plan.splits, "part"),
              vectors ? ", copies of 16 bytes" : ", element by element",
              product.filters % 4 == 0 ? ", stores in fours" : "");
}

/// Bytes of the parts of `outputs` sums.
inline std::size_t part_bytes(const HalfPlan& plan, std::int64_t outputs) {
  return plan.splits > 1 ? static_cast<std::size_t>(plan.splits * outputs) * sizeof(float) : 0;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
