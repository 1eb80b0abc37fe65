/// @file gather.cpp
/// @brief Gather: each input checks which of its outputs selected it.
///
/// - Before: direct.cpp
/// - On the GPU: cuda_optimized/sparse_max_pool_dgrad/output_stationary.cu
///
/// **The idea.** This computes the same sum per input. nbr_back[k][in] is the output that has `in`
/// as a candidate at tap k, or -1; its gradient counts if its argmax is `in`.
///
///     dx[in][c] = sum over k of  dy[out][c]  if argmax[out][c] == in,  with out = nbr_back[k][in]
///
/// Each element of dx has one owner, which writes it once. On the CPU this is only another loop
/// order; on a GPU it makes atomics unnecessary.
///
/// **Expect.** argmax is read once per *pair* and channel; direct.cpp reads it once per output.
/// With 3 x 3 x 3 taps and stride 2, that is 3.5 times as often for a LiDAR sweep, and eight times
/// for its next level. If windows do not overlap, it is once per input.
/// **Costs.** Needs the mirrored table, [KV][N].
#include "core/error.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::cpu_reference::sparse_max_pool_dgrad {
namespace {

/// dy [M][C], argmax [M][C], nbr_back [KV][N], dx [N][C].
void run(const SparsePoolProblem& pool, const SparseMaxPoolDgradArrays& arrays, const Context&) {
  const auto* dy = arrays.dy;
  const auto* argmax = arrays.argmax;
  const auto* nbr_back = needed("nbr_back", arrays.nbr_back, pool.N);
  auto* dx = arrays.dx;
  const std::int64_t C = pool.C, N = pool.N;

  for (std::int64_t in = 0; in < N; ++in) {
    float* sums = dx + in * C;
    for (std::int64_t c = 0; c < C; ++c) sums[c] = 0.0f;
    for (std::int64_t k = 0; k < pool.book.KV; ++k) {
      const std::int64_t out = nbr_back[k * N + in];
      if (out < 0) continue;
      for (std::int64_t c = 0; c < C; ++c)
        if (argmax[out * C + c] == in) sums[c] += dy[out * C + c];
    }
  }
}

}  // namespace

extern const Implementation<SparseMaxPoolDgradArrays> gather = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_max_pool_dgrad
