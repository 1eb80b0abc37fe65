/// @file sparse_products.hpp
/// @brief All products of a sparse convolution: the forward pass and both gradients sum over them.
#pragma once

#include "core/sparse_conv_problem.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {

/// Visits all products of a sparse convolution or of one of its gradients, by the row:
/// visit(features offset, weights offset, y offset) stands for Cout products of one number of the
/// features, with rows of weights and of y.
template <class Visit>
void for_each_row_of_sparse_products(const SparseConvProblem& conv, const Arrays& inputs,
                                     const Visit& visit) {
  const auto pairs = inputs.at("pairs").as<std::int32_t>();
  for (std::size_t i = 0; i < pairs.size(); i += kPairColumns) {
    const std::int64_t k = pairs[i], in = pairs[i + 1], out = pairs[i + 2];
    for (std::int64_t ci = 0; ci < conv.Cin; ++ci)
      visit(in * conv.Cin + ci, (k * conv.Cin + ci) * conv.Cout, out * conv.Cout);
  }
}

/// The sum of from[table[k][row]] . (what `weight` says of tap k and channel s) over all taps and
/// channels of `from`.
template <class Weight>
ExpectedElement sparse_row_at(const SparseConvProblem& p, const Array& table, const Array& from,
                              std::int64_t row, const Weight& weight) {
  const auto rows = table.as<std::int32_t>();
  const auto values = from.as<float>();
  const std::int64_t row_count = table.shape()[1], channels = from.shape()[1];
  ExpectedElement sum;
  for (std::int64_t k = 0; k < p.book.KV; ++k) {
    const std::int64_t met = rows[static_cast<std::size_t>(k * row_count + row)];
    if (met < 0) continue;
    for (std::int64_t s = 0; s < channels; ++s)
      add(sum, at(values, met * channels + s), weight(k, s));
  }
  return sum;
}

/// The element of the weights [KV][Cin][Cout].
inline double weight_at(const SparseConvProblem& p, std::span<const float> weights, std::int64_t k,
                        std::int64_t ci, std::int64_t co) {
  return at(weights, (k * p.Cin + ci) * p.Cout + co);
}

}  // namespace convladder::oracle
