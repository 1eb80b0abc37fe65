/// @file direct.cpp
/// @brief Definition of sparse_max_pool_dgrad: each output adds its gradient to the input row that
/// it selected.
///
/// - After: cuda_naive/sparse_max_pool_dgrad/scatter.cu, gather.cpp
/// - On the GPU: cuda_naive/sparse_max_pool_dgrad/scatter.cu
/// - The semantics: core/sparse_pool_problem.hpp
///
/// **The idea.** A maximum equals one of its candidates and does not depend on the others: its
/// derivative is 1 for that one and 0 for the rest. The forward pass has stored which one, so
/// neither features nor pairs are needed.
///
///     argmax[out][c] = in      dy[out][c]  ---->  dx[in][c]   +=
///     argmax[out][c] = -1      dy[out][c]  ---->  ignored
///
/// Windows may overlap, and one input may be the maximum of several: its gradients are added.
///
/// **Expect.** M * C additions, whatever the number of pairs.
/// **Costs.** argmax is as large as y and must be kept from the forward pass. spconv keeps features
/// and y instead, and compares them again, pair by pair.
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
