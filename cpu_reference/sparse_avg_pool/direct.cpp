/// @file direct.cpp
/// @brief sparse_avg_pool, rung 1: row by row, the sum of the candidates over their number.
///
/// - After: cuda_naive/sparse_avg_pool/direct.cu
/// - On the GPU: cuda_naive/sparse_avg_pool/direct.cu
/// - The semantics: core/sparse_avg_pool.hpp
///
/// **The idea.** The table nbr lists the candidates of each output row, one entry for each tap, -1
/// where no site exists. The loop adds the rows that exist to y and counts them; one division for
/// each channel follows.
///
///     nbr      out 0    features         out 0
///       k = 0     2     row 2 =  3 -1    sum    6  3     count 2
///       k = 1    -1                      y      3  1.5
///       k = 2     5     row 5 =  3  4
///
/// The divisor is the count, 2, and not the number of taps, 3: a site that does not exist is no
/// zero. An output without any candidate keeps the sum 0 and is not divided.
///
/// **Expect.** pairs * C additions and M * C divisions, along memory.
/// **Costs.** Reads all of nbr, also the entries that are -1.
/// **Try.** Multiply by 1.0f / count instead of dividing by count. For which counts below 28 does
/// the average of small integers stay the same, bit for bit?
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
