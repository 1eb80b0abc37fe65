#include "oracle/runner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "oracle/canonical.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder {
namespace {

Outcome differs(std::string reason) {
  return {.status = Status::differs, .reason = std::move(reason)};
}

/// Whether the rung rejects inputs with this message.
Outcome refused(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                const std::string& words, const AnyImplementation& code, Where where,
                const RunOptions& options) {
  try {
    run_guarded(ladder, problem, inputs, code, where, options);
  } catch (const OutOfMemory& error) {
    return {.status = Status::declined, .reason = error.reason};
  } catch (const DeviceError& error) {
    return differs(error.what());
  } catch (const BadInput& refusal) {
    if (std::string_view(refusal.what()).starts_with(words)) return {.status = Status::agrees};
    return differs(text("rejects its inputs with '", refusal.what(), "', and not '", words, "'"));
  }
  return differs(text("accepts inputs that it must reject: ", words));
}

/// The largest finite number of a float array; 0 for integers.
double largest_in(const Array& array) {
  if (array.dtype() == DType::i32) return 0;
  double largest = 0;
  const Array widened = rounded_to(array, DType::f32);
  for (const float number : widened.as<float>())
    if (std::isfinite(number)) largest = std::max(largest, std::abs(double{number}));
  return largest;
}

/// Of the inputs that are multiplied with one another.
std::vector<double> largest_factors(const Arrays& inputs) {
  std::vector<double> largest;
  for (const auto& [name, array] : inputs)
    if (name != "bias") largest.push_back(largest_in(array));
  return largest;
}

/// The operands, with numbers smaller than `least` replaced by `least`: their absolute rounding
/// error is the same. Empty if there is none.
Arrays raised_factors(const Arrays& inputs, float least) {
  Arrays raised;
  bool any = false;
  for (const auto& [name, array] : inputs) {
    Array& to = raised.emplace(name, array).first->second;
    if (name == "bias" || array.dtype() != DType::f32) continue;
    for (float& number : to.as<float>()) {
      if (number == 0 || !(std::abs(number) < least)) continue;
      number = least;
      any = true;
    }
  }
  return any ? raised : Arrays{};
}

/// Whether operands are rounded to TF32, or split into TF32 parts.
bool has_tf32(const Rung& rung, const Problem& problem) {
  if (dtype_of(problem) != DType::f32) return false;
  return rung.tf32 == Tf32::parts ||
         (rung.tf32 == Tf32::operands && precision_of(problem) == Precision::tf32);
}

/// Whether it is the ladder's first rung, or the CUDA rung with the same name.
bool is_definition(const Rung& rung, const Ladder& ladder) {
  const auto title = [](const std::string& name) { return name.substr(name.rfind('/') + 1); };
  return title(rung.name) == title(ladder.rungs.front().name);
}

/// An output, with the bound of this rung's rounding.
Expected with_bound_of(const Rung& rung, Where where, const Ladder& ladder, const Expected& output,
                       const Problem& problem, const Arrays& inputs, Data data) {
  if (output.spec.dtype == DType::i32) return output;
  const bool tf32 = has_tf32(rung, problem);
  const double least = tf32 ? kLeastSplit : kLeastNormal;
  // In exact mode the bound is only used to explain an overflow.
  double product = 1;
  for (const double largest : largest_factors(inputs)) product *= std::max(largest, 1.0);
  if (rung.winograd.m != 0 && (data != Data::integer || product > 0x1p80))
    return expected_of_winograd(ladder.name, output, problem, inputs, rung.winograd, least);
  if (rung.float_spectra) return expected_of_spectra(ladder.name, output, problem, inputs, least);
  if (rung.whole_images && data != Data::integer)
    return with_double_fourier_bound(output, problem, inputs);
  Expected bounded = output;
  const bool rounds = tf32 || precision_of(problem) == Precision::tf32;
  // If the bound includes rounding to TF32, it covers a number's last bit from float's smallest
  // normal number on.
  const double least_factor = precision_of(problem) == Precision::tf32 ? kLeastNormal : kLeastSplit;
  if (const Arrays raised = rounds && data != Data::integer
                                ? raised_factors(inputs, static_cast<float>(least_factor))
                                : Arrays{};
      !raised.empty()) {
    for (Expected& other : reference(ladder.name, problem, raised))
      if (other.spec.name == output.spec.name) bounded.magnitude = std::move(other.magnitude);
  }
  // Atomic additions in global memory flush subnormal numbers to 0 (PTX ISA, "atom"): the old
  // value, each term and each result.
  if (!rung.deterministic && where == Where::gpu && output.spec.dtype == DType::f32)
    bounded.absolute += 2 * static_cast<double>(output.longest_sum + 1) * kLeastNormal;
  const auto* fft = std::get_if<FftProblem>(&problem);
  if (fft != nullptr && output.passes > 0 && !is_definition(rung, ladder)) {
    // An eighth rotation adds both parts of a number, and two real lines are separated by the sum
    // of two outputs: before the division, either is up to twice as large as the largest output.
    double largest = 0;
    for (const double magnitude : output.magnitude) largest = std::max(largest, magnitude);
    bounded.largest = 2 * largest;
  }
  if (fft != nullptr && rung.chirp) {
    // Lines of L points are padded to less than 4 L, along both axes of a plane. A sum over all
    // points has as many terms of the chirp's transform, each at most as large as their number.
    const double points = 16.0 * fft->L * fft->rows();
    double sum = 0;
    for (const double largest : largest_factors(inputs)) sum += largest;
    bounded.largest = points * points * sum;
  }
  return bounded;
}

/// Whether an intermediate value may exceed the range of float, or of TF32.
bool overflows(const Rung& rung, const std::vector<Expected>& outputs, const Problem& problem,
               const Arrays& inputs) {
  const bool tf32 = has_tf32(rung, problem);
  // From here on, a number is rounded to infinity.
  const double limit = tf32 ? 0x1.ffep127 : 0x1.ffffffp127;
  if (tf32 && std::ranges::max(largest_factors(inputs)) >= limit) return true;
  return std::ranges::any_of(outputs,
                             [&](const Expected& output) { return output.largest >= limit; });
}

/// The reference value of a rung's errors, if it is not the terms of each output.
const char* relative_to(const Rung& rung, const Expected& output) {
  if (rung.winograd.m != 0) return "the tile's largest value";
  if (rung.whole_images || rung.float_spectra) return "the image's norm";
  return output.passes > 0 ? "the line's largest value" : "";
}

}  // namespace

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, std::uint64_t seed,
                       Arrays given)
    : Comparison(ladder, problem, data,
                 make_inputs(ladder.signature(problem), data, seed, exact_sum(ladder.name, problem),
                             std::move(given))) {}

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, Arrays inputs,
                       Roundings roundings)
    : ladder_(&ladder), problem_(problem), data_(data), roundings_(roundings),
      inputs_(std::move(inputs)), expected_(reference(ladder.name, problem, inputs_)) {}

Outcome Comparison::run(const Rung& rung, Where where, const RunOptions& options) const {
  const auto& code = rung.code_at(where);
  Device* device = device_at(where);
  if (!code || device == nullptr) {
    return {.status = Status::skipped,
            .reason = where == Where::gpu && rung.is_cuda() ? why_no_gpu()
                                                            : "this rung does not run there"};
  }
  const Declined declined = code->supports(problem_);
  if (const Declined lacking = rung.why_not_on(device->compute_capability())) {
    // The rung's own reason may be more specific about the architecture.
    const bool names_it = declined && declined->starts_with(text("needs ", rung.needs, ": "));
    return {.status = Status::declined, .reason = names_it ? *declined : *lacking};
  }
  if (declined) {
    return {.status = Status::declined, .reason = *declined};
  }
  std::vector<Expected> bounded;
  for (const Expected& output : expected_)
    bounded.push_back(with_bound_of(rung, where, *ladder_, output, problem_, inputs_, data_));
  if (overflows(rung, bounded, problem_, inputs_))
    return {.status = Status::declined, .reason = "these values overflow its transform"};
  if (options.limit > 0 && where == Where::cpu && options.expected_seconds) {
    const double seconds = slowness_of_this_machine() * options.expected_seconds(rung);
    if (seconds > options.limit)
      return {.status = Status::declined, .reason = over_limit(seconds, options.limit)};
  }
  if (const auto* book = std::get_if<RulebookProblem>(&problem_); book && options.spoilt) {
    const auto& [kind, count, seed] = *options.spoilt;
    BadSites bad = bad_sites(*book, inputs_.at("coords"), kind, count, seed);
    if (!bad.refusal.empty()) {
      Arrays inputs = inputs_;
      inputs.insert_or_assign("coords", std::move(bad.coords));
      return refused(*ladder_, problem_, inputs, bad.refusal, *code, where, options);
    }
  }
  Outcome outcome;
  try {
    RungRun run = run_guarded(*ladder_, problem_, inputs_, *code, where, options);
    if (!run.damage.empty()) return differs(std::move(run.damage));
    outcome.outputs = std::move(run.outputs);
    outcome.milliseconds = run.milliseconds;
  } catch (const OutOfMemory& error) {
    return {.status = Status::declined, .reason = error.reason};
  } catch (const OverLimit& error) {
    return {.status = Status::declined, .reason = error.what()};
  } catch (const DeviceError& error) {
    return differs(error.what());
  }

  outcome.ran = true;
  outcome.status = Status::agrees;
  outcome.exact = true;
  outcome.relative_to = relative_to(rung, bounded.front());
  const Arrays found = canonical(problem_, outcome.outputs);
  for (const Expected& output : bounded) {
    const auto array = found.find(output.spec.name);
    if (array == found.end()) continue;  // an optional one
    const bool rounds = rung.float_spectra && data_ == Data::integer;
    if (rounds)  // layout and type are those of the canonical order, which these rungs support
      outcome.outputs.at(output.spec.name) = rounded_spectra(output, array->second);
    const Verdict verdict =
        judge(output, rounds ? outcome.outputs.at(output.spec.name) : array->second, data_,
              problem_, code->tile(problem_), roundings_,
              spread_of(ladder_->name, rung, problem_, inputs_, output.spec));
    outcome.exact = outcome.exact && verdict.exact;
    outcome.max_error = std::max(outcome.max_error, verdict.max_error);
    if (verdict.adds_up) outcome.remark = "roundings add up";
    if (!verdict.agrees && outcome.status == Status::agrees) {
      outcome.status = Status::differs;
      outcome.reason = verdict.difference;
    }
  }
  if (outcome.status == Status::differs) outcome.remark.clear();
  return outcome;
}

void require_float_range(const Comparison& comparison) {
  for (const Expected& expected : comparison.expected()) {
    for (std::size_t i = 0; i < expected.magnitude.size(); ++i) {
      // For given numbers: ReLU turns negative infinity into 0.
      if (!std::isfinite(expected.values[i]) || std::isinf(expected.magnitude[i])) continue;
      require(expected.magnitude[i] <= double{std::numeric_limits<float>::max()},
              expected.spec.name, expected.magnitude[i],
              "the given numbers are too large: such a sum does not fit float32");
    }
  }
}

}  // namespace convladder
