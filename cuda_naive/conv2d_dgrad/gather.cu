/// @file gather.cu
/// @brief Naive CUDA gather: one thread per element of dx, without atomics.
///
/// - Before: cpu_reference/conv2d_dgrad/direct.cpp
/// - After: cuda_optimized/conv2d_dgrad/implicit_gemm/residue_classes.cu,
///   cuda_optimized/conv2d_dgrad/gemm_col2im.cu, cuda_optimized/conv2d_dgrad/depthwise/nchw.cu
///
/// **The idea.** With scattering threads, several threads add to the same dx at the same time. Here
/// each thread owns one dx and finds the outputs that read it. The equation for h is solved for p;
/// p is an output only if the division leaves no remainder:
///
///     forward:  h = p * stride - pad + r * dilation
///     here:     p = (h + pad - r * dilation) / stride
///
///     stride 2, 3 taps, pad 1       h = 0:  r = 1 from p = 0
///                                   h = 1:  r = 0 from p = 1, r = 2 from p = 0
///                                   h = 2:  r = 1 from p = 1            ... alternating
///
/// **Expect.** Two loads (dy, w) per multiply-add, as in cuda_naive/conv2d/direct.cu. With stride 2
/// (B3), only every second tap along each axis leads to an output; neighbouring pixels along w use
/// different taps, so half of the lanes are inactive at every tap.
/// @expect loads_per_output.dy 64 * 46 * 46 / (16 * 16) = 529, one for each multiply-add
/// @expect loads_per_output.weights 64 * 46 * 46 / (16 * 16) = 529, another one; 46 of 48 taps
/// @expect lanes_per_output.dx.store 1, no atomics
/// @expect barriers_per_block 0
/// **Costs.** A division and a remainder per tap and axis, outside of the loop over k. Supports
/// layout NCHW only.
/// **Try.** Assign pixels with the same remainder to the lanes of a warp, w = residue + stride *
/// lane. What happens to the loads of dy and to the stores of dx?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::conv2d_dgrad {
namespace {

constexpr int kBlockW = 32;  ///< Threads along w: one warp, 128 bytes of a row.
constexpr int kBlockH = 8;   ///< Threads along h.

/// The output in [0, outputs) whose window begins at this position of the padded input; -1 if there
/// is none.
__device__ int output_at(int position, int stride, int outputs) {
  // The sign is tested first: in C, -2 % 2 is 0, but -2 / 2 is not an output.
  if (position < 0 || position % stride != 0) return -1;
  const int output = position / stride;
  return output < outputs ? output : -1;
}

/// dy [N][K][P][Q], weights [K][C/groups][R][S], dx [N][C][H][W]. Launch with grid (ceil(W/32), <=
/// ceil(H/8), <= N*C), block (32, 8).
template <class T>
__global__ void conv2d_dgrad_gather(Conv2dProblem conv, const T* dy, const T* weights, T* dx) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 w_at{group_c, conv.R, conv.S};
  const Index4 y_at{conv.K, conv.P, conv.Q};

  const std::int64_t column = std::int64_t{blockIdx.x} * kBlockW + threadIdx.x;
  if (column >= conv.W) return;
  const int w = static_cast<int>(column);
  // grid.y and grid.z are limited to 65535: with more rows or images, a thread computes several
  // elements.
  for (std::int64_t nc = blockIdx.z; nc < std::int64_t{conv.N} * conv.C; nc += gridDim.z) {
    const int n = static_cast<int>(nc / conv.C), c = static_cast<int>(nc % conv.C);
    const int group = c / group_c;
    for (std::int64_t row = std::int64_t{blockIdx.y} * kBlockH + threadIdx.y; row < conv.H;
         row += std::int64_t{gridDim.y} * kBlockH) {
      const int h = static_cast<int>(row);
      float sum = 0.0f;
      for (int r = 0; r < conv.R; ++r) {
        const int p = output_at(h + conv.pad.top - r * conv.dilation.h, conv.stride.h, conv.P);
        if (p < 0) continue;
        for (int s = 0; s < conv.S; ++s) {
          const int q = output_at(w + conv.pad.left - s * conv.dilation.w, conv.stride.w, conv.Q);
          if (q < 0) continue;
          for (int k = group * group_k; k < (group + 1) * group_k; ++k) {
            sum += to_float(dy[y_at(n, k, p, q)]) *
                   to_float(weights[w_at(k, c - group * group_c, r, s)]);
          }
        }
      }
      dx[x_at(n, c, h, w)] = rounded_to<T>(sum);
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  return {};
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const dim3 grid(blocks_for(conv.W, kBlockW), blocks_for(conv.H, kBlockH, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * conv.C, 1, kMaxGridYZ));
  with_float_type(conv.dtype, [&]<class T>(T) {
    launch(conv2d_dgrad_gather<T>, {grid, dim3(kBlockW, kBlockH)}, conv, arrays.dy.as<const T>(),
           arrays.weights.as<const T>(), arrays.dx.as<T>());
  });
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> gather = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d_dgrad
