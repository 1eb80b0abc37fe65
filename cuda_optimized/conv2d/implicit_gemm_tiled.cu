/// @file implicit_gemm_tiled.cu
/// @brief conv2d as a matrix product: a block stages tiles of weights and columns.
///
/// - Before: cuda_naive/conv2d/implicit_gemm.cu (every thread reads its own filter and window)
/// - After:  implicit_gemm_register_tile.cu (a thread computes 8 x 8 sums)
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A block computes 32 filters x 32 pixels. Each weight is needed for 32 pixels, and
/// each gathered element of x by 32 filters: so both wait in shared memory, 32 steps of k at a
/// time, and an index is decoded once for 32 multiply-adds. The columns that im2col would write to
/// memory exist one tile at a time.
///
///                    k ->  + - - +          32 x 32 elements of x, gathered: the windows of
///                          |  x  |          32 pixels, 32 taps of each
///                          + - - +
///         + - - + - - +    + - - +
///      m  |weights| next|  |  y  |          1024 threads: one load of each tile, one sum
///         + - - + - - +    + - - +
///
/// **Expect.** Decoding falls 32 times, to some three instructions for two multiply-adds. What
/// stays are two loads from shared memory for each multiply-add (one of them a broadcast), and an
/// SM serves one warp's request a cycle: 1/8 of the arithmetic peak at most. About 5.5 TFLOP/s on
/// an H200, 43 ms for B10 (64x512x28x28, 512 filters 3x3).
/// **Costs.** Two barriers a step, 8 KB of shared memory, 1024 threads a block. Edges are computed
/// as whole tiles. Declines what why_no_product() names.
/// **Try.** Let threadIdx.x run along m instead of j. Which of the loads and stores suffer, and
/// what does it do to the banks of shared memory?
#include "cuda_optimized/conv2d/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTile = 32;  ///< Filters, pixels and steps of k of a tile.

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid (ceil(pixels/32), <= ceil(filters/32), <= groups), block (32, 32).
__global__ void __launch_bounds__(kTile* kTile)
    conv2d_implicit_gemm_tiled(Conv2dProblem conv, const float* x, const float* weights,
                               const float* bias, float* y) {
  __shared__ float w_tile[kTile][kTile];  // [m][k]
  __shared__ float x_tile[kTile][kTile];  // [k][j]

  const ProductSizes sizes(conv);
  const int group_c = conv.C / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int j = static_cast<int>(blockIdx.x) * kTile + tx;  // this thread's pixel

  // grid.y and grid.z end at 65535: with more filters or groups, a block takes several tiles.
  for (int group = static_cast<int>(blockIdx.z); group < conv.groups;
       group += static_cast<int>(gridDim.z)) {
    for (std::int64_t m0 = std::int64_t{blockIdx.y} * kTile; m0 < sizes.filters;
         m0 += std::int64_t{gridDim.y} * kTile) {
      const std::int64_t m = m0 + ty;
      const std::int64_t filter = std::int64_t{group} * sizes.filters + m;
      float sum = 0.0f;
      for (std::int64_t k0 = 0; k0 < sizes.depth; k0 += kTile) {
        // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
        const std::int64_t w_k = k0 + tx;
        w_tile[ty][tx] =
            m < sizes.filters && w_k < sizes.depth ? weights[filter * sizes.depth + w_k] : 0.0f;
        float element = 0.0f;
        if (k0 + ty < sizes.depth && j < sizes.pixels) {
          const int k = static_cast<int>(k0) + ty;
          const int c = k / conv.S / conv.R, r = k / conv.S % conv.R, s = k % conv.S;
          const int n = j / sizes.image_pixels;
          const int p = j / conv.Q % conv.P, q = j % conv.Q;
          const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
          const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
          if (h >= 0 && h < conv.H && w >= 0 && w < conv.W) {
            element = x[x_at(n, group * group_c + c, h, w)];
          }
        }
        x_tile[ty][tx] = element;
        __syncthreads();  // separates these stores from the loads below
        for (int k = 0; k < kTile; ++k) sum += w_tile[ty][k] * x_tile[k][tx];
        __syncthreads();  // separates these loads from the next step's stores
      }
      if (m < sizes.filters && j < sizes.pixels) {
        if (bias) sum += bias[filter];
        const int n = j / sizes.image_pixels, pixel = j % sizes.image_pixels;
        y[(std::int64_t{n} * conv.K + filter) * sizes.image_pixels + pixel] = sum;
      }
    }
  }
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const ProductSizes sizes(conv);
  const dim3 grid(blocks_for(sizes.pixels, kTile), blocks_for(sizes.filters, kTile, kMaxGridYZ),
                  blocks_for(conv.groups, 1, kMaxGridYZ));
  launch(conv2d_implicit_gemm_tiled, {grid, dim3(kTile, kTile)}, conv, arrays.in<float>("x"),
         arrays.in<float>("weights"), arrays.in_or_null<float>("bias"), arrays.out<float>("y"));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_tiled() {
  return {.supports = why_no_product, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
