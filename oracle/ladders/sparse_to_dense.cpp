/// @file sparse_to_dense.cpp
/// @brief Definition of sparse_to_dense: rows of features in a dense grid.
#include "core/site_errors.hpp"
#include "core/sparse_pool_problem.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace sparse_to_dense {
namespace {

std::int64_t longest_sum(const SparseToDenseProblem&) { return 1; }

/// Channel by channel, with cells addressed by strides. Invalid sites are rejected.
std::vector<Expected> outputs(const SparseToDenseProblem& p, const Arrays& inputs) {
  const auto coords = inputs.at("coords").as<std::int32_t>();
  require_no_errors(p.grid, find_site_errors(p.grid, coords), coords);
  const auto features = inputs.at("features").as<float>();
  Expected x = expected_for(sparse_to_dense_signature(p).outputs[0], 1, /*rounds=*/false);
  const Shape& shape = x.spec.shape;
  const auto columns = static_cast<std::size_t>(1 + p.grid.ndim);
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(p.C),
                      c = i % static_cast<std::size_t>(p.C);
    std::int64_t stride = 1, place = 0;
    for (std::size_t axis = columns - 1; axis >= 1; --axis) {
      place += stride * coords[row * columns + axis];
      stride *= shape[axis + 1];
    }
    place += stride * static_cast<std::int64_t>(c) + stride * p.C * coords[row * columns];
    x.values[static_cast<std::size_t>(place)] = features[i];
  }
  return {x};
}

}  // namespace
}  // namespace sparse_to_dense

Definition sparse_to_dense_definition() {
  return define<SparseToDenseProblem>(
      {.longest_sum = sparse_to_dense::longest_sum, .outputs = sparse_to_dense::outputs});
}

}  // namespace convladder::oracle
