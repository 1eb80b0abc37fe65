/// @file sparse_global_pool.cpp
/// @brief Definition of sparse_global_pool: the rows of each image are listed first.
#include <algorithm>

#include "core/site_errors.hpp"
#include "core/sparse_global_pool_problem.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/means.hpp"

namespace convladder::oracle {
namespace sparse_global_pool {
namespace {

std::int64_t longest_sum(const SparseGlobalPoolProblem& pool) {
  return pool.reduce == PoolReduction::mean ? std::max(pool.grid.sites, 1) : 1;
}

/// The rows of each image. Invalid sites are rejected.
std::vector<std::vector<std::int64_t>> rows_of_images(const SparseGlobalPoolProblem& pool,
                                                      const Arrays& inputs) {
  const auto coords = inputs.at("coords").as<std::int32_t>();
  require_no_errors(pool.grid, find_site_errors(pool.grid, coords), coords);
  std::vector<std::vector<std::int64_t>> images(static_cast<std::size_t>(pool.grid.batch));
  for (std::int64_t row = 0; row < pool.grid.sites; ++row) {
    const std::int32_t n = coords[static_cast<std::size_t>(row * (1 + pool.grid.ndim))];
    images[static_cast<std::size_t>(n)].push_back(row);
  }
  return images;
}

std::vector<Expected> outputs(const SparseGlobalPoolProblem& pool, const Arrays& inputs) {
  const auto features = inputs.at("features").as<float>();
  const bool mean = pool.reduce == PoolReduction::mean;
  const auto images = rows_of_images(pool, inputs);
  Expected y = expected_for(sparse_global_pool_signature(pool).outputs[0], longest_sum(pool), mean);
  std::vector<std::int64_t> counts;
  for (const auto& rows : images) {
    const std::int64_t first = static_cast<std::int64_t>(counts.size()) * pool.C;
    counts.push_back(static_cast<std::int64_t>(rows.size()));
    if (mean) {
      for (const std::int64_t row : rows)
        accumulate_row(y, first, 1, 1.0, {features, row * pool.C}, pool.C);
      continue;
    }
    for (std::int64_t c = 0; c < pool.C && !rows.empty(); ++c) {
      const auto feature = [&](std::int64_t row) {
        return features[static_cast<std::size_t>(row * pool.C + c)];
      };
      const auto largest = std::ranges::max_element(
          rows, [&](std::int64_t a, std::int64_t b) { return exceeds(feature(b), feature(a)); });
      y.values[static_cast<std::size_t>(first + c)] = double{feature(*largest)};
    }
  }
  if (mean) make_means(y, counts);
  return {y};
}

}  // namespace
}  // namespace sparse_global_pool

Definition sparse_global_pool_definition() {
  return define<SparseGlobalPoolProblem>(
      {.longest_sum = sparse_global_pool::longest_sum, .outputs = sparse_global_pool::outputs});
}

}  // namespace convladder::oracle
