/// @file mma_tf32.cu
/// @brief TF32 tensor cores (`mma.sync`) in NHWC: implicit GEMM with operands that are rounded to
/// TF32.
///
/// - Before: mma.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** Implicit GEMM never stores its operand A: it has a row for each pixel of y, and
/// along k the inputs of its window, tap after tap. In NHWC the channels of a pixel are contiguous:
/// 32 steps of k are one or a few runs of memory, which cp.async copies 16 bytes at a time. A block
/// computes once per pixel the offset of its window, and a bit for each row and column of taps in
/// x; a thread computes once per stage its tap and channel. A copy is then a test of two bits, an
/// addition and cp.async. A small kernel rounds the weights beforehand.
///
///       a     k = (r, s, c), c fastest               b     k = (r, s, c)
///       pixel + - - - - - - - - - - - - +            filter + - - - - - - - - - - - - +
///       n,p,q | x[p + r - pad][q + s - pad][c] |     f      | w[f][r][s][c]           |
///             + - - - - - - - - - - - - +                   + - - - - - - - - - - - - +
///
/// **Expect.** A stage of the large tile, 128 x 256, loads 48 KB for 1 M multiply-adds. Of a warp's
/// 420 instructions per stage, 128 are mma, 128 round x, 32 are ldmatrix and 100 copy. mma.sync can
/// reach some 290 TFLOP/s on an H200; busy for 70 to 75 % of the time, 200 to 220 TFLOP/s, 1.1 ms
/// for B10. Where tiles are few, split-K is used: its model expects 56 us for B6, and 52 us for B7
/// with five parts.
/// @expect on --n 1 --c 32 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect loads_per_output.x 32 * 46 * 46 / (16 * 16) / 64 / 4 = 1.0332, tiles of 64 filters
/// @expect bytes_per_lane.x.async 16
/// @expect loads_per_output.workspace 32 * 3 * 3 / 64 / 4 = 1.125, rounded weights
/// @expect excess.shared.load 0, of ldmatrix
/// **Costs.** Workspace for rounded weights and parts of y. A tile has at least 64 filters (or 16):
/// groups with fewer leave it partly empty. Unless C / groups is a multiple of 4, copies have 4
/// bytes. Not supported: fp32, NCHW, other maps, GPUs before compute capability 8.0.
/// **Try.** Count the steps of a 7 x 7 filter with 3 channels, then pad the channels to 4: when do
/// 16-byte copies pay for a third more products?
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_copies.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_plan.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/gemm/shared/mma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// out = in, rounded to TF32, [count]. Grid <= kMaxFlatBlocks, block kFlatThreads.
__global__ void conv2d_implicit_gemm_mma_tf32_round_weights(std::int64_t count, const float* in,
                                                            float* out) {
  for (const std::int64_t i : grid_stride<kFlatThreads>(count)) {
    out[i] = __uint_as_float(ptx::to_tf32(in[i]));
  }
}

/// y [N][P][Q][K] of a product of x [N][H][W][C] and weights rounded to TF32. A split sums up its
/// share of the steps and writes it to out + split * split_size. bias [K] or null.
/// Grid (tiles, <= groups, splits), tiles of filters fastest. Block (Shape::kShape.threads()).
template <class Shape, bool kInFours>
__global__ void __launch_bounds__(Shape::kShape.threads(), Shape::kShape.blocks)
    conv2d_implicit_gemm_mma_tf32_mma(GatheredGemm product, int tiles_n, std::int64_t pixel_count,
                                      std::int64_t split_size, const float* x, const float* weights,
                                      const float* bias, float* out) {
  static constexpr GatheredShape S = Shape::kShape;
  using Copy = std::conditional_t<kInFours, FourAtATime<S>, OneAtATime<S>>;
  using TileA = gemm::MmaTile<TileOrder::along_k, S.M>;
  using Sums = gemm::MmaSums<S.warp_m / 16, S.warp_n / 8, true, false>;
  float* const tiles = dynamic_shared<float>();  // [S.stages] tiles of pixels and of filters
  float* const table = tiles + S.stages * S.stage_floats();
  auto* const outs = reinterpret_cast<std::int64_t*>(table + S.M * kRowBytes / 4);  // [S.M]
  const std::int64_t m0 = std::int64_t{blockIdx.x / static_cast<unsigned>(tiles_n)} * S.M;
  const int n0 = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles_n)) * S.N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S.N / S.warp_n) * S.warp_m;
  const int warp_n = warp % (S.N / S.warp_n) * S.warp_n;
  const int rows = static_cast<int>(pixel_count - m0 < S.M ? pixel_count - m0 : S.M);
  const Depth depth = share_of(depth_of(product, m0, rows), static_cast<int>(blockIdx.z),
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
    const Copy copy(product, {m0, pixel_count, n0, group, depth.end}, x, weights, table);
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
      if (bias != nullptr) {
        first += bias[channel];
        if (both) second += bias[channel + 1];
      }
      first = activated(product.activation, first);
      second = activated(product.activation, second);
      if (in_pairs) {
        *reinterpret_cast<float2*>(out + at + channel) = {first, second};
      } else {
        out[at + channel] = first;
        if (both) out[at + channel + 1] = second;
      }
    });
  }
}

GatheredGemm product_of(const Conv2dProblem& conv) {
  const int channels = conv.C / conv.groups, filters = conv.K / conv.groups;
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  GatheredGemm product = gathered_gemm(forward_product(conv), {.group = filters * taps * channels,
                                                               .first = 0,
                                                               .r = std::int64_t{conv.S} * channels,
                                                               .s = channels,
                                                               .f = taps * channels});
  product.activation = conv.activation;
  return product;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.map != TileMap::row_major) {
    return text("the map ", name_of(conv.map), ": this kernel knows only row_major");
  }
  return why_not_gathered(conv, std::int64_t{conv.R} * conv.S * (conv.C / conv.groups));
}

std::int64_t weights_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.K} * (conv.C / conv.groups) * conv.R * conv.S;
}

/// The same, so that what follows them begins at 16 bytes.
std::int64_t padded_weights_of(const Conv2dProblem& conv) {
  return ceil_div<std::int64_t>(weights_of(conv), 4) * 4;
}

std::int64_t outputs_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.P * conv.Q * conv.K;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const int splits = plan_gathered(product_of(conv), true).splits;
  const std::int64_t parts = splits > 1 ? splits * outputs_of(conv) : 0;
  return static_cast<std::size_t>(padded_weights_of(conv) + parts) * sizeof(float);
}

using Kernel = decltype(&conv2d_implicit_gemm_mma_tf32_mma<SmallGathered, false>);

/// The kernels of a shape.
struct Kernels {
  GatheredShape shape;
  Kernel four_at_a_time, one_at_a_time;
};

template <class Shape>
constexpr Kernels kKernels = {Shape::kShape, conv2d_implicit_gemm_mma_tf32_mma<Shape, true>,
                              conv2d_implicit_gemm_mma_tf32_mma<Shape, false>};

Kernel kernel_of(const GatheredShape& shape, bool in_fours) {
  Kernel kernel = nullptr;
  for (const Kernels& kernels :
       {kKernels<ThinGathered>, kKernels<SmallGathered>, kKernels<NarrowGathered>,
        kKernels<MediumGathered>, kKernels<LargeGathered>}) {
    if (kernels.shape == shape) kernel = in_fours ? kernels.four_at_a_time : kernels.one_at_a_time;
  }
  return kernel;
}

/// x [N][H][W][C], weights [K][R][S][C/groups], bias [K] or null, y [N][P][Q][K].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* bias = arrays.bias;
  float* const y = arrays.y;
  float* const rounded = context.workspace_as<float>();
  float* const parts = rounded + padded_weights_of(conv);
  launch(conv2d_implicit_gemm_mma_tf32_round_weights,
         {blocks_for(weights_of(conv), kFlatThreads, kMaxFlatBlocks), kFlatThreads},
         weights_of(conv), arrays.weights, rounded);

  GatheredGemm product = product_of(conv);
  const auto [shape, splits, seconds] = plan_gathered(product, true);
  const bool is_split = splits > 1;
  if (is_split) product.activation = Activation::none;  // of a part, it would not add up
  const bool in_fours = channels_in_fours(product) && product.fits_ints(shape.M) &&
                        reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  const int tiles_n = ceil_div(product.filters, shape.N);
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), shape.M) * tiles_n;
  const dim3 grid(blocks_for(tiles, 1), blocks_for(product.groups, 1, kMaxGridYZ),
                  static_cast<unsigned>(splits));
  launch(kernel_of(shape, in_fours),
         {grid, static_cast<unsigned>(shape.threads()), shape.shared_bytes()}, product, tiles_n,
         product.pixels(), is_split ? outputs_of(conv) : 0, x, static_cast<const float*>(rounded),
         is_split ? nullptr : bias, is_split ? parts : y);
  if (is_split) {
    launch_sum_splits(parts, splits, outputs_of(conv), bias, 1, conv.K, conv.activation, y);
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const GatheredGemm product = product_of(conv);
  return in_words(product, plan_gathered(product, true));
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_mma_tf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
