/// @file sparse_conv.cpp
/// @brief Definition of sparse_conv: a product for each pair of the rulebook.
#include <algorithm>

#include "oracle/ladders/sparse_products.hpp"

namespace convladder::oracle {
namespace sparse_conv {
namespace {

std::int64_t longest_sum(const SparseConvProblem& conv) {
  return std::int64_t{conv.book.KV} * conv.Cin + (conv.bias ? 1 : 0);
}

/// Adds the bias to rows of Cout sums, and activates them.
void finish_rows(const SparseConvProblem& conv, const Arrays& inputs, Expected& y) {
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    if (conv.bias) {
      const auto bias = inputs.at("bias").as<float>();
      accumulate(y, static_cast<std::int64_t>(i), bias[i % bias.size()], 1.0);
    }
    if (conv.activation == Activation::relu) y.values[i] = std::max(y.values[i], 0.0);
  }
}

std::vector<Expected> outputs(const SparseConvProblem& conv, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto features = inputs.at("features").as<float>(),
             weights = inputs.at("weights").as<float>();
  Expected y = expected_for(sparse_conv_signature(conv).outputs[0], longest_sum(conv));
  for_each_row_of_sparse_products(
      conv, inputs, Apart::pairs, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
        accumulate_row(y, yi, 1, at(features, xi), {weights, wi}, conv.Cout);
      });
  finish_rows(conv, inputs, y);
  return {y};
}

ExpectedElement element(const SparseConvProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto weights = inputs.at("weights").as<float>();
  const std::int64_t co = place % p.Cout;
  ExpectedElement sum = sparse_row_at(
      p, inputs.at("nbr"), inputs.at("features"), place / p.Cout,
      [&](std::int64_t k, std::int64_t ci) { return weight_at(p, weights, k, ci, co); });
  if (p.bias) add(sum, at(inputs.at("bias").as<float>(), co), 1.0);
  if (p.activation == Activation::relu) sum.value = std::max(sum.value, 0.0);
  return sum;
}

}  // namespace
}  // namespace sparse_conv

Definition sparse_conv_definition() {
  return define<SparseConvProblem>({.longest_sum = sparse_conv::longest_sum,
                                    .outputs = sparse_conv::outputs,
                                    .element = sparse_conv::element});
}

}  // namespace convladder::oracle
