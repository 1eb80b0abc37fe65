/// @file gather.cu
/// @brief Naive CUDA gather: one thread per weight sums over all outputs.
///
/// - Before: cpu_reference/conv2d_wgrad/direct.cpp
/// - After: cuda_optimized/conv2d_wgrad/implicit_gemm/register_tile.cu, winograd_2x2.cu,
///   cuda_optimized/conv2d_wgrad/im2col_gemm.cu, cuda_optimized/conv2d_wgrad/depthwise/nchw.cu
///
/// **The idea.** All sums are independent, so each is computed by one thread: one for each weight
/// (k, c, r, s) and, in a second kernel, one for each bias. The loops over n, p and q are
/// unchanged.
///
///     item = ((k * C/G + c) * R + r) * S + s      neighbouring threads, neighbouring taps:
///                                                 the next x, and the same dy
///
/// **Expect.** Two loads per multiply-add, and too few threads: the 6 filters of B1, 6 x 6 on 6
/// channels, have 1296 weights. This is six blocks on a GPU with 132 SMs, and each thread executes
/// a chain of N * P * Q additions. The forward pass has many short sums instead, so its
/// parallelisation is not suitable here.
/// @expect loads_per_output.x 64 * 16 * 46 * 46 / 9280 = 233.49, one for each multiply-add
/// @expect loads_per_output.dy 64 * (16 * 46 * 46 + 16 * 16) / 9280 = 235.26, and for db
/// @expect blocks 64 * 16 * 9 / 256 + 1 = 37, too few for a GPU
/// **Costs.** The threads of db read different planes, so none of their loads is coalesced.
/// Supports layout NCHW only.
/// **Try.** Let the 32 lanes of a warp share a weight: each lane sums every 32nd output, and
/// `__shfl_xor_sync` adds the lanes. Which loads are coalesced now, and how many warps does B1
/// have?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::conv2d_wgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 65536;  ///< With more weights, a thread computes several.

/// x [N][C][H][W], dy [N][K][P][Q], dw [K][C/groups][R][S]. Launch with any one-dimensional grid.
template <class T>
__global__ void conv2d_wgrad_gather(Conv2dProblem conv, const T* x, const T* dy, float* dw) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};

  const std::int64_t weights = std::int64_t{conv.K} * group_c * conv.R * conv.S;
  for (const std::int64_t item : grid_stride(weights)) {
    const int s = static_cast<int>(item % conv.S);
    const int r = static_cast<int>(item / conv.S % conv.R);
    const std::int64_t kc = item / conv.S / conv.R;
    const int k = static_cast<int>(kc / group_c);
    const int c0 = k / group_k * group_c;  // first input channel of k's group
    const int c = c0 + static_cast<int>(kc % group_c);

    float sum = 0.0f;
    for (int n = 0; n < conv.N; ++n) {
      for (int p = 0; p < conv.P; ++p) {
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        if (h < 0 || h >= conv.H) continue;  // a row of zeros
        for (int q = 0; q < conv.Q; ++q) {
          const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
          if (w < 0 || w >= conv.W) continue;
          sum += to_float(dy[y_at(n, k, p, q)]) * to_float(x[x_at(n, c, h, w)]);
        }
      }
    }
    dw[item] = sum;
  }
}

/// dy [N][K][P][Q], db [K]. Launch with any one-dimensional grid.
template <class T>
__global__ void conv2d_wgrad_gather_bias_gradient(Conv2dProblem conv, const T* dy, float* db) {
  const Index4 y_at{conv.K, conv.P, conv.Q};
  for (const std::int64_t item : grid_stride(conv.K)) {
    const int k = static_cast<int>(item);
    float sum = 0.0f;
    for (int n = 0; n < conv.N; ++n) {
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; ++q) sum += to_float(dy[y_at(n, k, p, q)]);
      }
    }
    db[k] = sum;
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  return {};
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context&) {
  float *dw = arrays.dw, *db = arrays.db;
  const std::int64_t weights = std::int64_t{conv.K} * (conv.C / conv.groups) * conv.R * conv.S;
  with_float_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *dy = arrays.dy;
    launch(conv2d_wgrad_gather<T>, {blocks_for(weights, kThreads, kMaxBlocks), kThreads}, conv, x,
           dy, dw);
    launch(conv2d_wgrad_gather_bias_gradient<T>,
           {blocks_for(conv.K, kThreads, kMaxBlocks), kThreads}, conv, dy, db);
  });
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> gather = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d_wgrad
