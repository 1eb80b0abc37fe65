/// @file sparse_products.hpp
/// @brief All products of a sparse convolution: the forward pass and both gradients sum over them.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/sparse_conv_problem.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {

/// The products that may be visited concurrently, because they are added to different elements.
enum class Apart {
  pairs,  ///< Those of different pairs of a tap, if sums belong to a row of sites.
  taps    ///< Those of different taps, if sums belong to a weight.
};

/// Visits all products of a sparse convolution or of one of its gradients, row by row, on all
/// cores: visit(features offset, weights offset, y offset) represents the Cout products of one
/// feature with rows of weights and of y.
template <class Visit>
void for_each_row_of_sparse_products(const SparseConvProblem& conv, const Arrays& inputs,
                                     Apart apart, const Visit& visit) {
  const auto pairs = inputs.at("pairs").as<std::int32_t>();
  const auto count = static_cast<std::int64_t>(pairs.size()) / kPairColumns;
  const auto pair = [&](std::int64_t i) {
    return &pairs[static_cast<std::size_t>(i) * kPairColumns];
  };
  const auto visit_pairs = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t k = pair(i)[0], in = pair(i)[1], out = pair(i)[2];
      for (std::int64_t ci = 0; ci < conv.Cin; ++ci)
        visit(in * conv.Cin + ci, (k * conv.Cin + ci) * conv.Cout, out * conv.Cout);
    }
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> taps;  // the pairs of each tap, which are
                                                            // sorted
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == 0 || pair(i)[0] != pair(i - 1)[0]) taps.emplace_back(i, i);
    taps.back().second = i + 1;
  }
  if (apart == Apart::taps) {
    parallel_for(static_cast<std::int64_t>(taps.size()), [&](std::int64_t tap) {
      visit_pairs(taps[static_cast<std::size_t>(tap)].first,
                  taps[static_cast<std::size_t>(tap)].second);
    });
    return;
  }
  constexpr std::int64_t kTogether = 256;
  for (const auto& [begin, end] : taps) {
    parallel_for(ceil_div(end - begin, kTogether),
                 [&, begin = begin, end = end](std::int64_t part) {
                   const std::int64_t first = begin + part * kTogether;
                   visit_pairs(first, std::min(first + kTogether, end));
                 });
  }
}

/// The sum of from[table[k][row]] times `weight` of tap k and channel s, over all taps and channels
/// of `from`.
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
