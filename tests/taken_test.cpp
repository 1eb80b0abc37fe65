/// @file taken_test.cpp
/// @brief The record of what each rung takes: that a rung which declines more than it did fails.
#include "tests/taken.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "tests/contains.hpp"

namespace convladder::testing {
namespace {

using Names = std::vector<std::string>;

FixedProblem taken(const std::string& name, Names forms, const std::string& reasons = "") {
  return {name, name + ": 1x1", std::move(forms), reasons};
}

/// The one difference.
std::string difference(const TakenRecord& record, const std::vector<FixedProblem>& fixed) {
  const Names all = record.differences("a/rung", fixed);
  REQUIRE(all.size() == 1);
  return all.front();
}

/// The code of a rung that declines one problem more.
AnyImplementation declining(AnyImplementation code, const std::string& problem) {
  code.supports = [then = code.supports, problem](const Problem& p) {
    return describe(p) == problem ? Declined("not this one") : then(p);
  };
  return code;
}

}  // namespace

TEST_SUITE_BEGIN("taken problems");

TEST_CASE("a rung that declines what it took fails, with the problem and the reason") {
  const TakenRecord record = TakenRecord::parsed(
      R"({"a/rung": {"fp32": "all", "fp16": {"all but": ["two"]}, "bf16": {"only": ["one"]}}})");
  const std::vector<FixedProblem> as_recorded = {taken("one", {"bf16", "fp16", "fp32"}),
                                                 taken("two", {"fp32"}, "too wide"),
                                                 taken("three", {"fp16", "fp32"}, "no bf16")};
  CHECK(record.differences("a/rung", as_recorded).empty());

  std::vector<FixedProblem> less = as_recorded;
  less[2] = taken("three", {"fp32"}, "too narrow");
  CHECK(contains(difference(record, less), "declines as fp16"));
  CHECK(contains(difference(record, less), "three: 1x1 (too narrow)"));
  CHECK(contains(difference(record, less), "suite --record-taken tests/taken_problems.json"));
  less[2] = as_recorded[2];
  less[0] = taken("one", {"fp16", "fp32"}, "no bf16");
  CHECK(contains(difference(record, less), "declines as bf16"));
  less[0] = taken("one", {}, "nothing");
  CHECK(record.differences("a/rung", less).size() == 3);
}

TEST_CASE("a rung that takes what is recorded as declined, or is not recorded, fails") {
  const TakenRecord record = TakenRecord::parsed(R"({"a/rung": {"fp32": {"only": ["one"]}}})");
  CHECK(contains(difference(record, {taken("one", {"fp32"}), taken("two", {"fp32"})}),
                 "takes as fp32 what is recorded as declined: two"));
  CHECK(contains(difference(record, {taken("one", {"fp32", "tf32"})}), "takes as tf32"));
  CHECK(contains(record.differences("another", {taken("one", {"fp32"})}).front(), "not recorded"));
  CHECK(contains(
      difference(TakenRecord::parsed(R"({"a/rung": {"fp32": {"all but": ["a name of old"]}}})"),
                 {taken("one", {"fp32"})}),
      "in no list: a name of old"));
}

TEST_CASE("a rung that chooses otherwise than it did fails, with both counts") {
  const ChoiceCounts counts = {{"large tiles", 2}, {kDeclinesLimits, 3}};
  const TakenRecord record = TakenRecord::parsed(
      record_text({{"a/rung", {taken("one", {"fp32"})}}, {"b/rung", {taken("one", {"fp32"})}}},
                  {{"a/rung", counts}}));
  CHECK(record.rungs() == Names{"a/rung", "b/rung"});
  CHECK(record.choice_differences("a/rung", counts).empty());
  CHECK(record.choice_differences("b/rung", {}).empty());
  const Names found = record.choice_differences("a/rung", {{"large tiles", 1}, {"small tiles", 1}});
  REQUIRE(found.size() == 3);
  CHECK(contains(found[0], text('"', kDeclinesLimits, "\" 0 and not 3")));
  CHECK(contains(found[1], "\"large tiles\" 1 and not 2"));
  CHECK(contains(found[2], "\"small tiles\" 1 and not 0"));
}

TEST_CASE("what is written is read back, with few names") {
  const std::vector<FixedProblem> fixed = {
      taken("one", {"fp32"}), taken("\"two\"", {"fp16", "fp32"}), taken("three", {"fp32"}),
      taken("four", {"fp16", "fp32"}), taken("five", {"fp16", "fp32"})};
  const std::string text =
      record_text({{"a/rung", fixed}, {"b/rung", {taken("one", {"fp32"})}}, {"c/rung", fixed}});
  CHECK(contains(text, R"("fp32": "all")"));
  CHECK(contains(text, R"("all but": [)"));
  CHECK_FALSE(contains(text, "four"));
  const TakenRecord record = TakenRecord::parsed(text);
  CHECK(record.rungs() == Names{"a/rung", "b/rung", "c/rung"});
  CHECK(record.differences("a/rung", fixed).empty());
  CHECK(contains(text, R"("as a/rung: fp16")"));
  CHECK(record.differences("c/rung", fixed).empty());
  CHECK(record.differences("b/rung", {taken("one", {"fp32"})}).empty());
}

TEST_CASE("problems of the fixed lists have names of their own, and those of rungs name such") {
  for (const Ladder& ladder : ladders()) {
    std::set<std::string> names, rungs;
    for (const Rung& rung : ladder.rungs) rungs.insert(rung.name);
    for (const TestProblem& problem : fixed_problems(ladder.name)) {
      CAPTURE(problem.id);
      CHECK(names.insert(problem.id).second);
      // Of the gradients' rungs a problem may name, each ladder has its own.
      CHECK((problem.rungs.empty() || std::ranges::any_of(problem.rungs, [&](const auto& name) {
               return rungs.contains(name);
             })));
    }
    CHECK(!names.empty());
  }
}

TEST_CASE("the record has every rung that runs here, and no other") {
  std::set<std::string> rungs;
  for (const Ladder& ladder : ladders())
    for (const Rung& rung : ladder.rungs)
      if (rung.code_at(recorded_place(rung))) rungs.insert(rung.name);
  const Names recorded = TakenRecord(taken_record_file()).rungs();
  CHECK(std::set<std::string>(recorded.begin(), recorded.end()) == rungs);
}

TEST_CASE("one problem that a real rung declines beyond the record is noticed") {
  const TakenRecord record(taken_record_file());
  const Ladder& gemm = ladder("gemm");
  const std::vector<TestProblem>& list = fixed_problems("gemm");
  for (const Rung& rung : gemm.rungs) {
    const auto& code = rung.code_at(recorded_place(rung));
    if (!code) continue;
    CAPTURE(rung.name);
    CHECK(record.differences(rung.name, taken_of(list, *code)).empty());
    // A problem that it takes in one of its forms, and then in none.
    std::vector<Problem> taken;
    for (const TestProblem& test : list) {
      for (const std::vector<Problem>& forms : forms_of(test.problem)) {
        std::ranges::copy_if(forms, std::back_inserter(taken),
                             [&](const Problem& p) { return !code->supports(p); });
      }
    }
    REQUIRE(!taken.empty());
    const AnyImplementation less = declining(*code, describe(taken.front()));
    const Names found = record.differences(rung.name, taken_of(list, less));
    CHECK(!found.empty());
    CHECK(contains(found.front(), "not this one"));
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
