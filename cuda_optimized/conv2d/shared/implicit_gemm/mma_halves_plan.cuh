/// @file mma_halves_plan.cuh
/// @brief Around the main loop of half-precision `mma.sync` in NHWC: the tile and the splits of a
/// problem, and the stores of accumulators to outputs, or to parts that a second kernel adds.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/needs.hpp"
#include "core/half.hpp"
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

/// Whether the copies of WindowVectors can be used, if the arrays are aligned to 16 bytes.
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

/// Two floats rounded to half precision, the first one in the low 16 bits.
template <class T>
__device__ inline std::uint32_t two_rounded(float first, float second) {
  return rounded_to<T>(first).bits | static_cast<std::uint32_t>(rounded_to<T>(second).bits) << 16;
}

/// Stores four adjacent outputs, at once where `four`, else the first `count` of them one by one.
template <class T>
__device__ inline void store_four(T* to, float4 sums, int count, bool four) {
  if (!four) {
    if (count > 0) to[0] = rounded_to<T>(sums.x);
    if (count > 1) to[1] = rounded_to<T>(sums.y);
    if (count > 2) to[2] = rounded_to<T>(sums.z);
    if (count > 3) to[3] = rounded_to<T>(sums.w);
  } else if constexpr (sizeof(T) == sizeof(float)) {
    *reinterpret_cast<float4*>(to) = sums;
  } else {
    *reinterpret_cast<uint2*>(to) = {two_rounded<T>(sums.x, sums.y),
                                     two_rounded<T>(sums.z, sums.w)};
  }
}

/// Writes the tile's sums, plus bias and activated, to the pixels' outputs. They pass through
/// shared memory, which nothing else uses any more, so that a warp stores whole sectors.
/// @param pixel_at row -> where the pixel's outputs begin
/// @param bias of all channels, or null
template <class S, class PixelAt, class T>
__device__ void store_sums(const GatheredGemm& product, const HalfBlock<S>& block,
                           const float (&sums)[S::WarpM / 16][S::WarpN / 8][4], float* staged,
                           const float* bias, const PixelAt& pixel_at, T* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32, thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // separates the last loads of fragments from these stores
#pragma unroll
  for (int i = 0; i < S::WarpM / 8; ++i) {
    float* const row = staged + (block.warp_m + 8 * i + lane / 4) * S::kPitch + block.warp_n;
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; ++j) {
      *reinterpret_cast<float2*>(row + 8 * j + lane % 4 * 2) = {sums[i / 2][j][i % 2 * 2],
                                                                sums[i / 2][j][i % 2 * 2 + 1]};
    }
  }
  __syncthreads();  // separates the stores of all threads from these loads
  constexpr int kFours = S::N / 4;
  static_assert(S::kThreads % kFours == 0, "a thread stores the same filters of every row");
  const int n = thread % kFours * 4, count = product.filters - block.n0 - n;
  if (count <= 0) return;
  const int channel = block.group * product.filters + block.n0 + n;
  const bool four =
      product.filters % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % (4 * sizeof(T)) == 0;
  float added[4] = {};
  for (int e = 0; e < 4; ++e) {
    if (bias != nullptr && e < count) added[e] = bias[channel + e];
  }
#pragma unroll 4
  for (int row = thread / kFours; row < block.rows; row += S::kThreads / kFours) {
    float4 v = reinterpret_cast<const float4*>(staged + row * S::kPitch)[n / 4];
    v = {activated(product.activation, v.x + added[0]),
         activated(product.activation, v.y + added[1]),
         activated(product.activation, v.z + added[2]),
         activated(product.activation, v.w + added[3])};
    store_four(out + pixel_at(row) + channel, v, count, four);
  }
}

inline constexpr int kPartThreads = 256;              ///< Threads of a block that adds parts.
inline constexpr std::int64_t kMaxPartBlocks = 1056;  ///< Such blocks, at most.

/// out [count] = bias [channels], or null, + the parts [splits][count] in their order, activated
/// and rounded; kWidth elements at a time. Grid <= kMaxPartBlocks, block kPartThreads.
template <class T, int kWidth>
__global__ void conv2d_sum_half_parts(const float* parts, int splits, std::int64_t count,
                                      const float* bias, int channels, Activation activation,
                                      T* out) {
  using Parts = std::conditional_t<kWidth == 4, float4, float>;
  using Outs = std::conditional_t<kWidth == 4, uint2, T>;
  for (const std::int64_t i : grid_stride<kPartThreads>(count / kWidth)) {
    float sums[kWidth];
    for (int e = 0; e < kWidth; ++e)
      sums[e] = bias != nullptr ? bias[(i * kWidth + e) % channels] : 0.0f;
#pragma unroll 4
    for (int split = 0; split < splits; ++split) {
      const Parts part = reinterpret_cast<const Parts*>(parts + split * count)[i];
      if constexpr (kWidth == 4) {
        sums[0] += part.x, sums[1] += part.y, sums[2] += part.z, sums[3] += part.w;
      } else {
        sums[0] += part;
      }
    }
    for (float& sum : sums) sum = activated(activation, sum);
    if constexpr (kWidth == 4) {
      reinterpret_cast<Outs*>(out)[i] = {two_rounded<T>(sums[0], sums[1]),
                                         two_rounded<T>(sums[2], sums[3])};
    } else {
      out[i] = rounded_to<T>(sums[0]);
    }
  }
}

/// Launches it. @param bias [channels] or null
template <class T>
void launch_sum_half_parts(const float* parts, int splits, std::int64_t count, const float* bias,
                           int channels, Activation activation, T* out) {
  const bool fours = channels % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % 8 == 0;
  launch(fours ? conv2d_sum_half_parts<T, 4> : conv2d_sum_half_parts<T, 1>,
         {blocks_for(fours ? count / 4 : count, kPartThreads, kMaxPartBlocks), kPartThreads}, parts,
         splits, count, bias, channels, activation, out);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
