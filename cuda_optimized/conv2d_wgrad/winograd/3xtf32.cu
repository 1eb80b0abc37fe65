/// @file 3xtf32.cu
/// @brief Winograd F(3 x 3, 4 x 4) on tensor cores: its GEMMs are computed in 3xTF32, with the
/// accuracy of float.
///
/// - Before: implicit_gemm/cp_async.cu
/// - The kernels: cuda_optimized/conv2d/winograd/4x4.cu, cuda_optimized/gemm/tf32/wgmma_3xtf32.cu
/// - The same maths: cpu_reference/conv2d_wgrad/winograd.cpp
///
/// **The idea.** A quarter of the products, on tensor cores, as in conv2d/winograd/3xtf32. One of
/// its matrices is reused: V, the transformed windows of x, has the same points, tiles and kernel.
/// New are operand B, the transformed tiles of dy, and a K dimension that runs over the tiles:
///
///     forward    M [filters][tiles]    =  U [filters][channels]  V [channels][tiles]
///     here       M [channels][filters] =  V [channels][tiles]    U [tiles][filters]    U of dy
///
/// The GEMM reads operand A K-major, as V is stored, and operand B MN-major. So U has the filters
/// innermost: a block reads tiles of 32 filters along the rows of dy and transposes them in shared
/// memory while a tile has 16 elements, not yet 36. M is small and K is large: split-K uses as many
/// parts as suit an H200, and adds them in a fixed order. Point 1, down and across, is the plain
/// sum of a tile of dy, and so U contains db's terms.
///
/// **Expect.** As the forward pass: the GEMMs of B10 (64x512x28x28, 512 filters) take 590 us at 108
/// TFLOP/s, V and U 80 us each, dw 20 us. Predicted on an H200: B10 780 us, B9 620 us, B4 95 us, B6
/// 70 us, B7 75 us.
/// @expect on --n 2 --c 64 --h 16 --w 16 --k 32 --r 3 --s 3 --pad 1
/// @expect launches 4, V, U, products, dw and db
/// @expect requests.shared.async 36 * (1 + 4) = 180, for each product a step of V and of U
/// @expect loads_per_output.dy 2 * 32 * 256 / 18464 = 0.8873, each number once
/// @expect excess.shared.store 0, no bank twice where tiles are turned
/// **Costs.** Compute capability 9.0 only. Channels are rounded up to 64, filters and tiles to 32.
/// Rounding errors, workspace, and NaN in all taps, as in the forward pass. Not supported: all but
/// 3 x 3 with stride and dilation 1, NHWC, and other types than float32.
/// **Try.** A training step has computed V in its forward pass. What would it save to keep V, and
/// what would it cost?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/winograd/winograd_transforms.cuh"
#include "cuda_optimized/conv2d/winograd/4x4.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/winograd_gradient.cuh"
#include "cuda_optimized/gemm/tf32/wgmma_3xtf32.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

using W = Gradient4;
constexpr int kTaps = 3;           ///< That come out of a tile, along each axis.
constexpr int kBlockChannels = 8;  ///< Of a block that transforms sums.

/// dy [N][K][P][Q], u [frequency][group][tile][filter], bias [tile block][K].
/// Grid (tile blocks * blocks of filters of all groups), block kFilters * kBlockTiles.
__global__ void __launch_bounds__(kFilters* kBlockTiles)
    conv2d_wgrad_winograd_3xtf32_dy(Conv2dProblem conv, GradientProduct product, const float* dy,
                                    float* u, float* bias) {
  constexpr int kColumns = W::kTile * kBlockTiles;  // that are adjacent, of a row of all tiles
  // The tiles [filter][row][column]; one more number a filter, so that no bank is met twice.
  __shared__ float raw[kFilters][W::kTile * kColumns + 1];
  __shared__ float sums[kBlockTiles][kFilters];
  const int thread = static_cast<int>(threadIdx.x), group_k = conv.K / conv.groups;
  const auto tile_blocks = static_cast<unsigned>(product.tile_blocks());
  const auto of_group = static_cast<unsigned>(product.k / kFilters);
  const unsigned tile_block = blockIdx.x % tile_blocks, filter_block = blockIdx.x / tile_blocks;
  const std::int64_t group = filter_block / of_group, k0 = filter_block % of_group * kFilters;
  const std::int64_t tile0 = std::int64_t{tile_block} * kBlockTiles;

  {  // a number of some filters' tiles, in the same place of each
    const conv2d::WinogradTiles tiles(conv, W::kTile);
    const int column = thread % kColumns, row = thread / kColumns % W::kTile;
    const std::int64_t tile = tile0 + column / W::kTile;
    const auto place = tiles.place(tile < tiles.all ? tile : 0);
    const int p = place.p + row, q = place.q + column % W::kTile;
    const bool inside = tile < tiles.all && p < conv.P && q < conv.Q;
    constexpr int kAtOnce = kBlockTiles * kFilters / (kColumns * W::kTile);  // filters
    const int first = thread / (kColumns * W::kTile);
    const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
    const float* const from = dy + (place.n * std::int64_t{conv.K} + group * group_k + k0) * plane;
    const std::int64_t at = std::int64_t{p} * conv.Q + q;
#pragma unroll
    for (int i = 0; i < kFilters / kAtOnce; ++i) {
      const int k = first + i * kAtOnce;
      raw[k][row * kColumns + column] = inside && k0 + k < group_k ? from[k * plane + at] : 0.0f;
    }
  }
  __syncthreads();  // separates all loads of tiles from their transforms

  const int filter = thread % kFilters, tile = thread / kFilters;
  float g[W::kN][W::kN] = {};
#pragma unroll
  for (int i = 0; i < W::kTile; ++i) {
#pragma unroll
    for (int j = 0; j < W::kTile; ++j) g[i][j] = raw[filter][i * kColumns + tile * W::kTile + j];
  }
  conv2d::both_ways(g, W::kN, [](float(&line)[W::kN]) { W::times_g(line); });
  float* const to = u + (group * product.tiles + tile0 + tile) * product.k + k0 + filter;
#pragma unroll
  for (int f = 0; f < conv2d::kFrequencies4x4; ++f)
    to[f * conv.groups * product.tiles * product.k] = g[f / W::kN][f % W::kN];

  sums[tile][filter] = 4 * g[1][1];  // 3 G has -1/2 for each number there, down and across
  __syncthreads();                   // separates the sums of tiles from that of all
  if (tile == 0 && k0 + filter < group_k) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kBlockTiles; ++i) sum += sums[i][filter];
    bias[std::int64_t{tile_block} * conv.K + group * group_k + k0 + filter] = sum;
  }
}

/// m [part][frequency][group][c][k], bias [tile block][K], dw [K][C/groups][3][3], db [K].
/// Grid (blocks of channels * blocks of filters of all groups), block kFilters * kBlockChannels.
__global__ void __launch_bounds__(kFilters* kBlockChannels)
    conv2d_wgrad_winograd_3xtf32_dw(Conv2dProblem conv, GradientProduct product, const float* m,
                                    const float* bias, float* dw, float* db) {
  constexpr int kWeights = kTaps * kTaps * kBlockChannels;  // of a filter
  __shared__ float weights[kFilters][kWeights + 1];         // so that no bank is met twice
  __shared__ float bias_sums[kBlockChannels][kFilters];
  const int thread = static_cast<int>(threadIdx.x), filter = thread % kFilters;
  const int channel = thread / kFilters;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const auto channel_blocks = static_cast<unsigned>(ceil_div(group_c, kBlockChannels));
  const auto of_group = static_cast<unsigned>(product.k / kFilters);
  const unsigned filter_block = blockIdx.x / channel_blocks;
  const std::int64_t c0 = blockIdx.x % channel_blocks * kBlockChannels;
  const std::int64_t group = filter_block / of_group, k0 = filter_block % of_group * kFilters;

  float sums[W::kN][W::kN] = {};
  const float* const from = m + (group * product.c + c0 + channel) * product.k + k0 + filter;
  for (int part = 0; part < product.parts; ++part) {
#pragma unroll
    for (int f = 0; f < conv2d::kFrequencies4x4; ++f)
      sums[f / W::kN][f % W::kN] +=
          from[part * product.m_floats() + f * conv.groups * product.c * product.k];
  }
  conv2d::both_ways(sums, kTaps, [](float(&line)[W::kN]) { W::times_a(line); });
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
#pragma unroll
    for (int j = 0; j < kTaps; ++j)
      weights[filter][(channel * kTaps + i) * kTaps + j] = sums[i][j] / (W::kScale * W::kScale);
  }
  if (c0 == 0) {
    float sum = 0.0f;
    if (k0 + filter < group_k) {
#pragma unroll 8
      for (std::int64_t block = channel; block < product.tile_blocks(); block += kBlockChannels)
        sum += bias[block * conv.K + group * group_k + k0 + filter];
    }
    bias_sums[channel][filter] = sum;
  }
  __syncthreads();  // separates all weights and sums from what other threads store of them
  const std::int64_t first_k = group * group_k + k0;
  for (int i = thread; i < kFilters * kWeights; i += kFilters * kBlockChannels) {
    const int k = i / kWeights, weight = i % kWeights;  // neighbours in dw
    if (k0 + k < group_k && weight < kTaps * kTaps * (group_c - c0))
      dw[((first_k + k) * group_c + c0) * kTaps * kTaps + weight] = weights[k][weight];
  }
  if (c0 == 0 && channel == 0 && k0 + filter < group_k) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kBlockChannels; ++i) sum += bias_sums[i][filter];
    db[first_k + filter] = sum;
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (auto reason = gemm::why_no_wgmma()) return reason;
  if (auto reason = conv2d::why_no_winograd(conv, W::kTile)) return reason;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (conv.groups > kMost / conv2d::kFrequencies4x4) return "too many groups";
  const GradientProduct product = gradient_product_of(conv);
  if (product.products > kMost / std::max(product.c * product.parts, product.tiles))
    return "2^31 or more rows of U or of sums";
  const std::int64_t filter_blocks = conv.groups * (product.k / kFilters);
  if (filter_blocks > kMost / std::max(product.tile_blocks(), product.c / kBlockChannels))
    return "too many filters, and channels or tiles";
  return {};
}

/// Floats of V, U, M and the sums of dy.
std::int64_t workspace_floats(const Conv2dProblem& conv, const GradientProduct& product) {
  return checked_product({product.products, product.c, product.tiles}, "floats of V") +
         checked_product({product.products, product.tiles, product.k}, "floats of U") +
         checked_product({product.parts, product.products, product.c, product.k}, "floats of M") +
         checked_product({product.tile_blocks(), conv.K}, "sums of dy");
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(checked_product(
      {workspace_floats(conv, gradient_product_of(conv)), sizeof(float)}, "bytes of U, V and M"));
}

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][C/groups][3][3], db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  float *dw = arrays.dw, *db = arrays.db;
  const auto clear = [](float* numbers, std::int64_t count) {
    check(cudaMemsetAsync(numbers, 0, static_cast<std::size_t>(count) * sizeof(float),
                          current_stream()));
  };
  if (conv.N == 0) {
    clear(dw, std::int64_t{conv.K} * (conv.C / conv.groups) * kTaps * kTaps);
    return clear(db, conv.K);
  }
  const GradientProduct product = gradient_product_of(conv);
  float* const v = context.workspace_as<float>();
  float* const u = v + product.v_floats();
  float* const m = u + product.u_floats();
  float* const bias = m + product.parts * product.m_floats();
  const auto filter_blocks = static_cast<unsigned>(conv.groups * (product.k / kFilters));

  conv2d::launch_windows_4x4(
      conv,
      {conv2d::WinogradShape::tensor_cores, product.products, product.k, product.tiles, product.c},
      0, conv2d::WinogradTiles(conv, W::kTile).all, arrays.x, v);
  launch(
      conv2d_wgrad_winograd_3xtf32_dy,
      {dim3(static_cast<unsigned>(product.tile_blocks()) * filter_blocks), kFilters * kBlockTiles},
      conv, product, arrays.dy, u, bias);
  gemm::launch_gemm_wgmma_3xtf32({.products = product.products,
                                  .M = static_cast<int>(product.c),
                                  .N = static_cast<int>(product.k),
                                  .K = static_cast<int>(product.tiles),
                                  .splits = product.parts,
                                  .a = v,
                                  .b = u,
                                  .c = m});
  const unsigned channel_blocks = blocks_for(conv.C / conv.groups, kBlockChannels);
  launch(conv2d_wgrad_winograd_3xtf32_dw,
         {dim3(channel_blocks * filter_blocks), kFilters * kBlockChannels}, conv, product, m, bias,
         dw, db);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return how_many(gradient_product_of(conv).parts, "part");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> winograd_3xtf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
