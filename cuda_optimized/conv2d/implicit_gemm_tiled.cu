/// @file implicit_gemm_tiled.cu
/// @brief conv2d as a matrix product: a block stages tiles of weights and columns.
///
/// - Before: cuda_naive/conv2d/implicit_gemm.cu
/// - After: implicit_gemm_register_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A block computes 32 filters x 32 pixels. Each weight is needed for 32 pixels, and
/// each gathered element of x by 32 filters. So both wait in shared memory, 32 steps of k at a
/// time, and an index is decoded once for 32 multiply-adds. The columns that im2col would write to
/// memory exist one tile at a time.
///
///                    k ->  + - - +          32 x 32 elements of x, gathered: the windows of
///                          |  x  |          32 pixels, 32 taps of each
///                          + - - +
///         + - - + - - +    + - - +
///      m  |weights| next|  |  y  |          256 threads: four loads of each tile, and four sums
///         + - - + - - +    + - - +          of a column, 8 rows apart
///
/// **Expect.** Decoding is still most of the work: an element of x takes 140 instructions with four
/// divisions, more than 4 for each of the 32 multiply-adds that it serves. With the loads from
/// shared memory (one for two multiply-adds, as the compiler loads four steps of w_tile at once)
/// and the copies there are 6.5 instructions for a multiply-add. Of the 65 TFLOP/s of an H200, 10
/// are left; if four fifths of the issue slots are used, 8: 30 ms for B10 (64x512x28x28, 512
/// filters 3x3), 0.93 ms for B4 (32x64x56x56, 64 filters 3x3).
/// **Costs.** Two barriers a step, and 8 KB of shared memory. Edges are computed as whole tiles.
/// Declines layouts other than NCHW, types other than float32, maps other than row_major, and
/// products whose sizes do not fit 31 bits.
/// **Try.** Let threadIdx.x run along m instead of j. Which of the loads and stores suffer, and
/// what does it do to the banks of shared memory?
#include "core/conv2d_problem.hpp"
#include "cuda_optimized/conv2d/product_sizes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTile = 32;                   ///< Filters, pixels and steps of k of a tile.
constexpr int kThreadRows = 8;              ///< Rows of threads of a block.
constexpr int kSums = kTile / kThreadRows;  ///< Sums of a thread, kThreadRows rows apart.

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid (ceil(pixels/32), <= ceil(filters/32), <= groups), block (32, 8).
__global__ void __launch_bounds__(kTile* kThreadRows)
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
      const std::int64_t first_filter = std::int64_t{group} * sizes.filters + m0;
      float sums[kSums] = {};
      for (int k0 = 0; k0 < sizes.depth; k0 += kTile) {
        // All loads, then all stores: a store waits for its load, and would hold up those behind
        // it. Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
        float w_loaded[kSums], x_loaded[kSums];
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          const int row = ty + i * kThreadRows;
          w_loaded[i] = m0 + row < sizes.filters && k0 + tx < sizes.depth
                            ? weights[(first_filter + row) * sizes.depth + k0 + tx]
                            : 0.0f;
          x_loaded[i] = 0.0f;
          const int k = k0 + row;
          if (k < sizes.depth && j < sizes.pixels) {
            const Divided filter_row = divided(k, conv.S);
            const Divided channel = divided(filter_row.quotient, conv.R);
            const Divided image = divided(j, sizes.image_pixels);
            const Divided pixel = divided(image.remainder, conv.Q);
            const int c = channel.quotient, r = channel.remainder, s = filter_row.remainder;
            const int n = image.quotient, p = pixel.quotient, q = pixel.remainder;
            const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
            const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
            if (h >= 0 && h < conv.H && w >= 0 && w < conv.W) {
              x_loaded[i] = x[x_at(n, group * group_c + c, h, w)];
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          w_tile[ty + i * kThreadRows][tx] = w_loaded[i];
          x_tile[ty + i * kThreadRows][tx] = x_loaded[i];
        }
        __syncthreads();  // separates these stores from the loads below
        for (int k = 0; k < kTile; ++k) {
          const float x_value = x_tile[k][tx];
          for (int i = 0; i < kSums; ++i) sums[i] += w_tile[ty + i * kThreadRows][k] * x_value;
        }
        __syncthreads();  // separates these loads from the next step's stores
      }
      for (int i = 0; i < kSums; ++i) {
        const int row = ty + i * kThreadRows;
        if (m0 + row >= sizes.filters || j >= sizes.pixels) break;
        const std::int64_t filter = first_filter + row;
        const int n = j / sizes.image_pixels, pixel = j % sizes.image_pixels;
        y[(std::int64_t{n} * conv.K + filter) * sizes.image_pixels + pixel] =
            activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i]);
      }
    }
  }
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const ProductSizes sizes(conv);
  const dim3 grid(blocks_for(sizes.pixels, kTile), blocks_for(sizes.filters, kTile, kMaxGridYZ),
                  blocks_for(conv.groups, 1, kMaxGridYZ));
  launch(conv2d_implicit_gemm_tiled, {grid, dim3(kTile, kThreadRows)}, conv, arrays.in<float>("x"),
         arrays.in<float>("weights"), arrays.in_or_null<float>("bias"), arrays.out<float>("y"));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_tiled() {
  return {.supports = why_no_product_row_by_row, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
