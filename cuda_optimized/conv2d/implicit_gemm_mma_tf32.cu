/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d in NHWC on the tensor cores: implicit GEMM, factors rounded to TF32.
///
/// - Before: implicit_gemm_cp_async.cu
/// - After: implicit_gemm_wgmma_tf32.cu, direct_mma_tf32.cu
/// - The kernel: gathered_gemm_mma.cuh, cuda_optimized/gemm/mma_tile.cuh
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A convolution is a matrix product whose factor a nobody stores: a row for each
/// pixel of y, and along k the inputs of its window, tap after tap. In NHWC the channels of a pixel
/// lie side by side: 32 steps of k are one run of memory or a few, which cp.async copies 16 bytes
/// at a time. Once a pixel, a block finds where its window begins, and a bit for each row and
/// column of taps in x; once a stage, a thread finds its tap and channel. A copy is then a test of
/// two bits, an addition and cp.async. A small kernel rounds the weights beforehand.
///
///       a     k = (r, s, c), c fastest               b     k = (r, s, c)
///       pixel + - - - - - - - - - - - - +            filter + - - - - - - - - - - - - +
///       n,p,q | x[p + r - pad][q + s - pad][c] |     f      | w[f][r][s][c]           |
///             + - - - - - - - - - - - - +                   + - - - - - - - - - - - - +
///
/// **Expect.** A stage of the large tile, 128 x 256, brings 48 KB for 1 M multiply-adds. Of a
/// warp's 420 instructions a stage, 128 are mma, 128 round x, 32 are ldmatrix and 100 copy.
/// mma.sync can reach some 290 TFLOP/s on an H200; busy for 70 to 75 % of the time, 200 to 220, 1.1
/// ms for B10. Where tiles are too few, blocks share the sums of a tile: the model that chooses
/// tile and parts expects 56 us for B6, and 52 for B7, with five parts.
/// **Costs.** Workspace for rounded weights and parts of y. A tile has at least 64 filters (or 16):
/// groups with fewer leave it partly empty. Unless C / groups is a multiple of 4, copies have 4
/// bytes. Declined: fp32, NCHW, other maps, GPUs before compute capability 8.0.
/// **Try.** Count the steps of a 7 x 7 filter with 3 channels, then pad the channels to 4: when do
/// 16-byte copies pay for a third more products?
#include "core/conv2d_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/gathered_gemm_mma.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// out = in, rounded to TF32, [count]. Grid <= kMaxFlatBlocks, block kFlatThreads.
__global__ void round_weights(std::int64_t count, const float* in, float* out) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kFlatThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kFlatThreads) {
    out[i] = __uint_as_float(ptx::to_tf32(in[i]));
  }
}

GatheredGemm product_of(const Conv2dProblem& conv) {
  const int channels = conv.C / conv.groups, filters = conv.K / conv.groups;
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  return {.N = conv.N,
          .rows = conv.P,
          .columns = conv.Q,
          .first = {-conv.pad.top, -conv.pad.left},
          .stride = conv.stride,
          .H = conv.H,
          .W = conv.W,
          .channels = channels,
          .source_channels = conv.C,
          .R = conv.R,
          .S = conv.S,
          .tap = conv.dilation,
          .filters = filters,
          .out_channels = conv.K,
          .out_H = conv.P,
          .out_W = conv.Q,
          .out_first = {0, 0},
          .out_stride = {1, 1},
          .groups = conv.groups,
          .weights_group = filters * taps * channels,
          .weights_first = 0,
          .weights_r = std::int64_t{conv.S} * channels,
          .weights_s = channels,
          .weights_f = taps * channels,
          .by_channels = FastDivision(channels),
          .by_taps_across = FastDivision(conv.S),
          .by_columns = FastDivision(conv.Q),
          .by_rows = FastDivision(conv.P),
          .activation = conv.activation};
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

/// x [N][H][W][C], weights [K][R][S][C/groups], bias [K] or null, y [N][P][Q][K].
void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* x = arrays.in<float>("x");
  const GatheredGemm product = product_of(conv);
  float* const rounded = arrays.workspace<float>();
  launch(round_weights, {blocks_for(weights_of(conv), kFlatThreads, kMaxFlatBlocks), kFlatThreads},
         weights_of(conv), arrays.in<float>("weights"), rounded);
  const bool in_fours = channels_in_fours(product) && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  launch_gathered(product, plan_gathered(product, true), in_fours, x, rounded,
                  arrays.in_or_null<float>("bias"), rounded + padded_weights_of(conv),
                  outputs_of(conv), arrays.out<float>("y"));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const GatheredGemm product = product_of(conv);
  return in_words(product, plan_gathered(product, true));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_mma_tf32() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
