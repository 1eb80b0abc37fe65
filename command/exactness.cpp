#include "command/exactness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "command/ladders/ladder_command.hpp"
#include "oracle/reference.hpp"

namespace convladder::command {
namespace {

/// All values are multiples of 2^unit, and no magnitude exceeds `largest`.
struct Grid {
  int unit = 0;
  double largest = 0;
};

/// The coarsest grid that contains the finite values; every grid contains zero.
Grid grid_of(const Array& array) {
  Grid grid{std::numeric_limits<int>::max(), 0};
  const Array widened = rounded_to(array, DType::f32);
  for (const float value : widened.as<float>()) {
    if (value == 0 || !std::isfinite(value)) continue;
    int exponent = 0;
    // value = mantissa * 2^(exponent - 24), with an integer mantissa of 24 bits.
    auto mantissa = static_cast<std::int32_t>(std::ldexp(std::frexp(value, &exponent), 24));
    for (exponent -= 24; mantissa % 2 == 0; mantissa /= 2) ++exponent;
    grid.unit = std::min(grid.unit, exponent);
    grid.largest = std::max(grid.largest, std::abs(double{value}));
  }
  return grid.largest == 0 ? Grid{} : grid;
}

Grid product(const Grid& a, const Grid& b) { return {a.unit + b.unit, a.largest * b.largest}; }

/// True if rounding to TF32 does not change any value: each has at most 11 significant bits.
bool fits_tf32(const Arrays::value_type& input) {
  if (input.second.dtype() == DType::i32) return true;
  const Array widened = rounded_to(input.second, DType::f32);
  return std::ranges::all_of(widened.as<float>(), [](float value) {
    int exponent = 0;
    const float eleven_bits = std::ldexp(std::frexp(value, &exponent), 11);
    return eleven_bits == std::trunc(eleven_bits);
  });
}

/// FP8 tensor cores accumulate with 13 fraction bits.
constexpr double kCountOf8Bits = 16384;
/// The most products that tensor cores accumulate before a rung promotes the partial result.
constexpr double kProductsOf8Bits = 128;

/// The terms that the outputs of a ladder sum.
std::vector<Grid> terms_of(const std::string& ladder, const Arrays& inputs) {
  std::vector<Grid> terms;
  for (const std::vector<std::string>& factors : command_of(ladder).terms) {
    if (!inputs.contains(factors.front())) continue;  // an optional bias that is absent
    Grid term = grid_of(inputs.at(factors.front()));
    for (std::size_t i = 1; i < factors.size(); ++i)
      term = product(term, grid_of(inputs.at(factors[i])));
    terms.push_back(term);
  }
  if (!terms.empty()) return terms;
  for (const auto& [name, array] : inputs) {
    if (array.dtype() == DType::f32) terms.push_back(grid_of(array));  // copies and plain sums
  }
  return terms;
}

}  // namespace

bool sums_are_exact(const std::string& ladder, const Problem& problem, const Arrays& inputs) {
  if (precision_of(problem) == Precision::tf32 && !std::ranges::all_of(inputs, fits_tf32)) {
    return false;
  }
  int unit = std::numeric_limits<int>::max();
  double largest = 0;
  for (const Grid& term : terms_of(ladder, inputs)) {
    if (term.largest == 0) continue;
    unit = std::min(unit, term.unit);
    largest += term.largest;
  }
  if (largest == 0) return true;
  const double terms = static_cast<double>(longest_sum(ladder, problem)) *
                       static_cast<double>(headroom(ladder, problem));
  const double units = std::ldexp(largest * terms, -unit);
  if (dtype_of(problem) == DType::f8 &&
      std::ldexp(largest * std::min(terms, kProductsOf8Bits), -unit) > kCountOf8Bits)
    return false;
  // The values also lie within the exponent range of float.
  return units < 16777216.0 && unit >= -126 &&
         std::ldexp(units, unit) < double{std::numeric_limits<float>::max()};
}

}  // namespace convladder::command
