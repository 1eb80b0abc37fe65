/// @file direct.cu
/// @brief Naive CUDA convolution: one thread per output.
///
/// - Before: cpu_reference/conv2d/direct.cpp
/// - After: cuda_optimized/conv2d/direct/tiled.cu, direct_16bit.cu
///
/// **The idea.** All outputs are independent, so each output is computed by one thread. The four
/// outer loops of the definition become the thread's index; the three inner loops are unchanged.
///
///     blockIdx.x, threadIdx.x -> q    neighbouring threads, neighbouring addresses: coalesced
///     blockIdx.y, threadIdx.y -> p
///     blockIdx.z              -> n, k
///
/// **Expect.** Two loads (x, w) per multiply-add. A warp's load of x touches one or two cache
/// lines, and its load of w a single address. Both hit the L1 cache, whose bandwidth is the limit:
/// an SM issues one warp-wide load per cycle but four warp-wide multiply-adds, so at most 1/8 of
/// the arithmetic peak is reached.
/// @expect loads_per_output.x 4 * 5 * 5 = 100, one for each multiply-add
/// @expect loads_per_output.weights 4 * 5 * 5 = 100, another one
/// @expect sectors_per_request.weights.load 1, a single address for the warp
/// @expect sectors_per_request.x.load (4 + 4 * 5) / 5 = 4.8, of 5 taps 1 begins a sector
/// **Costs.** Every input is loaded again for each output that reads it. Supports layout NCHW and
/// float32 only.
/// **Try.** Make the block 8 x 32 threads instead of 32 x 8 (kBlockQ = 8, kBlockP = 32). How many
/// rows of x does a warp then read per load, and how many 32-byte sectors does a store touch?
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::conv2d {
namespace {

constexpr int kBlockQ = 32;  ///< Threads along q: one warp, 128 bytes of a row.
constexpr int kBlockP = 8;   ///< Threads along p.

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Launch with grid
/// (ceil(Q/32), <= ceil(P/8), <= N*K), block (32, 8).
__global__ void conv2d_direct(Conv2dProblem conv, const float* x, const float* weights,
                              const float* bias, float* y) {
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
            sum += x[x_at(n, c0 + c, h, w)] * weights[w_at(k, c, r, s)];
          }
        }
      }
      y[y_at(n, k, p, q)] = activated(conv.activation, sum);
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const dim3 grid(blocks_for(conv.Q, kBlockQ), blocks_for(conv.P, kBlockP, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * conv.K, 1, kMaxGridYZ));
  launch(conv2d_direct, {grid, dim3(kBlockQ, kBlockP)}, conv, arrays.x, arrays.weights, arrays.bias,
         arrays.y);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::conv2d
