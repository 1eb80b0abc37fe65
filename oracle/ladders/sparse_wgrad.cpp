/// @file sparse_wgrad.cpp
/// @brief Definition of sparse_wgrad: the gradient of a sparse convolution with respect to its
/// weights.
#include <algorithm>

#include "oracle/ladders/sparse_products.hpp"

namespace convladder::oracle {
namespace sparse_wgrad {
namespace {

std::int64_t longest_sum(const SparseConvProblem& conv) {
  return std::max<std::int64_t>(1, conv.most_pairs);
}

std::vector<Expected> outputs(const SparseConvProblem& conv, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto features = inputs.at("features").as<float>(), dy = inputs.at("dy").as<float>();
  Expected dw = expected_for(sparse_wgrad_signature(conv).outputs[0], longest_sum(conv));
  for_each_row_of_sparse_products(
      conv, inputs, Apart::taps, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
        accumulate_row(dw, wi, 1, at(features, xi), {dy, yi}, conv.Cout);
      });
  return {dw};
}

ExpectedElement element(const SparseConvProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto features = inputs.at("features").as<float>(), dy = inputs.at("dy").as<float>();
  const auto pairs = inputs.at("pairs").as<std::int32_t>();
  const auto offsets = inputs.at("offsets").as<std::int32_t>();
  const Indices weight(place, p.book.KV, p.Cin, p.Cout);  // 1 k ci co
  ExpectedElement sum;
  const auto k = static_cast<std::size_t>(weight.b);
  for (std::int64_t i = offsets[k]; i < offsets[k + 1]; ++i) {
    const auto pair = pairs.subspan(static_cast<std::size_t>(i * kPairColumns), kPairColumns);
    add(sum, at(features, std::int64_t{pair[1]} * p.Cin + weight.c),
        at(dy, std::int64_t{pair[2]} * p.Cout + weight.d));
  }
  return sum;
}

}  // namespace
}  // namespace sparse_wgrad

Definition sparse_wgrad_definition() {
  return define<SparseConvProblem>({.longest_sum = sparse_wgrad::longest_sum,
                                    .outputs = sparse_wgrad::outputs,
                                    .element = sparse_wgrad::element});
}

}  // namespace convladder::oracle
