/// @file direct_16bit.cu
/// @brief Half precision: fp16 or bf16 in memory, FP32 accumulators.
///
/// - Before: direct.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** fp16 and bf16 halve the size of an array in bytes. Accumulation in 16 bits would
/// lose most digits of a long sum. Therefore each element is converted to float when it is loaded,
/// the accumulators are floats, and each result is rounded once when it is stored.
///
///     x, weights: 16 bits  ->  float, exactly;  sum: float;  y: rounded to the nearest, 16 bits
///
/// **Expect.** The same time as the previous rung, which is limited by the number of load
/// instructions; that number does not change. The number of sectors falls: a warp's row of x is 64
/// bytes instead of 128.
/// @expect on --c 4 --h 12 --w 100 --k 2 --r 5 --s 5 --dtype fp16
/// @expect loads_per_output.x 4 * 5 * 5 = 100, as before
/// @expect loads_per_output.weights 4 * 5 * 5 = 100, as before
/// @expect sectors_per_request.weights.load 1, a single address for the warp
/// **Costs.** Two conversions per multiply-add. Supports layout NCHW, fp16 and bf16 only.
/// **Try.** Accumulate in 16 bits: `sum = to_float(rounded_to<T>(sum + ...))`. What does compare
/// report?
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::conv2d {
namespace {

constexpr int kBlockQ = 32;  ///< Threads along q: one warp, 64 bytes of a row.
constexpr int kBlockP = 8;   ///< Threads along p.

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Launch with grid
/// (ceil(Q/32), <= ceil(P/8), <= N*K), block (32, 8).
template <class T>
__global__ void conv2d_direct_16bit(Conv2dProblem conv, const T* x, const T* weights,
                                    const float* bias, T* y) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 w_at{group_c, conv.R, conv.S};
  const Index4 y_at{conv.K, conv.P, conv.Q};

  const int q = static_cast<int>(blockIdx.x * kBlockQ + threadIdx.x);
  if (q >= conv.Q) return;
  // grid.y and grid.z are limited to 65535: with more rows or images, a thread computes several
  // outputs.
  for (std::int64_t nk = blockIdx.z; nk < std::int64_t{conv.N} * conv.K; nk += gridDim.z) {
    const int n = static_cast<int>(nk / conv.K), k = static_cast<int>(nk % conv.K);
    const int c0 = k / group_k * group_c;  // first input channel of k's group
    for (std::int64_t row = std::int64_t{blockIdx.y} * kBlockP + threadIdx.y; row < conv.P;
         row += std::int64_t{gridDim.y} * kBlockP) {
      const int p = static_cast<int>(row);
      float sum = bias ? bias[k] : 0.0f;
      for (int c = 0; c < group_c; ++c) {
        for (int r = 0; r < conv.R; ++r) {
          const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
          if (h < 0 || h >= conv.H) continue;  // a row of zeros
          for (int s = 0; s < conv.S; ++s) {
            const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
            if (w < 0 || w >= conv.W) continue;
            const T value = x[x_at(n, c0 + c, h, w)], weight = weights[w_at(k, c, r, s)];
            sum += to_float(value) * to_float(weight);
          }
        }
      }
      y[y_at(n, k, p, q)] = rounded_to<T>(activated(conv.activation, sum));
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype == DType::f32) return "float16 and bfloat16 only";
  return {};
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const dim3 grid(blocks_for(conv.Q, kBlockQ), blocks_for(conv.P, kBlockP, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * conv.K, 1, kMaxGridYZ));
  const auto launch_with = [&]<class T>(T) {
    launch(conv2d_direct_16bit<T>, {grid, dim3(kBlockQ, kBlockP)}, conv, arrays.x.as<const T>(),
           arrays.weights.as<const T>(), arrays.bias.as<const float>(), arrays.y.as<T>());
  };
  conv.dtype == DType::f16 ? launch_with(Half{}) : launch_with(BFloat16{});
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_16bit = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d
