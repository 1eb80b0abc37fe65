#include "oracle/data.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace convladder {
namespace {

constexpr std::int64_t kExactLimit = std::int64_t{1} << 24;  // float represents all integers up to
                                                             // here
constexpr std::int64_t kHalfLimit = 65504;                   // the largest Half

/// The largest a <= 8 with longest_sum * a * a + a < `limit` (the last a: a bias or an old value).
int integer_range(std::int64_t longest_sum, std::int64_t limit) {
  for (int a = 8; a >= 1; --a) {
    if (longest_sum < (limit - a) / (std::int64_t{a} * a)) return a;
  }
  // Sums of ones of both signs rarely become that large.
  if (limit == kHalfLimit && longest_sum < kExactLimit) return 1;
  throw BadInput(
      text("sums of ", longest_sum, " products: too long to be exact in float; use real data"));
}

/// A separate generator for each array, so that one array's values do not depend on another's size.
std::mt19937_64 generator(std::uint64_t seed, const std::string& name) {
  std::seed_seq mix(name.begin(), name.end());
  std::mt19937_64 engine(mix);
  engine.seed(engine() ^ (seed * 0x9e3779b97f4a7c15u + 1));
  return engine;
}

}  // namespace

Arrays make_inputs(const Signature& signature, Data data, std::uint64_t seed,
                   std::int64_t longest_sum, Arrays given) {
  Arrays inputs = std::move(given);
  const bool half = std::ranges::any_of(
      signature.outputs, [](const ArraySpec& output) { return output.dtype == DType::f16; });
  for (const ArraySpec& spec : signature.inputs) {
    if (inputs.contains(spec.name)) continue;
    if (spec.dtype == DType::i32) throw std::logic_error("no generator for " + spec.name);
    Array array(DType::f32, spec.shape);
    std::mt19937_64 random = generator(seed, spec.name);
    // Own arithmetic instead of the standard distributions, which differ between libraries.
    if (data == Data::integer) {
      const int a = integer_range(longest_sum, half ? kHalfLimit : kExactLimit);
      const auto values = 2 * static_cast<std::uint64_t>(a) + 1;
      for (float& value : array.as<float>()) {
        value = static_cast<float>(static_cast<std::int64_t>((random() >> 32) * values >> 32) - a);
      }
    } else {
      for (float& value : array.as<float>()) {
        value = static_cast<float>(static_cast<std::int32_t>(random() >> 39) - (1 << 24)) /
                static_cast<float>(1 << 24);
        if (data == Data::positive) value = std::abs(value);
      }
    }
    inputs.emplace(spec.name, rounded_to(array, spec.dtype));
  }
  return inputs;
}

}  // namespace convladder
