#include "tests/non_finite.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/device.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
#include "oracle/non_finite.hpp"
#include "oracle/reference.hpp"
#include "tests/ladders/ladder_tests.hpp"
#include "tests/taken.hpp"

namespace convladder::testing {
namespace {

constexpr const char* kHowToRecordReach =
    "if that is meant, record it: build/cpu/tests/suite --record-non-finite tests/non_finite.json";

constexpr std::uint64_t kSeed = 3;  ///< Always the same, as the record is.

/// A number in an input.
struct Planted {
  float value;
  std::int64_t element;
};

/// Plants them in an array of any type.
Array with(const Array& array, const std::vector<Planted>& numbers) {
  Array changed = rounded_to(array, DType::f32);
  for (const Planted& number : numbers)
    changed.as<float>()[static_cast<std::size_t>(number.element)] = number.value;
  return rounded_to(changed, array.dtype());
}

/// As the definition has it, rounded to the output's type.
std::vector<float> right_values(const Expected& expected) {
  Array right(DType::f32, expected.spec.shape);
  const auto to = right.as<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(expected.values[i]);
  const Array rounded = rounded_to(rounded_to(right, expected.spec.dtype), DType::f32);
  const auto values = rounded.as<float>();
  return {values.begin(), values.end()};
}

/// One run, with numbers planted in one input.
class Run {
 public:
  /// @param planted the input `in` with them
  Run(const std::string& ladder, const Rung& rung, const Problem& form, const ArraySpec& in,
      const Array& planted, NonFiniteReport& report)
      : ladder_(&ladder), rung_(&rung), form_(&form), in_(&in), planted_(&planted),
        report_(&report) {}

  void compare(const Expected& expected, const Array& found) const {
    if (expected.spec.dtype == DType::i32) {
      const auto numbers = found.as<std::int32_t>();
      if (!std::ranges::equal(numbers, expected.integers)) fail(expected.spec.name + " is wrong");
      return;
    }
    const std::vector<float> right = right_values(expected);
    const Array widened = rounded_to(found, DType::f32);
    std::map<Reach, Spread> spread;
    for (const Reach reach : {Reach::tiles, Reach::zeros, Reach::groups}) {
      spread[reach] = Spread(right.size());
      add_reach(spread[reach], reach, *ladder_, *rung_, *form_, in_->name, *planted_,
                expected.spec);
    }
    for (std::size_t i = 0; i < right.size(); ++i) {
      const float raw = widened.as<float>()[i];
      // Of integers such rungs are right after rounding, see Rung::float_spectra.
      const float value = rung_->float_spectra ? std::nearbyint(raw) : raw;
      if (value == right[i] || (std::isnan(value) && std::isnan(right[i]))) continue;
      const std::string kind = kind_of(spread, i, right[i], value);
      if (kind.empty())
        return fail(
            text(expected.spec.name, " element ", i, ": expected ", right[i], ", found ", value));
      report_->excesses[in_->name].insert(kind);
    }
  }
  void fail(const std::string& what) const {
    report_->failures.push_back(text("NaN and infinity in ", in_->name, ": ", describe(*form_),
                                     ", ", name_of_form(*form_), ": ", what));
  }

 private:
  /// Of what the definition does not have, but a rung may; empty: it may not.
  static std::string kind_of(const std::map<Reach, Spread>& spread, std::size_t i, float right,
                             float found) {
    if (std::isfinite(found)) return "";
    if (spread.at(Reach::tiles).reaches(i)) return "tiles";
    if (std::isnan(right) || !std::isnan(found)) return "";
    if (spread.at(Reach::zeros).reaches(i)) return "zeros";
    if (spread.at(Reach::groups).reaches(i)) return "groups";
    return std::isinf(right) ? "nan" : "";
  }

  const std::string* ladder_;
  const Rung* rung_;
  const Problem* form_;
  const ArraySpec* in_;
  const Array* planted_;
  NonFiniteReport* report_;
};

}  // namespace

NonFiniteReport check_non_finite(const Ladder& ladder, const Rung& rung, Where where) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  NonFiniteReport report;
  const LadderTests& tests = tests_of(ladder.name);
  if (!tests.non_finite) return report;
  const AnyImplementation& code = *rung.code_at(where);
  std::size_t turn = 0;
  for (const TestProblem& test : tests.non_finite()) {
    for (const std::vector<Problem>& forms : forms_of(test.problem)) {
      const auto form = std::ranges::find_if(
          forms, [&](const Problem& candidate) { return !code.supports(candidate); });
      if (form == forms.end()) continue;
      const Signature signature = ladder.signature(*form);
      const Arrays data =
          make_inputs(signature, Data::integer, kSeed, exact_sum(ladder.name, *form), test.given);
      for (const ArraySpec& in : signature.inputs) {
        if (in.dtype == DType::i32) continue;
        // Other elements from run to run: the first, the last, and two between.
        const std::int64_t count = element_count(in.shape);
        const std::array<std::int64_t, 4> elements = {0, count / 2 + 1, count - 1, count / 3};
        const auto element = [&](std::size_t i) { return elements[(turn + i) % 4] % count; };
        const std::vector<Planted> planted = {
            {-0.0f, element(2)}, {kInf, element(1)}, {kNan, element(0)}};
        ++turn;
        Arrays inputs = data;
        inputs.at(in.name) = with(inputs.at(in.name), planted);
        const Run run(ladder.name, rung, *form, in, inputs.at(in.name), report);
        set_emulated_thread_order(static_cast<int>(turn % kThreadOrderCount), kSeed);
        try {
          const RungRun result = run_guarded(ladder, *form, inputs, code, where);
          ++report.runs;
          if (!result.damage.empty()) {
            run.fail(result.damage);
            continue;
          }
          const Arrays found = canonical(*form, result.outputs);
          for (const Expected& expected : reference(ladder.name, *form, inputs)) {
            if (const auto array = found.find(expected.spec.name); array != found.end())
              run.compare(expected, array->second);
          }
        } catch (const std::exception& error) {
          run.fail(text("throws ", error.what()));
        }
      }
    }
  }
  return report;
}

ExcessesByRung parsed_excesses(const std::string& json) {
  ExcessesByRung excesses;
  const nlohmann::json parsed = nlohmann::json::parse(json);
  for (const auto& [kind, inputs] : parsed.items()) {
    for (const auto& [input, rungs] : inputs.items())
      for (const auto& rung : rungs) excesses[rung.get<std::string>()][input].insert(kind);
  }
  return excesses;
}

ExcessesByRung recorded_excesses() {
  std::ifstream stream(CONVLADDER_NON_FINITE_FILE);
  if (!stream) throw std::runtime_error("cannot read " CONVLADDER_NON_FINITE_FILE);
  return parsed_excesses(
      std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()));
}

std::string excesses_text(const ExcessesByRung& excesses) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [rung, inputs] : excesses)
    for (const auto& [input, kinds] : inputs)
      for (const std::string& kind : kinds) json[kind][input].push_back(rung);
  return json.dump(2) + "\n";
}

std::string rows_text(const ExcessesByRung& excesses) {
  std::set<std::string> rows;
  for (const auto& [rung, inputs] : excesses)
    for (const auto& [input, kinds] : inputs)
      for (const std::string& kind : kinds)
        rows.insert(text("{\"", kind, "\", \"", input, "\", \"", rung, "\"},\n"));
  std::string lines =
      "// tests/non_finite.json as rows: kind, input, rung. The suite writes it with that file "
      "(--record-non-finite).\n";
  for (const std::string& row : rows) lines += row;
  return lines;
}

std::vector<std::string> excess_differences(const Excesses& recorded, const Excesses& found,
                                            bool is_recorded_place) {
  const auto has = [](const Excesses& excesses, const std::string& input, const std::string& kind) {
    const auto of_input = excesses.find(input);
    return of_input != excesses.end() && of_input->second.contains(kind);
  };
  const std::map<std::string, std::string> what = {
      {"zeros", "NaN where a zero stands for an input that the definition does not have"},
      {"groups", "NaN in outputs of other groups"},
      {"nan", "NaN where infinity is right"},
      {"tiles",
       "NaN and infinity, of either sign, in all of a tile, or an image, that needs the number"}};
  std::vector<std::string> differences;
  for (const auto& [input, kinds] : found) {
    for (const std::string& kind : kinds) {
      if (!has(recorded, input, kind))
        differences.push_back(text("NaN or infinity in ", input, " now makes ", what.at(kind), "; ",
                                   kHowToRecordReach));
    }
  }
  for (const auto& [input, kinds] : recorded) {
    for (const std::string& kind : kinds) {
      if (is_recorded_place && !has(found, input, kind))
        differences.push_back(text("NaN or infinity in ", input, " no longer makes ", what.at(kind),
                                   ", as is recorded; ", kHowToRecordReach));
    }
  }
  return differences;
}

bool record_non_finite(const std::filesystem::path& file) {
  ExcessesByRung excesses;
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      const Where where = recorded_place(rung);
      if (rung.code_at(where)) excesses[rung.name] = check_non_finite(ladder, rung, where).excesses;
    }
  }
  const auto written = [](const std::filesystem::path& to, const std::string& words) {
    std::ofstream out(to);
    out << words;
    if (!out.flush()) std::fprintf(stderr, "cannot write %s\n", to.c_str());
    return static_cast<bool>(out);
  };
  return written(file, excesses_text(excesses)) &&
         written(CONVLADDER_SOURCE_DIR "/oracle/non_finite_record.inc", rows_text(excesses));
}

}  // namespace convladder::testing
