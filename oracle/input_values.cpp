#include "oracle/input_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/site_errors.hpp"
#include "oracle/judge.hpp"

namespace convladder {
namespace {

constexpr float kLargestOfRing = 16777216;  // up to 2^24, float represents every integer

/// The rules of a problem for the values of an input.
struct Rule {
  std::vector<std::string> inputs;  ///< The rule; empty: none.
  void (*require)(const Problem&, const Signature&, const Arrays&) = nullptr;
};

void require_sites(const RulebookProblem& grid, const Arrays& inputs) {
  const auto coords = inputs.at("coords").as<std::int32_t>();
  require_no_errors(grid, find_site_errors(grid, coords), coords);
}

const ArraySpec& input_named(const Signature& signature, const std::string& name) {
  return *std::ranges::find(signature.inputs, name, &ArraySpec::name);
}

/// The input rows of each output row.
std::vector<std::vector<std::int32_t>> candidates(const SparsePoolProblem& pool,
                                                  const Array& nbr_back) {
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(pool.M));
  const auto outputs = nbr_back.as<std::int32_t>();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] >= 0)
      rows[static_cast<std::size_t>(outputs[i])].push_back(
          static_cast<std::int32_t>(i % static_cast<std::size_t>(pool.N)));
  }
  return rows;
}

void require_winners(const Problem& problem, const Signature& signature, const Arrays& inputs) {
  const auto& pool = std::get<SparsePoolProblem>(problem);
  const ArraySpec& spec = input_named(signature, "argmax");
  const auto winners = inputs.at("argmax").as<std::int32_t>();
  const auto met = candidates(pool, inputs.at("nbr_back"));
  for (std::size_t i = 0; i < winners.size(); ++i) {
    const std::int32_t winner = winners[i];
    const auto& rows = met[i / static_cast<std::size_t>(pool.C)];
    if (rows.empty() ? winner == -1 : std::ranges::find(rows, winner) != rows.end()) continue;
    const std::string element = element_name(spec, static_cast<std::int64_t>(i));
    require(!rows.empty(), spec.name, winner,
            element + " must be -1: its output row has no input row");
    require(winner >= 0 && winner < pool.N, spec.name, winner,
            text(element, " must be an input row, 0 to ", pool.N - 1));
    require(false, spec.name, winner, element + " must be one of the input rows of its output row");
  }
}

void require_numbers_of_ring(const Problem&, const Signature& signature, const Arrays& inputs) {
  const ArraySpec& spec = input_named(signature, "x");
  const auto numbers = inputs.at("x").as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float number = numbers[i];
    if (std::abs(number) <= kLargestOfRing && number == std::trunc(number)) continue;
    require(false, spec.name, number,
            element_name(spec, static_cast<std::int64_t>(i)) +
                " must be an integer from -2^24 to 2^24 for the ring mersenne");
  }
}

Rule rule_of(const Problem& problem) {
  if (std::holds_alternative<RulebookProblem>(problem)) {
    return {{"coords"}, [](const Problem& p, const Signature&, const Arrays& inputs) {
              require_sites(std::get<RulebookProblem>(p), inputs);
            }};
  }
  if (std::holds_alternative<SparseToDenseProblem>(problem)) {
    return {{"coords"}, [](const Problem& p, const Signature&, const Arrays& inputs) {
              require_sites(std::get<SparseToDenseProblem>(p).grid, inputs);
            }};
  }
  if (std::holds_alternative<SparseGlobalPoolProblem>(problem)) {
    return {{"coords"}, [](const Problem& p, const Signature&, const Arrays& inputs) {
              require_sites(std::get<SparseGlobalPoolProblem>(p).grid, inputs);
            }};
  }
  if (std::holds_alternative<SparsePoolProblem>(problem))
    return {{"argmax", "nbr_back"}, require_winners};
  const auto* fft = std::get_if<FftProblem>(&problem);
  if (fft != nullptr && fft->ring == FftRing::mersenne) return {{"x"}, require_numbers_of_ring};
  return {};
}

}  // namespace

std::vector<std::string> restricted_inputs(const Ladder& ladder, const Problem& problem) {
  std::vector<std::string> names = rule_of(problem).inputs;
  const Signature signature = ladder.signature(problem);
  const bool all = std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::find(signature.inputs, name, &ArraySpec::name) != signature.inputs.end();
  });
  return all ? names : std::vector<std::string>{};  // the poolings share a problem type
}

void require_valid_values(const Ladder& ladder, const Problem& problem, const Arrays& inputs) {
  const std::vector<std::string> names = restricted_inputs(ladder, problem);
  const bool given =
      std::ranges::all_of(names, [&](const std::string& name) { return inputs.contains(name); });
  if (!names.empty() && given) rule_of(problem).require(problem, ladder.signature(problem), inputs);
}

namespace {

/// The largest finite number of a type that is narrower than float.
const char* largest_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return "65504";
    case DType::f8: return "448";
    default: return "3.38953139e+38";
  }
}

}  // namespace

Array rounded_input(const ArraySpec& spec, const Array& given) {
  Array rounded = rounded_to(given, spec.dtype);
  const Array before = rounded_to(given, DType::f32), after = rounded_to(rounded, DType::f32);
  const auto numbers = before.as<float>(), found = after.as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    require(std::isfinite(numbers[i]) == std::isfinite(found[i]), spec.name, numbers[i],
            text(element_name(spec, static_cast<std::int64_t>(i)), " does not fit ",
                 name_of(spec.dtype), ", whose largest number is ", largest_of(spec.dtype)));
  }
  return rounded;
}

}  // namespace convladder
