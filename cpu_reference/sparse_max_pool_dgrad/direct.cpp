/// @file direct.cpp
/// @brief sparse_max_pool_dgrad, rung 1: every output gives its gradient to the row that it chose.
///
/// - After: cuda_naive/sparse_max_pool_dgrad/scatter.cu, gather.cpp
/// - On the GPU: cuda_naive/sparse_max_pool_dgrad/scatter.cu
/// - The semantics: core/sparse_pool_problem.hpp
///
/// **The idea.** A maximum passes one of its candidates on, and has nothing to do with the others:
/// its derivative is 1 for the one and 0 for the rest. The forward pass has noted which one, so
/// that neither features nor pairs are needed any more.
///
///     argmax[out][c] = in      dy[out][c]  ---->  dx[in][c]   +=
///     argmax[out][c] = -1      dy[out][c]  ---->  nowhere
///
/// Windows may overlap, and one input may be the largest of several: its gradients add up.
///
/// **Expect.** M * C additions, whatever the number of pairs.
/// **Costs.** argmax is as large as y, and has to be kept from the forward pass until now. spconv
/// keeps features and y instead, and compares them again, pair by pair.
#include <algorithm>

#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::cpu_reference::sparse_max_pool_dgrad {
namespace {

/// dy [M][C], argmax [M][C], dx [N][C].
void run(const SparsePoolProblem& pool, const SparseMaxPoolDgradArrays& arrays, const Context&) {
  const auto* dy = arrays.dy;
  const auto* argmax = arrays.argmax;
  auto* dx = arrays.dx;
  const std::int64_t C = pool.C;

  std::fill_n(dx, pool.N * C, 0.0f);
  for (std::int64_t out = 0; out < pool.M; ++out) {
    for (std::int64_t c = 0; c < C; ++c) {
      const std::int32_t in = argmax[out * C + c];
      if (in >= 0) dx[in * C + c] += dy[out * C + c];
    }
  }
}

}  // namespace

extern const Implementation<SparseMaxPoolDgradArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_max_pool_dgrad
