/// @file sparse_max_pool.cpp
/// @brief Definition of sparse_max_pool: the largest feature of each window, and its row.
#include "core/sparse_pool_problem.hpp"
#include "oracle/ladders/definition.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::oracle {
namespace sparse_max_pool {
namespace {

std::int64_t longest_sum(const SparsePoolProblem&) { return 1; }

std::vector<Expected> outputs(const SparsePoolProblem& pool, const Arrays& inputs) {
  const Signature signature = sparse_max_pool_signature(pool);
  const Array argmax = argmax_over(inputs.at("nbr"), inputs.at("features"));
  const auto winners = argmax.as<std::int32_t>();
  const auto features = inputs.at("features").as<float>();
  Expected y = expected_for(signature.outputs[0], 1, /*rounds=*/false);
  for (std::size_t i = 0; i < winners.size(); ++i) {
    const auto C = static_cast<std::size_t>(pool.C);
    if (winners[i] >= 0) y.values[i] = features[static_cast<std::size_t>(winners[i]) * C + i % C];
  }
  return {y, integers_of(signature.outputs[1], argmax)};
}

}  // namespace
}  // namespace sparse_max_pool

Definition sparse_max_pool_definition() {
  return define<SparsePoolProblem>(
      {.longest_sum = sparse_max_pool::longest_sum, .outputs = sparse_max_pool::outputs});
}

}  // namespace convladder::oracle
