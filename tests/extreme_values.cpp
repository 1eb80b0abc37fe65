#include "tests/extreme_values.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include "core/device.hpp"
#include "core/text.hpp"
#include "oracle/non_finite.hpp"
#include "oracle/runner.hpp"
#include "tests/ladders/ladder_tests.hpp"
#include "tests/taken.hpp"

namespace convladder::testing {
namespace {

constexpr std::uint64_t kSeed = 11;  ///< Always the same, so that a failure is seen again.

/// Whether a sum of the problem leaves float's range: then no result is right.
bool overflows(const Comparison& comparison) {
  return std::ranges::any_of(comparison.expected(), [](const Expected& expected) {
    return std::ranges::any_of(expected.magnitude, [](double magnitude) {
      return !(magnitude < double{std::numeric_limits<float>::max()});
    });
  });
}

}  // namespace

const char* name_of(Extreme extreme) {
  switch (extreme) {
    case Extreme::exponents: return "all exponents";
    case Extreme::alike: return "equal numbers";
    case Extreme::spike: return "a spike";
    case Extreme::no_data: return "a number for no data";
    case Extreme::products: return "small products";
    case Extreme::subnormal: return "subnormal numbers";
    case Extreme::near_normal: return "numbers about the smallest normal one";
    case Extreme::large: return "numbers about the largest one";
  }
  return "";
}

Arrays extreme_arrays(const Signature& signature, Extreme extreme, std::size_t which,
                      std::uint64_t seed, const Arrays& given) {
  std::mt19937_64 dice(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(dice() >> 11), -53);
  };
  Arrays arrays = given;
  const auto floats = static_cast<std::size_t>(std::ranges::count_if(
      signature.inputs, [](const ArraySpec& spec) { return spec.dtype != DType::i32; }));
  std::size_t input = 0;
  for (const ArraySpec& spec : signature.inputs) {
    if (spec.dtype == DType::i32) continue;
    const bool unusual = input++ == which % floats;
    Array array(DType::f32, spec.shape);
    for (float& number : array.as<float>()) {
      const double one = uniform(-1, 1);
      double value = one;
      switch (extreme) {
        case Extreme::exponents:
          value = std::ldexp(one, static_cast<int>(unusual ? uniform(-149, 30) : uniform(-20, 20)));
          break;
        case Extreme::alike: value = unusual ? 0.1 : 1.0 / 144; break;
        case Extreme::spike: break;
        case Extreme::no_data:
          value = !unusual                  ? one / 512
                  : uniform(0, 1) < 1.0 / 8 ? -double{std::numeric_limits<float>::max()}
                                            : one;
          break;
        case Extreme::products: value = one * (unusual ? 1e-21 : 1e-20); break;
        case Extreme::subnormal: value = unusual ? one * 1e-41 : one; break;
        case Extreme::near_normal: value = unusual ? one * 1e-38 : one; break;
        case Extreme::large: value = unusual ? std::copysign(1e38, one) : 1e-3; break;
      }
      number = static_cast<float>(value);
    }
    if (extreme == Extreme::spike && unusual && array.size() > 0)
      array.as<float>()[dice() % static_cast<std::size_t>(array.size())] = 1e12f;
    Array rounded = rounded_to(array, spec.dtype);
    if (!all_finite(rounded)) return {};
    arrays.insert_or_assign(spec.name, std::move(rounded));
  }
  return arrays;
}

ExtremeReport check_extreme_values(const Ladder& ladder, const Rung& rung, Where where) {
  ExtremeReport report;
  const LadderTests& tests = tests_of(ladder.name);
  if (!tests.non_finite) return report;
  const AnyImplementation& code = *rung.code_at(where);
  std::size_t turn = 0;
  for (const TestProblem& test : tests.non_finite()) {
    for (const std::vector<Problem>& forms : forms_of(test.problem)) {
      const auto form = std::ranges::find_if(
          forms, [&](const Problem& candidate) { return !code.supports(candidate); });
      if (form == forms.end()) continue;
      if (const auto* fft = std::get_if<FftProblem>(&*form);
          fft != nullptr && fft->ring == FftRing::mersenne)
        continue;  // whose numbers are whole
      const Signature signature = ladder.signature(*form);
      // A round begins one further on than the last, so that a kind meets forms of all types.
      const std::size_t which = turn / std::size(kExtremes);
      const Extreme extreme = kExtremes[(turn + which) % std::size(kExtremes)];
      ++turn;
      Arrays inputs = extreme_arrays(signature, extreme, which, kSeed + turn, test.given);
      if (inputs.empty()) continue;
      for (const ArraySpec& spec : signature.inputs) {  // what is neither given nor of floats
        if (inputs.contains(spec.name)) continue;
        Arrays drawn =
            make_inputs(signature, Data::integer, kSeed, exact_sum(ladder.name, *form), test.given);
        inputs.emplace(spec.name, std::move(drawn.at(spec.name)));
      }
      try {
        const Comparison comparison(ladder, *form, Data::real, std::move(inputs), Roundings::any);
        if (overflows(comparison)) continue;
        const Outcome outcome = comparison.run(rung, where);
        report.runs += outcome.ran ? 1 : 0;
        report.declined += outcome.status == Status::declined ? 1 : 0;
        if (outcome.status == Status::differs)
          report.failures.push_back(
              text(name_of(extreme), ": ", describe(*form), ": ", outcome.reason));
      } catch (const std::exception& error) {
        report.failures.push_back(
            text(name_of(extreme), ": ", describe(*form), ": throws ", error.what()));
      }
    }
  }
  return report;
}

}  // namespace convladder::testing
