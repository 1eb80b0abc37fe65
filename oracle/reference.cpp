#include "oracle/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "oracle/ladders/definition.hpp"

// Rows take half the time with AVX2, which is selected when the program starts, before sanitizers
// are initialised. The sums are identical: the products are added in the same order, and a product
// of two floats is exact.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CONVLADDER_HOT_LOOP [[gnu::target_clones("avx2", "default")]]
#else
#define CONVLADDER_HOT_LOOP
#endif

namespace convladder {

std::int64_t longest_sum(const std::string& ladder, const Problem& problem) {
  return oracle::definition_of(ladder).longest_sum(problem);
}

std::int64_t headroom(const std::string& ladder, const Problem& problem) {
  const auto& of_ladder = oracle::definition_of(ladder).headroom;
  return of_ladder ? of_ladder(problem) : 1;
}

std::int64_t exact_sum(const std::string& ladder, const Problem& problem) {
  constexpr std::int64_t kOnesAlone = (std::int64_t{1} << 24) - 3;  // float represents all integers
                                                                    // up to 2^24
  const std::int64_t longest = longest_sum(ladder, problem), room = headroom(ladder, problem);
  if (room == 1 || longest <= kOnesAlone / room) return longest * room;
  return std::max(longest, kOnesAlone);
}

Expected expected_of_winograd(const std::string& ladder, const Expected& expected,
                              const Problem& problem, const Arrays& inputs, WinogradTile tile,
                              double least) {
  const auto& of_ladder = oracle::definition_of(ladder).winograd;
  if (!of_ladder) throw std::logic_error(ladder + " has no bound for Winograd rungs");
  return of_ladder(expected, problem, inputs, tile, least);
}

Expected expected_of_spectra(const std::string& ladder, const Expected& expected,
                             const Problem& problem, const Arrays& inputs, double least) {
  const auto& of_ladder = oracle::definition_of(ladder).spectra;
  if (!of_ladder) throw std::logic_error(ladder + " has no bound for rungs that multiply spectra");
  return of_ladder(expected, problem, inputs, least);
}

std::vector<Expected> reference(const std::string& ladder, const Problem& problem,
                                const Arrays& inputs) {
  std::vector<Expected> expected = oracle::definition_of(ladder).outputs(problem, inputs);
  for (Expected& output : expected) {
    output.precision = precision_of(problem);
    output.factors = dtype_of(problem);
  }
  return expected;
}

}  // namespace convladder

// --- Products row by row (oracle/ladders/definition.hpp)

namespace convladder::oracle {
namespace {

constexpr std::int64_t kTogether = 4;
using Floats [[gnu::vector_size(4 * kTogether)]] = float;
using Doubles [[gnu::vector_size(8 * kTogether)]] = double;
using Longs [[gnu::vector_size(8 * kTogether)]] = std::int64_t;

/// With steps of 1.
CONVLADDER_HOT_LOOP
void accumulate_contiguous(double* values, double* magnitudes, double factor, const float* numbers,
                           std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    Floats four;
    Doubles value, magnitude;
    std::memcpy(&four, numbers + i, sizeof four);
    std::memcpy(&value, values + i, sizeof value);
    std::memcpy(&magnitude, magnitudes + i, sizeof magnitude);
    const Doubles product = __builtin_convertvector(four, Doubles) * factor;
    value += product;
    magnitude += Doubles(Longs(product) & INT64_MAX);  // absolute value
    std::memcpy(values + i, &value, sizeof value);
    std::memcpy(magnitudes + i, &magnitude, sizeof magnitude);
  }
  for (; i < count; ++i) {
    const double product = factor * double{numbers[i]};
    values[i] += product;
    magnitudes[i] += std::abs(product);
  }
}

}  // namespace

void accumulate_row(Expected& to, std::int64_t first, std::int64_t step, double factor,
                    const Row& row, std::int64_t count) {
  double* const values = to.values.data() + first;
  double* const magnitudes = to.magnitude.data() + first;
  const float* const numbers = row.of.data() + row.first;
  if (step == 1 && row.step == 1)
    return accumulate_contiguous(values, magnitudes, factor, numbers, count);
  for (std::int64_t i = 0; i < count; ++i) {
    const double product = factor * double{numbers[i * row.step]};
    values[i * step] += product;
    magnitudes[i * step] += std::abs(product);
  }
}

void accumulate_products(Expected& to, std::int64_t i, const Row& a, const Row& b,
                         std::int64_t count) {
  const float* const from_a = a.of.data() + a.first;
  const float* const from_b = b.of.data() + b.first;
  double value = to.values[static_cast<std::size_t>(i)];
  double magnitude = to.magnitude[static_cast<std::size_t>(i)];
  for (std::int64_t j = 0; j < count; ++j) {
    const double product = double{from_a[j * a.step]} * double{from_b[j * b.step]};
    value += product;
    magnitude += std::abs(product);
  }
  to.values[static_cast<std::size_t>(i)] = value;
  to.magnitude[static_cast<std::size_t>(i)] = magnitude;
}

}  // namespace convladder::oracle
