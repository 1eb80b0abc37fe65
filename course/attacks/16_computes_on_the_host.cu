/// @file 16_computes_on_the_host.cu
/// @brief Copies the arrays to the host, and computes there.
///
/// The result is right, and no kernel was written.
///
/// Ends as: refused
/// Behind the audit: agrees
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  std::vector<float> x(static_cast<std::size_t>(conv.N) * conv.C * conv.H * conv.W);
  std::vector<float> w(static_cast<std::size_t>(conv.K) * (conv.C / conv.groups) * conv.R * conv.S);
  std::vector<float> b(static_cast<std::size_t>(conv.K));
  std::vector<float> y(static_cast<std::size_t>(conv.N) * conv.K * conv.P * conv.Q);
  check(cudaMemcpy(x.data(), arrays.x.as<const float>(), x.size() * 4, cudaMemcpyDeviceToHost));
  check(
      cudaMemcpy(w.data(), arrays.weights.as<const float>(), w.size() * 4, cudaMemcpyDeviceToHost));
  if (arrays.bias)
    check(
        cudaMemcpy(b.data(), arrays.bias.as<const float>(), b.size() * 4, cudaMemcpyDeviceToHost));
  const Index4 x_at{conv.C, conv.H, conv.W}, y_at{conv.K, conv.P, conv.Q};
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 w_at{group_c, conv.R, conv.S};
  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; ++q) {
          float sum = b[static_cast<std::size_t>(k)];
          for (int c = 0; c < group_c; ++c) {
            for (int r = 0; r < conv.R; ++r) {
              for (int s = 0; s < conv.S; ++s) {
                const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
                const int v = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
                if (h < 0 || h >= conv.H || v < 0 || v >= conv.W) continue;
                sum += x[static_cast<std::size_t>(x_at(n, k / group_k * group_c + c, h, v))] *
                       w[static_cast<std::size_t>(w_at(k, c, r, s))];
              }
            }
          }
          y[static_cast<std::size_t>(y_at(n, k, p, q))] = activated(conv.activation, sum);
        }
      }
    }
  }
  check(cudaMemcpy(arrays.y.as<float>(), y.data(), y.size() * 4, cudaMemcpyHostToDevice));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
