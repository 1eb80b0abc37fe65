/// @file sparse_max_pool_dgrad.cpp
/// @brief Definition of sparse_max_pool_dgrad: the gradient of each row from the windows that
/// selected it.
#include "core/sparse_pool_problem.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace sparse_max_pool_dgrad {
namespace {

std::int64_t longest_sum(const SparsePoolProblem& pool) { return pool.book.KV; }

std::vector<Expected> outputs(const SparsePoolProblem& pool, const Arrays& inputs) {
  const auto dy = inputs.at("dy").as<float>();
  const auto winners = inputs.at("argmax").as<std::int32_t>();
  Expected dx = expected_for(sparse_max_pool_dgrad_signature(pool).outputs[0], longest_sum(pool));
  for (std::size_t i = 0; i < winners.size(); ++i) {
    if (winners[i] < 0) continue;
    const std::int64_t c = static_cast<std::int64_t>(i) % pool.C;
    accumulate(dx, std::int64_t{winners[i]} * pool.C + c, dy[i], 1.0);
  }
  return {dx};
}

}  // namespace
}  // namespace sparse_max_pool_dgrad

Definition sparse_max_pool_dgrad_definition() {
  return define<SparsePoolProblem>({.longest_sum = sparse_max_pool_dgrad::longest_sum,
                                    .outputs = sparse_max_pool_dgrad::outputs});
}

}  // namespace convladder::oracle
