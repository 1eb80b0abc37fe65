/// @file implicit_gemm_register_tile.cu
/// @brief conv2d as a matrix product: a thread computes 8 x 8 sums in registers.
///
/// - Before: implicit_gemm_tiled.cu (two loads from shared memory for each multiply-add)
/// - After:  implicit_gemm_hoisted.cu (decodes pixels once, and taps by a table)
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** Eight weights and eight elements of x make 64 products. A thread that holds 8 x 8
/// sums loads 16 values for 64 multiply-adds, one for four instead of two for one. A block of 256
/// threads then computes 128 filters x 128 pixels, 8 steps of k at a time.
///
///                            x: 8 values of a row
///                            [ . . . . . . . . ]
///       weights: 8 values    + - - - - - - - - +
///       of a column     [.]  | . . . . . . . . |     one step of k: 64 multiply-adds
///                       [.]  | . . . . . . . . |     for 16 loads
///                       ...  | . . . . . . . . |
///                            + - - - - - - - - +
///
/// **Expect.** Shared memory is no longer the limit. Decoding is: a thread gathers 4 elements a
/// step, with four divisions each (the pixel's, and k's), some 300 instructions beside 512
/// multiply-adds. 20 to 25 TFLOP/s on an H200, 10 to 12 ms for B10 (64x512x28x28, 512 filters 3x3).
/// **Costs.** 64 registers for the sums. The transposed store of the weights' tile meets eight rows
/// in the same bank. Small problems use 32 x 32 tiles, which have more loads for each multiply-add,
/// but leave fewer threads without work. Declines what why_no_product_row_by_row() names.
/// **Try.** Exchange the two loops over i and j around the multiply-adds. Does the compiler care?
/// And if the loop over k stands inside of both?
#include "cuda_optimized/conv2d/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTileK = 8;  ///< Steps of k a tile.

/// The sums of a block, kTileM filters x kTileN pixels, and of a thread.
template <int kTileM_, int kTileN_, int kThread_>
struct Tiles {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_;
  static constexpr int kThread = kThread_;  ///< kThread filters x kThread pixels
  static constexpr int kThreadsN = kTileN / kThread;
  static constexpr int kThreads = kTileM / kThread * kThreadsN;
  static_assert(kTileM * kTileK % kThreads == 0 && kTileN * kTileK % kThreads == 0);
};
using Large = Tiles<128, 128, 8>;
using Small = Tiles<32, 32, 4>;

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid (ceil(pixels/kTileN), <= ceil(filters/kTileM), <= groups), block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 2)
    conv2d_implicit_gemm_register_tile(Conv2dProblem conv, const float* x, const float* weights,
                                       const float* bias, float* y) {
  __shared__ float w_tile[kTileK][T::kTileM];  // [k][m]: transposed, so that m is contiguous
  __shared__ float x_tile[kTileK][T::kTileN];  // [k][j]

  const ProductSizes sizes(conv);
  const int group_c = conv.C / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_m = thread / T::kThreadsN * T::kThread;
  const int thread_j = thread % T::kThreadsN * T::kThread;
  const int j0 = static_cast<int>(blockIdx.x) * T::kTileN;  // the block's first pixel

  // grid.y and grid.z end at 65535: with more filters or groups, a block takes several tiles.
  for (int group = static_cast<int>(blockIdx.z); group < conv.groups;
       group += static_cast<int>(gridDim.z)) {
    const std::int64_t first_filter = std::int64_t{group} * sizes.filters;
    for (std::int64_t m0 = std::int64_t{blockIdx.y} * T::kTileM; m0 < sizes.filters;
         m0 += std::int64_t{gridDim.y} * T::kTileM) {
      float sums[T::kThread][T::kThread] = {};
      for (int k0 = 0; k0 < sizes.depth; k0 += kTileK) {
        // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
#pragma unroll
        for (int e = 0; e < T::kTileM * kTileK / T::kThreads; ++e) {
          const int i = thread + e * T::kThreads;
          const int k = i % kTileK;  // neighbouring threads, neighbouring weights
          const int m = i / kTileK;
          w_tile[k][m] = m0 + m < sizes.filters && k0 + k < sizes.depth
                             ? weights[(first_filter + m0 + m) * sizes.depth + k0 + k]
                             : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < T::kTileN * kTileK / T::kThreads; ++e) {
          const int i = thread + e * T::kThreads;
          const int j = j0 + i % T::kTileN;
          const int k = k0 + i / T::kTileN;
          float element = 0.0f;
          if (k < sizes.depth && j < sizes.pixels) {
            const int c = k / conv.S / conv.R, r = k / conv.S % conv.R, s = k % conv.S;
            const int n = j / sizes.image_pixels;
            const int p = j / conv.Q % conv.P, q = j % conv.Q;
            const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
            const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
            if (h >= 0 && h < conv.H && w >= 0 && w < conv.W) {
              element = x[x_at(n, group * group_c + c, h, w)];
            }
          }
          x_tile[i / T::kTileN][i % T::kTileN] = element;
        }
        __syncthreads();  // separates these stores from the loads below
#pragma unroll
        for (int k = 0; k < kTileK; ++k) {
          float w_values[T::kThread], x_values[T::kThread];
#pragma unroll
          for (int i = 0; i < T::kThread; ++i) w_values[i] = w_tile[k][thread_m + i];
#pragma unroll
          for (int i = 0; i < T::kThread; ++i) x_values[i] = x_tile[k][thread_j + i];
#pragma unroll
          for (int i = 0; i < T::kThread; ++i) {
#pragma unroll
            for (int e = 0; e < T::kThread; ++e) sums[i][e] += w_values[i] * x_values[e];
          }
        }
        __syncthreads();  // separates these loads from the next step's stores
      }
#pragma unroll
      for (int i = 0; i < T::kThread; ++i) {
        if (m0 + thread_m + i >= sizes.filters) break;
        const std::int64_t filter = first_filter + m0 + thread_m + i;
        const float start = bias ? bias[filter] : 0.0f;
#pragma unroll
        for (int e = 0; e < T::kThread; ++e) {
          const int j = j0 + thread_j + e;
          if (j >= sizes.pixels) break;
          const int n = j / sizes.image_pixels, pixel = j % sizes.image_pixels;
          y[(std::int64_t{n} * conv.K + filter) * sizes.image_pixels + pixel] = start + sums[i][e];
        }
      }
    }
  }
}

/// Launches the kernel with these tiles.
template <class T>
void launch_with(const Conv2dProblem& conv, const Arguments& arrays) {
  const ProductSizes sizes(conv);
  const dim3 grid(blocks_for(sizes.pixels, T::kTileN),
                  blocks_for(sizes.filters, T::kTileM, kMaxGridYZ),
                  blocks_for(conv.groups, 1, kMaxGridYZ));
  launch(conv2d_implicit_gemm_register_tile<T>, {grid, dim3(T::kThreads)}, conv,
         arrays.in<float>("x"), arrays.in<float>("weights"), arrays.in_or_null<float>("bias"),
         arrays.out<float>("y"));
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const ProductSizes sizes(conv);
  if (is_small<Large::kTileM, Large::kTileN>(sizes)) {
    launch_with<Small>(conv, arrays);
  } else {
    launch_with<Large>(conv, arrays);
  }
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_register_tile() {
  return {.supports = why_no_product_row_by_row, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
