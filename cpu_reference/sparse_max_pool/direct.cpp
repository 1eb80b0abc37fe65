/// @file direct.cpp
/// @brief Definition of sparse_max_pool: pairs are processed one by one, and the larger feature is
/// kept.
///
/// - After: cuda_naive/sparse_max_pool/scatter.cu
/// - On the GPU: cuda_naive/sparse_max_pool/scatter.cu
/// - The semantics: core/sparse_pool_problem.hpp
///
/// **The idea.** Max pooling reads the same rulebook as a convolution, without weights and without
/// mixing channels. Each pair compares its input row with its output row, channel by channel.
///
///     pairs  k in out      features                      y        argmax
///            0  2   0      row 2 =  3 -1     row 0  <-    3 -1       2  2     the first candidate
///            1  5   0      row 5 =  3  4                  3  4       2  5     3 is not greater
///            than 3 3  0   0      row 0 = -7  4                  3  4       2  5
///
/// Whether there was a candidate before is read from argmax, not from y: an output that starts at
/// 0, as in spconv, never becomes negative (traveller59/spconv#754). Pairs are sorted by tap, so
/// that among equal candidates the one of the lowest tap is kept.
///
/// **Expect.** pairs * C comparisons, along contiguous memory.
/// **Costs.** y and argmax are read and written again for every pair.
#include <algorithm>

#include "core/error.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::cpu_reference::sparse_max_pool {
namespace {

/// features [N][C], pairs [P][3], y [M][C], argmax [M][C].
void run(const SparsePoolProblem& pool, const SparseMaxPoolArrays& arrays, const Context&) {
  const auto* features = arrays.features;
  const auto* pairs = needed("pairs", arrays.pairs, pool.pairs);
  auto* y = arrays.y;
  auto* argmax = arrays.argmax;
  const std::int64_t C = pool.C;

  std::fill_n(y, pool.M * C, 0.0f);
  std::fill_n(argmax, pool.M * C, -1);
  for (std::int64_t i = 0; i < pool.pairs; ++i) {
    const std::int32_t in = pairs[kPairColumns * i + 1], out = pairs[kPairColumns * i + 2];
    for (std::int64_t c = 0; c < C; ++c) {
      const float offer = features[in * C + c];
      const std::int64_t to = out * C + c;
      if (argmax[to] < 0 || exceeds(offer, y[to])) {
        y[to] = offer;
        argmax[to] = in;
      }
    }
  }
}

}  // namespace

extern const Implementation<SparseMaxPoolArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_max_pool
