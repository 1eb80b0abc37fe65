/// @file gemm.cpp
/// @brief Definition of gemm, also batched.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/gemm_batch_problem.hpp"
#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace gemm {
namespace {

std::int64_t longest_sum(const GemmProblem& p) {
  return std::max<std::int64_t>(1, std::int64_t{p.K} + (p.bias ? 1 : 0));
}

/// bias [N], or null.
std::span<const float> bias_of(const GemmProblem& p, const Arrays& inputs) {
  return p.bias ? inputs.at("bias").as<float>() : std::span<const float>();
}

/// The final value of a column's sum; for FP8, rounded to float after scale and bias. The magnitude
/// remains that of the whole sum: |relu(a) - relu(b)| <= |a - b|.
ExpectedElement finished(const GemmProblem& p, const ExpectedElement& sum,
                         std::span<const float> bias, std::int64_t n) {
  const double scale = p.scale(), bias_n = bias.empty() ? 0 : at(bias, n);
  double value = scale * sum.value + bias_n;
  if (p.dtype == DType::f8) value = double{static_cast<float>(value)};
  if (p.activation == Activation::relu && value < 0) value = 0;
  return {value, scale * sum.magnitude + std::abs(bias_n)};
}

std::vector<Expected> outputs(const GemmProblem& p, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const auto bias = bias_of(p, inputs);
  Expected c = expected_for(gemm_signature(p).outputs[0], longest_sum(p));
  parallel_for(p.M, [&](std::int64_t m) {
    for (std::int64_t k = 0; k < p.K; ++k) {
      accumulate_row(c, m * p.N, 1, at(a, m * p.K + k), {b, k * p.N}, p.N);
    }
    for (std::int64_t n = 0; n < p.N; ++n) {
      const auto i = static_cast<std::size_t>(m * p.N + n);
      const ExpectedElement element = finished(p, {c.values[i], c.magnitude[i]}, bias, n);
      c.values[i] = element.value;
      c.magnitude[i] = element.magnitude;
    }
  });
  return {c};
}

ExpectedElement element(const GemmProblem& p, const Arrays& inputs, const std::string&,
                        std::int64_t place) {
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const std::int64_t m = place / p.N, n = place % p.N;
  ExpectedElement sum;
  for (std::int64_t k = 0; k < p.K; ++k) add(sum, at(a, m * p.K + k), at(b, k * p.N + n));
  return finished(p, sum, bias_of(p, inputs), n);
}

/// Matrix i of an operand with contiguous matrices: [rows][columns] after transposition.
Array matrix_of(const Array& all, int i, int rows, int columns, bool transposed) {
  const auto from =
      all.as<float>().subspan(static_cast<std::size_t>(std::int64_t{i} * rows * columns));
  Array matrix(DType::f32, {rows, columns});
  std::size_t place = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column, ++place)
      matrix.as<float>()[place] =
          from[static_cast<std::size_t>(transposed ? column * rows + row : row * columns + column)];
  }
  return matrix;
}

/// Matrices a and b (and bias) of GEMM i.
Arrays product_of(const GemmBatchProblem& p, const Arrays& inputs, int i) {
  const GemmProblem& one = p.product;
  Arrays product = {{"a", matrix_of(inputs.at("a"), i, one.M, one.K, p.transpose_a)},
                    {"b", matrix_of(inputs.at("b"), i, one.K, one.N, p.transpose_b)}};
  if (one.bias) product.emplace("bias", inputs.at("bias"));
  return product;
}

/// One GEMM after the other.
std::vector<Expected> outputs_of_batch(const GemmBatchProblem& p, const Arrays& given) {
  const Arrays inputs = in_float(given);
  const GemmProblem& one = p.product;
  Expected c = expected_for(gemm_signature(p).outputs[0], longest_sum(one));
  std::size_t first = 0;
  for (int i = 0; i < p.count(); ++i) {
    const Expected product = outputs(one, product_of(p, inputs, i)).front();
    std::ranges::copy(product.values, c.values.begin() + static_cast<std::ptrdiff_t>(first));
    std::ranges::copy(product.magnitude, c.magnitude.begin() + static_cast<std::ptrdiff_t>(first));
    first += product.values.size();
  }
  return {c};
}

}  // namespace
}  // namespace gemm

Definition gemm_definition() {
  Definition definition = define<GemmProblem>(
      {.longest_sum = gemm::longest_sum, .outputs = gemm::outputs, .element = gemm::element});
  definition.longest_sum = [of_one = definition.longest_sum](const Problem& p) {
    const auto* batch = std::get_if<GemmBatchProblem>(&p);
    return batch != nullptr ? gemm::longest_sum(batch->product) : of_one(p);
  };
  definition.outputs = [of_one = definition.outputs](const Problem& p, const Arrays& inputs) {
    const auto* batch = std::get_if<GemmBatchProblem>(&p);
    return batch != nullptr ? gemm::outputs_of_batch(*batch, inputs) : of_one(p, inputs);
  };
  definition.element = [of_one = definition.element](const Problem& p, const Arrays& inputs,
                                                     const std::string& name, std::int64_t place) {
    const auto* batch = std::get_if<GemmBatchProblem>(&p);
    if (batch == nullptr) return of_one(p, inputs, name, place);
    const std::int64_t elements = std::int64_t{batch->product.M} * batch->product.N;
    return of_one(batch->product,
                  gemm::product_of(*batch, inputs, static_cast<int>(place / elements)), name,
                  place % elements);
  };
  return definition;
}

}  // namespace convladder::oracle
