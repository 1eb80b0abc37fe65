#include "oracle/runner.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "ladders/best_rung.hpp"
#include "oracle/canonical.hpp"

namespace convladder {
namespace {

Outcome differs(std::string reason) {
  return {.status = Status::differs, .reason = std::move(reason)};
}

/// Whether the rung refuses inputs in these words.
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
    return differs(text("refuses its inputs with '", refusal.what(), "', and not '", words, "'"));
  }
  return differs(text("takes inputs that it must refuse: ", words));
}

}  // namespace

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, std::uint64_t seed,
                       Arrays given)
    : Comparison(ladder, problem, data,
                 make_inputs(ladder.signature(problem), data, seed, exact_sum(ladder.name, problem),
                             std::move(given))) {}

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, Arrays inputs)
    : ladder_(&ladder), problem_(problem), data_(data), inputs_(std::move(inputs)),
      expected_(reference(ladder.name, problem, inputs_)) {}

Outcome Comparison::run(const Rung& rung, Where where, const RunOptions& options) const {
  const auto& code = rung.code_at(where);
  Device* device = device_at(where);
  if (!code || device == nullptr) {
    return {.status = Status::skipped,
            .reason = where == Where::gpu && rung.is_cuda() ? why_no_gpu()
                                                            : "this rung does not run there"};
  }
  if (const Declined declined = code->supports(problem_)) {
    return {.status = Status::declined, .reason = *declined};
  }
  if (options.limit > 0 && where == Where::cpu) {
    const double seconds =
        slowness_of_this_machine() * expected_seconds(*ladder_, rung, problem_).value_or(0);
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
  const Arrays found = canonical(problem_, outcome.outputs);
  for (const Expected& output : expected_) {
    const auto array = found.find(output.spec.name);
    if (array == found.end()) continue;  // an optional one
    std::optional<Expected> bounded;     // in exact mode Winograd's bound makes no difference
    if (rung.winograd.m != 0 && data_ != Data::integer)
      bounded = expected_of_winograd(ladder_->name, output, problem_, inputs_, rung.winograd);
    if (rung.float_spectra) bounded = expected_of_spectra(ladder_->name, output, problem_, inputs_);
    const bool rounds = rung.float_spectra && data_ == Data::integer;
    if (rounds)  // layout and type are those of the canonical order: that is what these rungs take
      outcome.outputs.at(output.spec.name) = rounded_spectra(*bounded, array->second);
    const Verdict verdict = judge(bounded ? *bounded : output,
                                  rounds ? outcome.outputs.at(output.spec.name) : array->second,
                                  data_, problem_, code->tile(problem_));
    outcome.exact = outcome.exact && verdict.exact;
    outcome.max_error = std::max(outcome.max_error, verdict.max_error);
    if (!verdict.agrees && outcome.status == Status::agrees) {
      outcome.status = Status::differs;
      outcome.reason = verdict.difference;
    }
  }
  return outcome;
}

}  // namespace convladder
