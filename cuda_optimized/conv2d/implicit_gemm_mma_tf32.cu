/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d in NHWC on the tensor cores: implicit GEMM, factors rounded to TF32.
///
/// - Before: implicit_gemm_cp_async.cu (float arithmetic, NCHW)
/// - After:  implicit_gemm_wgmma_tf32.cu (Hopper: the copy engine finds the windows),
///   direct_mma_tf32.cu (few channels)
/// - Made of: gathered_gemm_mma.cuh, cuda_optimized/gemm/mma_tile.cuh
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The convolution is a matrix product whose factor a nobody stores: a row for each
/// pixel of y, and along k the inputs that its window covers, tap after tap and channel after
/// channel. In NHWC the channels of a pixel lie side by side, so a row of 32 steps of k is one or a
/// few runs of memory, and cp.async copies it 16 bytes at a time. The weights [K][R][S][C/groups]
/// are the other factor as they lie.
///
///       a                                            b: the weights
///             k = (r, s, c), c fastest                     k = (r, s, c)
///       pixel + - - - - - - - - - - - - +            filter + - - - - - - - - - - - - +
///       n,p,q | x[p + r - pad][q + s - pad][c] |     f      | w[f][r][s][c]           |
///             + - - - - - - - - - - - - +                   + - - - - - - - - - - - - +
///
/// Tensor cores are fast enough for everything else to be in their way. So
/// - what a copy depends on is found where it changes: of a pixel once, where its window begins and
///   which rows and columns of taps lie inside of x (a bit each); of a stage once, the thread's tap
///   and channel, by multiplications instead of divisions. What is left of a copy is a test of two
///   bits, an addition, and cp.async, which fills padding with zeros;
/// - the weights are rounded to TF32 once, by a small kernel, and not by every warp that loads them
///   (cvt.rna is no instruction, but a comparison with infinity and an addition). Those of x are
///   rounded in registers: writing all of x again costs as much as that saves;
/// - both factors lie along k, so that ldmatrix loads all fragments (gemm/mma_tf32.cu explains
///   those); fragments are loaded 8 steps of k before they are needed, also across the barrier
///   between two stages, and copies are asked for while products are under way (mma_tile.cuh);
/// - a block has the largest tile that registers allow, 128 x 256: a stage brings 48 KB for 1 M
///   multiply-adds;
/// - where there are too few tiles for all SMs, several blocks share the sums of a tile. A second
///   kernel adds their parts, always in the same order. A small model chooses tile and parts.
///
/// **Expect.** The product of N*P*Q x K x R*S*C/G (B10: 50176 x 512 x 4608). 8 warps an SM need 128
/// mma.sync a stage each; a loop of these and nothing else, with their ldmatrix and a barrier,
/// does 290 TFLOP/s on an H200 (318 without), which wgmma's 495 are out of reach for. Of 420
/// instructions a stage, 128 are mma, 128 round x, 32 are ldmatrix, 100 copy: a third of the issue
/// slots stay empty, and the tensor cores should be busy for 70 to 75 % of the time: 200 to 220
/// TFLOP/s for B10, some 1150 us. The constants of the model that chooses tiles and parts were
/// fitted to first measurements; by it B6 takes 60 us and B7, with five parts a sum, 55.
/// Counters on an H200: mma has to wait for the one before (math pipe throttle: 1.6 of 2 warps at
/// any time); barriers, copies and shared memory (47 % of its bandwidth) hardly matter.
/// **Costs.** Workspace: the weights once more, and the parts of y. A tile has 64 pixels and
/// filters or more (or 128 pixels and 16 filters): fewer leave the rest of it empty, and a
/// depthwise convolution uses 1 / 16. 16-byte copies want channels in fours, x at 16 bytes, R + S
/// <= 31 and offsets in an image that fit an int; else copies are of 4 bytes, and find most things
/// anew each time. The large tile takes 200 KB of shared memory, which GPUs before Hopper do not
/// have. Declined: fp32 problems, NCHW, GPUs before compute capability 8.0, sums of 2^31 products.
/// **Try.** Count the steps of a filter of 7 x 7 and 3 channels, then pad the channels to 4: when
/// do 16-byte copies pay for a third more products?
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
