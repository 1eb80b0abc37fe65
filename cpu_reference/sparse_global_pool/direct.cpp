/// @file direct.cpp
/// @brief Definition of sparse_global_pool: each row is reduced into the result of its image.
///
/// - After: cuda_naive/sparse_global_pool/direct.cu
/// - On the GPU: cuda_naive/sparse_global_pool/direct.cu
/// - The semantics: core/sparse_global_pool_problem.hpp
///
/// **The idea.** The first number of a site is its batch index: the image that the row belongs to.
/// One pass over the rows reduces each row into y of its image, by a maximum or an addition, and
/// counts the rows of the image.
///
///     coords   n  z  y  x     features       y[0]      y[1]     count
///              0  .  .  .      3 -1          3 -1                1 0
///              1  .  .  .      5  0          3 -1      5  0      1 1
///              0  .  .  .     -2  4          3  4      5  0      2 1      (max)
///
/// The rows of different images may be interleaved. The counts distinguish an image without rows,
/// whose y is 0, from one whose largest feature is 0, and they are the divisors of a mean.
///
/// **Expect.** Each feature is read once, in memory order: sites * C comparisons or additions.
/// **Costs.** The additions of an image form one chain in float: on real data the rounding error
/// grows with the number of sites.
/// **Try.** Start y at 0 instead of neutral(). For which data are the maxima the same?
#include <algorithm>
#include <vector>

#include "core/implementation.hpp"
#include "core/sparse_global_pool_problem.hpp"

namespace convladder::cpu_reference::sparse_global_pool {
namespace {

/// features [sites][C], coords [sites][1 + ndim], y [batch][C].
void run(const SparseGlobalPoolProblem& pool, const SparseGlobalPoolArrays& arrays,
         const Context&) {
  const std::int64_t C = pool.C, columns = 1 + pool.grid.ndim;
  const auto* features = arrays.features;
  const auto* coords = arrays.coords;
  auto* y = arrays.y;

  std::fill_n(y, pool.grid.batch * C, neutral(pool.reduce));
  std::vector<int> counts(static_cast<std::size_t>(pool.grid.batch));
  for (std::int64_t row = 0; row < pool.grid.sites; ++row) {
    const std::int64_t n = coords[row * columns];
    ++counts[static_cast<std::size_t>(n)];
    for (std::int64_t c = 0; c < C; ++c)
      y[n * C + c] = combined(pool.reduce, y[n * C + c], features[row * C + c]);
  }
  for (std::int64_t i = 0; i < pool.grid.batch * C; ++i)
    y[i] = finished(pool.reduce, y[i], counts[static_cast<std::size_t>(i / C)]);
}

}  // namespace

extern const Implementation<SparseGlobalPoolArrays> direct = {
    .run = run,
};

}  // namespace convladder::cpu_reference::sparse_global_pool
