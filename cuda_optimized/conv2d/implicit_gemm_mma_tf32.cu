/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d in NHWC on the tensor cores: implicit GEMM, factors rounded to TF32.
///
/// - Before: implicit_gemm_cp_async.cu (float arithmetic, NCHW)
/// - After:  implicit_gemm_wgmma_tf32.cu (Hopper: the copy engine finds the windows)
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
/// Each thread copies the same 4 steps of k for several pixels: it finds r, s and c once a stage,
/// by multiplications instead of divisions. Where a pixel's window begins is the same in all
/// stages: a table in shared memory holds it. Padding is a copy of zero bytes, which cp.async fills
/// with zeros. Both factors lie along k, so that ldmatrix loads all fragments (gemm/mma_tf32.cu
/// explains those).
///
/// **Expect.** The time of the product of N*P*Q x K x R*S*C/G (B10: 50176 x 512 x 4608), at 160 to
/// 170 TFLOP/s as mma_tf32 has it: 1400 us for B10, 105 us for B4, 90 us for B6. Windows overlap,
/// so that most copies find their bytes in L2.
/// Measured on one H200 with fewer copies unrolled: 2050 us, 89 us and 131 us. The addresses of the
/// copies cost what the prediction left out, and B6 has too few tiles for 132 SMs: split-K would
/// help.
/// **Costs.** A tile has 128 or 64 pixels and filters: fewer filters a group leave the rest of the
/// tile empty, and a depthwise convolution uses 1 / 64 of it. Channels that are no multiple of 4,
/// and arrays that do not begin at 16 bytes, are copied 4 bytes at a time. Declined: fp32 problems,
/// NCHW, GPUs before compute capability 8.0, sums of 2^31 products.
/// **Try.** Count the steps of a filter of 7 x 7 and 3 channels, then pad the channels to 4: when
/// do 16-byte copies pay for a third more products?
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/gathered_gemm_mma.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using Shapes = GatheredShapes<TileOrder::along_k>;

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
          .weights_c = 1,
          .weights_f = taps * channels,
          .by_channels = FastDivision(channels),
          .by_taps_across = FastDivision(conv.S)};
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.map != TileMap::row_major) {
    return text("the map ", name_of(conv.map), ": this kernel knows only row_major");
  }
  return why_not_gathered(conv, std::int64_t{conv.R} * conv.S * (conv.C / conv.groups));
}

/// x [N][H][W][C], weights [K][R][S][C/groups], bias [K] or null, y [N][P][Q][K].
void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* x = arrays.in<float>("x");
  const float* weights = arrays.in<float>("weights");
  const float* bias = arrays.in_or_null<float>("bias");
  const GatheredGemm product = product_of(conv);
  const bool in_fours =
      product.channels % 4 == 0 &&
      (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(weights)) % 16 == 0;
  Shapes::launch(product, in_fours, x, weights, bias, arrays.out<float>("y"));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_mma_tf32() {
  return {.supports = supports, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
