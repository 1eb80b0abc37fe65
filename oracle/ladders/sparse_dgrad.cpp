/// @file sparse_dgrad.cpp
/// @brief Definition of sparse_dgrad: the gradient of a sparse convolution with respect to its
/// features.
#include "oracle/ladders/sparse_products.hpp"

namespace convladder::oracle {
namespace sparse_dgrad {
namespace {

std::int64_t longest_sum(const SparseConvProblem& conv) {
  return std::int64_t{conv.book.KV} * conv.Cout + (conv.bias ? 1 : 0);
}

std::vector<Expected> outputs(const SparseConvProblem& conv, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto dy = inputs.at("dy").as<float>(), weights = inputs.at("weights").as<float>();
  Expected dx = expected_for(sparse_dgrad_signature(conv).outputs[0], longest_sum(conv));
  for_each_row_of_sparse_products(conv, inputs, Apart::pairs,
                                  [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
                                    accumulate_products(dx, xi, {dy, yi}, {weights, wi}, conv.Cout);
                                  });
  return {dx};
}

ExpectedElement element(const SparseConvProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto weights = inputs.at("weights").as<float>();
  const std::int64_t ci = place % p.Cin;
  return sparse_row_at(
      p, inputs.at("nbr_back"), inputs.at("dy"), place / p.Cin,
      [&](std::int64_t k, std::int64_t co) { return weight_at(p, weights, k, ci, co); });
}

}  // namespace
}  // namespace sparse_dgrad

Definition sparse_dgrad_definition() {
  return define<SparseConvProblem>({.longest_sum = sparse_dgrad::longest_sum,
                                    .outputs = sparse_dgrad::outputs,
                                    .element = sparse_dgrad::element});
}

}  // namespace convladder::oracle
