/// @file sparse_avg_pool.cpp
/// @brief Definition of sparse_avg_pool: tap by tap, sums and counts of all outputs together.
#include "core/sparse_avg_pool.hpp"

#include "oracle/ladders/definition.hpp"
#include "oracle/means.hpp"

namespace convladder::oracle {
namespace sparse_avg_pool {
namespace {

std::int64_t longest_sum(const SparsePoolProblem& pool) { return pool.book.KV; }

std::vector<Expected> outputs(const SparsePoolProblem& pool, const Arrays& inputs) {
  const auto nbr = inputs.at("nbr").as<std::int32_t>();
  const auto features = inputs.at("features").as<float>();
  Expected y = expected_for(sparse_avg_pool_signature(pool).outputs[0], longest_sum(pool));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(pool.M));
  for (std::size_t i = 0; i < nbr.size(); ++i) {
    if (nbr[i] < 0) continue;
    const std::size_t row = i % counts.size();
    ++counts[row];
    accumulate_row(y, static_cast<std::int64_t>(row) * pool.C, 1, 1.0,
                   {features, std::int64_t{nbr[i]} * pool.C}, pool.C);
  }
  make_means(y, counts);
  return {y};
}

}  // namespace
}  // namespace sparse_avg_pool

Definition sparse_avg_pool_definition() {
  return define<SparsePoolProblem>(
      {.longest_sum = sparse_avg_pool::longest_sum, .outputs = sparse_avg_pool::outputs});
}

}  // namespace convladder::oracle
