/// @file mma_tf32.cu
/// @brief TF32 tensor cores (`mma.sync`) in NHWC: the forward pass's kernel on transposed, reversed
/// filters.
///
/// - Before: mma.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the input gradient is a convolution of dy: pixel h of dx reads pixel
/// p = h + pad - r * dilation of dy, so the taps are walked backwards, and the sum runs over the
/// output channels. Nothing has to be flipped in memory: the step from tap to tap is negative. A
/// small kernel transposes the weights w[k][r][s][c], so that k is fastest, and rounds them to
/// TF32. Then a filter is K-major, as in the forward pass, and ldmatrix loads its fragments.
///
/// With a stride, h + pad - r * dilation must be a multiple of it. All pixels with the same h %
/// stride have the same taps, so they form a residue class, which is dense again:
///
///     stride 2, 3 taps, pad 1    h = 0 2 4 ...   taps r = 1       from p = h/2
///                                h = 1 3 5 ...   taps r = 0, 2    from p = (h + 1)/2, (h - 1)/2
///
/// Each class is one launch. There are no products with the zeros of a stride.
///
/// **Expect.** As many products as the forward pass, at its speed: 1150 us for B10. Transposing its
/// 9.4 MB of weights takes 5 us at 4 TB/s.
/// @expect on --n 1 --c 32 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect loads_per_output.dy 64 * 46 * 46 / (16 * 16) / 32 / 4 = 4.1328, in vectors
/// @expect loads_per_output.weights 9 * 64 * 32 / 8192 = 2.25, transposed once
/// @expect bytes_per_lane.dy.async 16
/// @expect excess.shared.load 0, of ldmatrix
/// **Costs.** With a stride, smaller launches one after the other, without split-K. All else as in
/// the forward rung; copies of 16 bytes need output channels in fours.
/// **Try.** Launch all classes at once, with the class in blockIdx.z. What does B8 gain?
#include <type_traits>

#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_copies.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_plan.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/gathered_classes.cuh"
#include "cuda_optimized/gemm/shared/mma_tile.cuh"
#include "cuda_optimized/gemm/shared/repack.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::FourAtATime;
using conv2d::GatheredShape;
using conv2d::kMmaStep;
using conv2d::LargeGathered;
using conv2d::MediumGathered;
using conv2d::NarrowGathered;
using conv2d::OneAtATime;
using conv2d::SmallGathered;
using conv2d::ThinGathered;
using conv2d::TileOrder;

/// A class of pixels of dx [N][H][W][C], a product of dy [N][P][Q][K] and turned weights rounded to
/// TF32. A split sums up its share of the steps and writes it to out + split * split_size.
/// Grid (tiles, <= groups, splits), tiles of filters fastest. Block (Shape::kShape.threads()).
template <class Shape, bool kInFours>
__global__ void __launch_bounds__(Shape::kShape.threads(), Shape::kShape.blocks)
    conv2d_dgrad_implicit_gemm_mma_tf32(GatheredGemm product, int tiles_n, std::int64_t pixel_count,
                                        std::int64_t split_size, const float* dy,
                                        const float* weights, float* out) {
  static constexpr GatheredShape S = Shape::kShape;
  using Copy = std::conditional_t<kInFours, FourAtATime<S>, OneAtATime<S>>;
  using TileA = gemm::MmaTile<TileOrder::along_k, S.M>;
  using Sums = gemm::MmaSums<S.warp_m / 16, S.warp_n / 8, true, false>;
  float* const tiles = dynamic_shared<float>();  // [S.stages] tiles of pixels and of filters
  float* const table = tiles + S.stages * S.stage_floats();
  auto* const outs = reinterpret_cast<std::int64_t*>(table + S.M * conv2d::kRowBytes / 4);  // [S.M]
  const std::int64_t m0 = std::int64_t{blockIdx.x / static_cast<unsigned>(tiles_n)} * S.M;
  const int n0 = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles_n)) * S.N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S.N / S.warp_n) * S.warp_m;
  const int warp_n = warp % (S.N / S.warp_n) * S.warp_n;
  const int rows = static_cast<int>(pixel_count - m0 < S.M ? pixel_count - m0 : S.M);
  const conv2d::Depth depth =
      conv2d::share_of(conv2d::depth_of(product, m0, rows), static_cast<int>(blockIdx.z),
                       static_cast<int>(gridDim.z));
  out += blockIdx.z * split_size;
  const bool in_pairs = product.out_channels % 2 == 0 && product.filters % 2 == 0 &&
                        reinterpret_cast<std::uintptr_t>(out) % 8 == 0;

  // The constructor of Copy has the barrier between these stores and the loads below.
  for (int i = static_cast<int>(threadIdx.x); i < S.M; i += S.threads()) {
    outs[i] = i < rows ? pixel_at(product, m0 + i).out : -1;
  }
  for (int group = static_cast<int>(blockIdx.y); group < product.groups;
       group += static_cast<int>(gridDim.y)) {
    const Copy copy(product, {m0, pixel_count, n0, group, depth.end}, dy, weights, table);
    const int steps = ceil_div(depth.end - depth.begin, kMmaStep);
    const auto tile_of = [&](int step) { return tiles + step % S.stages * S.stage_floats(); };
    const auto ask_for = [&](int step) {
      if (step < steps) {
        copy(depth.begin + step * kMmaStep, tile_of(step), tile_of(step) + TileA::kFloats);
      }
      ptx::cp_async_commit_group();  // also without copies: the waits count groups
    };
    const auto wait_for_next = [] {
      ptx::cp_async_wait_group<S.stages - 2>();  // this thread's copies of the next stage are there
      // Makes the copies of all threads visible to all; and separates the loads of the previous
      // stage from the copies that will overwrite its tiles.
      __syncthreads();
    };
    typename Sums::Factors factors[2];
    const auto load = [&](int step, int k) {
      factors[k / 8 % 2].template load<TileOrder::along_k, S.M, TileOrder::along_k, S.N>(
          tile_of(step), warp_m, tile_of(step) + TileA::kFloats, warp_n, k);
    };

    Sums sums;
#pragma unroll 1
    for (int step = 0; step < S.stages - 1; ++step) ask_for(step);
    wait_for_next();
    load(0, 0);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int k = 0; k < kMmaStep; k += 8) {
        // The next fragments are in flight while these are multiplied, also across the barrier.
        if (k + 8 < kMmaStep) {
          load(step, k + 8);
        } else {
          wait_for_next();
          load(step + 1, 0);  // after the last stage, these are not used
        }
        sums.multiply(factors[k / 8 % 2]);
        if (k == 0) ask_for(step + S.stages - 1);
      }
    }
    __syncthreads();  // separates the last loads from the next group's copies

    sums.for_each_pair([&](int row, int column, float first, float second) {
      const std::int64_t at = outs[warp_m + row];
      const int f = n0 + warp_n + column;
      if (at < 0 || f >= product.filters) return;
      const int channel = group * product.filters + f;
      const bool both = f + 1 < product.filters;
      if (in_pairs) {
        *reinterpret_cast<float2*>(out + at + channel) = {first, second};
      } else {
        out[at + channel] = first;
        if (both) out[at + channel + 1] = second;
      }
    });
  }
}

std::int64_t products_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.R} * conv.S * (conv.K / conv.groups);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = conv2d::why_not_gathered(conv, products_of(conv))) return reason;
  if (products_of(conv) / (conv.K / conv.groups) * (conv.C / conv.groups) > conv2d::kMaxDepth) {
    return "filters of 2^31 weights and more";
  }
  return {};
}

/// Weights, and a few more so that what follows them begins at 16 bytes.
std::int64_t padded_weights_of(const Conv2dProblem& conv) {
  return ceil_div<std::int64_t>(products_of(conv) * conv.C, 4) * 4;
}

std::int64_t outputs_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.H * conv.W * conv.C;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  std::int64_t parts = 0;
  for_each_pixel_class(conv, [&](const GatheredGemm&, const GatheredPlan& plan) {
    if (plan.splits > 1) parts = plan.splits * outputs_of(conv);
  });
  return static_cast<std::size_t>(padded_weights_of(conv) + parts) * sizeof(float);
}

using Kernel = decltype(&conv2d_dgrad_implicit_gemm_mma_tf32<SmallGathered, false>);

/// The kernels of a shape.
struct Kernels {
  GatheredShape shape;
  Kernel four_at_a_time, one_at_a_time;
};

template <class Shape>
constexpr Kernels kKernels = {Shape::kShape, conv2d_dgrad_implicit_gemm_mma_tf32<Shape, true>,
                              conv2d_dgrad_implicit_gemm_mma_tf32<Shape, false>};

Kernel kernel_of(const GatheredShape& shape, bool in_fours) {
  Kernel kernel = nullptr;
  for (const Kernels& kernels :
       {kKernels<ThinGathered>, kKernels<SmallGathered>, kKernels<NarrowGathered>,
        kKernels<MediumGathered>, kKernels<LargeGathered>}) {
    if (kernels.shape == shape) kernel = in_fours ? kernels.four_at_a_time : kernels.one_at_a_time;
  }
  return kernel;
}

/// Launches the kernel for a class of pixels, and the one that adds up its parts.
/// @param weights turned
void launch_class(const Conv2dProblem& conv, const GatheredGemm& product, const GatheredPlan& plan,
                  const float* dy, const float* weights, float* parts, float* dx) {
  const auto [shape, splits, seconds] = plan;
  const bool is_split = splits > 1;
  const bool in_fours = channels_in_fours(product) && product.fits_ints(shape.M) &&
                        reinterpret_cast<std::uintptr_t>(dy) % 16 == 0;
  const int tiles_n = ceil_div(product.filters, shape.N);
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), shape.M) * tiles_n;
  const dim3 grid(blocks_for(tiles, 1), blocks_for(product.groups, 1, kMaxGridYZ),
                  static_cast<unsigned>(splits));
  launch(kernel_of(shape, in_fours),
         {grid, static_cast<unsigned>(shape.threads()), shape.shared_bytes()}, product, tiles_n,
         product.pixels(), is_split ? outputs_of(conv) : 0, dy, weights, is_split ? parts : dx);
  if (is_split) {
    conv2d::launch_sum_splits(parts, splits, outputs_of(conv), nullptr, 1, conv.C, Activation::none,
                              dx);
  }
}

/// dy [N][P][Q][K], weights [K][R][S][C/groups], dx [N][H][W][C].
void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const float* dy = arrays.dy;
  const int channels = conv.K / conv.groups;
  const auto columns = static_cast<int>(products_of(conv) / channels * (conv.C / conv.groups));
  float* const turned = context.workspace_as<float>();
  const std::int64_t of_group = std::int64_t{channels} * columns;
  gemm::launch_transpose<gemm::Rounding::to_tf32>(
      {.axes = {{}, {}, {.count = conv.groups, .from = of_group, .to = of_group}},
       .rows = channels,
       .columns = columns,
       .from_row = columns,
       .from_column = 1,
       .to_row = channels,
       .padded = channels},
      arrays.weights, turned);
  for_each_pixel_class(conv, [&](const GatheredGemm& product, const GatheredPlan& plan) {
    launch_class(conv, product, plan, dy, turned, turned + padded_weights_of(conv), arrays.dx);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  std::string first;
  bool all_alike = true, without_taps = false;
  for_each_pixel_class(conv, [&](const GatheredGemm& product, const GatheredPlan& plan) {
    const std::string words = in_words(product, plan);
    if (first.empty()) first = words;
    all_alike = all_alike && words == first;
    without_taps = without_taps || product.R * product.S == 0;
  });
  return text(first, all_alike ? "" : ", classes differ", without_taps ? ", some without taps" : "",
              std::min(conv.stride.h, conv.H) == 1 && std::min(conv.stride.w, conv.W) == 1
                  ? ", one class"
                  : ", several classes");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_mma_tf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
