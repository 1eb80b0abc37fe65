/// @file implicit_gemm.cu
/// @brief Naive implicit GEMM: one thread per output; each index is decoded by division.
///
/// - Before: im2col_gemm.cu
/// - After: cuda_optimized/conv2d/implicit_gemm/tiled.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The columns of im2col are copies of x, so the GEMM can read x itself. A thread
/// computes one element of the GEMM: filter m, pixel j. At every step k it decodes k into channel
/// and tap, and computes the address of that element of its window in x. Neighbouring threads have
/// neighbouring q, so their loads and stores are coalesced.
///
///     weights [M][k]                  x, seen as [k][j]                 y [M][j]
///
///     m -> . . k . . .       *        k -> c = k / (R * S)        =     sum over k
///                                          r = k / S % R
///                                          s = k % S
///                                     j -> n = j / (P * Q),  p = j / Q % P,  q = j % Q
///     M = K / groups filters, j = 0 ... N * P * Q - 1, k = 0 ... C / groups * R * S - 1
///
/// **Expect.** The two loads of direct.cu per multiply-add and some 60 more instructions: 40 for
/// two divisions with remainder, 20 for addresses and bounds. An SM issues 128 lane instructions
/// per cycle, so at most 1/60 of the peak is reached: 1.2 TFLOP/s, 200 ms for B10 on an H200.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.x 16 * 46 * 46 / (16 * 16) = 132.25, of 16 * 3 rows of taps 46 are in x
/// @expect loads_per_output.weights 16 * 46 * 46 / (16 * 16) = 132.25, as in direct.cu
/// @expect launches 1, no columns are made
/// @expect barriers_per_block 0
/// **Costs.** Supports layout NCHW, float32 and filters of fewer than 2^31 weights only.
/// **Try.** Replace the two divisions by counters for c, r and s. How close is direct.cu then?
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::conv2d {
namespace {

constexpr int kBlock = 256;  ///< Threads per block; pixels are counted through all images.

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Launch with grid
/// (<= ceil(N*P*Q/256), <= K), block 256.
__global__ void conv2d_implicit_gemm(Conv2dProblem conv, const float* x, const float* weights,
                                     const float* bias, float* y) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int depth = group_c * conv.R * conv.S;  // GEMM extent K: multiply-adds per output
  const std::int64_t image_pixels = std::int64_t{conv.P} * conv.Q;
  const Index4 x_at{conv.C, conv.H, conv.W};

  // grid.y is limited to 65535: with more filters, a thread computes several.
  for (std::int64_t row = blockIdx.y; row < conv.K; row += gridDim.y) {
    const int filter = static_cast<int>(row);
    const int c0 = filter / group_k * group_c;  // first input channel of the filter's group
    for (std::int64_t j = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
         j < conv.N * image_pixels; j += std::int64_t{gridDim.x} * kBlock) {
      const int n = static_cast<int>(j / image_pixels);
      const int p = static_cast<int>(j % image_pixels / conv.Q);
      const int q = static_cast<int>(j % conv.Q);
      float sum = bias ? bias[filter] : 0.0f;
      for (int k = 0; k < depth; ++k) {
        const int c = k / conv.S / conv.R, r = k / conv.S % conv.R, s = k % conv.S;
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
        if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) continue;
        sum += x[x_at(n, c0 + c, h, w)] * weights[std::int64_t{filter} * depth + k];
      }
      y[(std::int64_t{n} * conv.K + filter) * image_pixels + j % image_pixels] =
          activated(conv.activation, sum);
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (std::int64_t{conv.C / conv.groups} * conv.R * conv.S > 0x7fffffff) {
    return "a filter has more than 2^31 - 1 weights";
  }
  return {};
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const dim3 grid(blocks_for(std::int64_t{conv.N} * conv.P * conv.Q, kBlock, kMaxGridX - 1),
                  blocks_for(conv.K, 1, kMaxGridYZ));
  launch(conv2d_implicit_gemm, {grid, dim3(kBlock)}, conv, arrays.x, arrays.weights, arrays.bias,
         arrays.y);
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d
