#include "tests/rungs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <deque>

#include "core/device.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "tests/check.hpp"
#include "tests/extreme_values.hpp"
#include "tests/identities.hpp"
#include "tests/non_finite.hpp"
#include "tests/outcome.hpp"
#include "tests/report.hpp"
#include "tests/settings.hpp"
#include "tests/taken.hpp"

namespace convladder::testing {
namespace {

struct RungTest {
  std::string name;
  const Ladder* ladder;
  const Rung* rung;
  Where where;
  bool identities;
};

/// A deque, because doctest keeps pointers to the names.
std::deque<RungTest>& rung_tests() {
  static std::deque<RungTest> tests;
  return tests;
}

const RungTest& current_test() {
  const std::string name = doctest::getContextOptions()->currentTest->m_name;
  for (const RungTest& test : rung_tests()) {
    if (test.name == name) return test;
  }
  throw std::logic_error("not a rung's test: " + name);
}

constexpr std::size_t kMostShown = 5;  ///< Of differences from a record.

/// A rung that declines more than it did, or chooses otherwise, fails: see taken.hpp.
/// Nothing runs for it, so it comes first.
void check_taken(const RungTest& test) {
  const TakenRecord record(taken_record_file());
  const std::vector<TestProblem>& list = fixed_problems(test.ladder->name);
  const AnyImplementation& code = *test.rung->code_at(test.where);
  std::vector<std::string> differences = record.differences(test.rung->name, taken_of(list, code));
  const std::vector<std::string> choices =
      record.choice_differences(test.rung->name, choices_of(list, test.ladder->name, code));
  differences.insert(differences.end(), choices.begin(), choices.end());
  for (std::size_t i = 0; i < std::min(differences.size(), kMostShown); ++i)
    FAIL_CHECK(differences[i]);
  if (differences.size() > kMostShown)
    FAIL_CHECK(text("and ", differences.size() - kMostShown, " more"));
}

/// As does one that lets NaN or infinity reach further than it did, see non_finite.hpp.
void check_reach(const RungTest& test) {
  const NonFiniteReport report = check_non_finite(*test.ladder, *test.rung, test.where);
  const ExcessesByRung recorded = recorded_excesses();
  const auto of_rung = recorded.find(test.rung->name);
  std::vector<std::string> failures =
      excess_differences(of_rung == recorded.end() ? Excesses{} : of_rung->second, report.excesses,
                         test.where == recorded_place(*test.rung));
  failures.insert(failures.end(), report.failures.begin(), report.failures.end());
  for (std::size_t i = 0; i < std::min(failures.size(), kMostShown); ++i) FAIL_CHECK(failures[i]);
}

/// As does one that is wrong on numbers of unusual sizes, see extreme_values.hpp.
void check_extremes(const RungTest& test) {
  const ExtremeReport report = check_extreme_values(*test.ladder, *test.rung, test.where);
  for (std::size_t i = 0; i < std::min(report.failures.size(), kMostShown); ++i)
    FAIL_CHECK(report.failures[i]);
}

/// A device that lacks what the rung needs.
void check_declines_all(const RungTest& test) {
  const AnyImplementation& code = *test.rung->code_at(test.where);
  for (const TestProblem& problem : fixed_problems(test.ladder->name)) {
    for (const std::vector<Problem>& forms : forms_of(problem.problem))
      for (const Problem& form : forms) CHECK(code.supports(form).has_value());
  }
}

void run_rung_test() {
  const RungTest& test = current_test();
  ReportEntry entry{.ladder = test.ladder->name,
                    .rung = test.rung->name,
                    .where = name_of(test.where),
                    .kind = test.identities ? "identities" : "problems",
                    .status = "skipped"};
  if (device_at(test.where) == nullptr) {
    skip_for_want_of_a_gpu();
    add_to_report(entry);
    return;
  }
  if (test.rung->why_not_on(device_at(test.where)->compute_capability())) {
    check_declines_all(test);
    entry.status = "declined";
    add_to_report(entry);
    return;
  }
  const Settings& set = settings();
  CheckOptions options = options_for(set);
  options.forbid_guards = test.where != Where::gpu;
  const bool has_record = test.where == recorded_place(*test.rung) && !device_is_chosen();
  if (!test.identities && has_record) check_taken(test);
  const CheckReport report = test.identities
                                 ? check_identities(*test.ladder, *test.rung, test.where, options)
                                 : check_rung(*test.ladder, *test.rung, test.where, options);
  entry.status = report.failures.empty() ? "passed" : "failed";
  entry.checked = report.problems;
  entry.comparisons = report.comparisons;
  entry.declined = reasons_text(report.declined);
  entry.skipped = report.skipped;
  add_to_report(entry);

  std::printf("%s: %d %s, %d comparisons, seed %llu\n", test.name.c_str(), report.problems,
              entry.kind.c_str(), report.comparisons, static_cast<unsigned long long>(set.seed));
  for (const std::string& reason : entry.declined) std::printf("  declined %s\n", reason.c_str());
  for (const std::string& what : report.skipped) std::printf("  skipped %s\n", what.c_str());
  INFO(text("to see this again: CONVLADDER_SEED=", set.seed, set.small ? " CONVLADDER_SMALL=1" : "",
            " tests/suite --test-case='", test.name, "'"));
  for (const std::string& failure : report.failures) FAIL_CHECK(failure);
  if (!test.identities && !set.small) {
    if (!device_is_chosen()) check_reach(test);
    check_extremes(test);
  }
  CHECK(report.problems > 0);
  CHECK(report.comparisons >= report.problems);
}

void register_test(RungTest test) {
  const RungTest& kept = rung_tests().emplace_back(std::move(test));
  // What the macro TEST_CASE does for names that are known when the program is compiled.
  using namespace doctest;
  const detail::TestSuite suite = detail::TestSuite() * name_of(kept.where);
  detail::regTest(detail::TestCase(run_rung_test, __FILE__, __LINE__, suite) * kept.name.c_str());
}

}  // namespace

void register_rung_tests() {
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      for (const Where where : kEverywhere) {
        if (!rung.code_at(where)) continue;  // of the GPU, gpu_record_line() says what is known
        const std::string name = rung.name + "." + name_of(where);
        register_test({name, &ladder, &rung, where, false});
        register_test({name + ".identities", &ladder, &rung, where, true});
      }
    }
  }
}

}  // namespace convladder::testing
