/// @file direct.cpp
/// @brief Definition of sparse_avg_pool: the sum of the candidates of each row, divided by their
/// number.
///
/// - After: cuda_naive/sparse_avg_pool/direct.cu
/// - On the GPU: cuda_naive/sparse_avg_pool/direct.cu
/// - The semantics: core/sparse_avg_pool.hpp
///
/// **The idea.** The table nbr lists the candidates of each output row, one entry per tap, -1 if
/// the site does not exist. The loop adds the existing rows to y and counts them; one division per
/// channel follows.
///
///     nbr      out 0    features         out 0
///       k = 0     2     row 2 =  3 -1    sum    6  3     count 2
///       k = 1    -1                      y      3  1.5
///       k = 2     5     row 5 =  3  4
///
/// The divisor is the count, 2, not the number of taps, 3: a missing site is not a zero. An output
/// without candidates has the sum 0 and is not divided.
///
/// **Expect.** pairs * C additions and M * C divisions, along contiguous memory.
/// **Costs.** All of nbr is read, including the entries that are -1.
/// **Try.** Multiply by 1.0f / count instead of dividing by count. For which counts below 28 does
/// the average of small integers keep its bits?
#include <algorithm>

#include "core/implementation.hpp"
#include "core/sparse_avg_pool.hpp"

namespace convladder::cpu_reference::sparse_avg_pool {
namespace {

/// features [N][C], nbr [KV][M], y [M][C].
void run(const SparsePoolProblem& pool, const SparseAvgPoolArrays& arrays, const Context&) {
  const auto* features = arrays.features;
  const auto* nbr = arrays.nbr;
  const std::int64_t C = pool.C, M = pool.M;

  for (std::int64_t row = 0; row < M; ++row) {
    float* y = arrays.y + row * C;
    std::fill_n(y, C, 0.0f);
    int count = 0;
    for (std::int64_t k = 0; k < pool.book.KV; ++k) {
      const std::int32_t in = nbr[k * M + row];
      if (in < 0) continue;
      ++count;
      for (std::int64_t c = 0; c < C; ++c) y[c] += features[in * C + c];
    }
    if (count == 0) continue;
    for (std::int64_t c = 0; c < C; ++c) y[c] /= static_cast<float>(count);
  }
}

}  // namespace

extern const Implementation<SparseAvgPoolArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_avg_pool
