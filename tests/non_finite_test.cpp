/// @file non_finite_test.cpp
/// @brief The check of NaN and infinity finds rungs that lose them, or spread them further than
/// they may.
#include "tests/non_finite.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "oracle/non_finite.hpp"
#include "tests/contains.hpp"

namespace convladder::testing {
namespace {

/// The bottom rung of conv2d, whose output is then changed where it is of floats. @param change
/// gets x, y and y's size
Rung changed(const std::function<void(const float* x, std::span<float> y)>& change) {
  Rung rung = ladder("conv2d").rungs.front();
  auto& run = rung.code[static_cast<std::size_t>(Where::cpu)]->run;
  run = [then = run, change](const Problem& problem, const Arguments& arrays) {
    then(problem, arrays);
    if (std::get<Conv2dProblem>(problem).dtype != DType::f32) return;  // `change` writes floats
    const Shape shape = conv2d_signature(std::get<Conv2dProblem>(problem)).outputs[0].shape;
    change(arrays.in<float>("x"),
           {arrays.out<float>("y"), static_cast<std::size_t>(element_count(shape))});
  };
  return rung;
}

std::string first(const std::vector<std::string>& list) {
  return list.empty() ? "none" : list.front();
}

NonFiniteReport report_of(const Rung& rung) {
  return check_non_finite(ladder("conv2d"), rung, Where::cpu);
}

}  // namespace

TEST_SUITE_BEGIN("non finite");

TEST_CASE("the definition itself is as it should be") {
  const NonFiniteReport report = report_of(ladder("conv2d").rungs.front());
  CHECK(report.runs > 20);
  CHECK(report.failures.empty());
  CHECK(report.excesses.empty());
}

TEST_CASE("a NaN that is lost, a NaN where no input leads, and a wrong infinity are failures") {
  const float inf = std::numeric_limits<float>::infinity();
  const auto failures = [](const auto& change) {
    return first(report_of(changed(change)).failures);
  };
  CHECK(contains(failures([](const float*, std::span<float> y) {
                   for (float& value : y)
                     if (std::isnan(value)) value = 0;
                 }),
                 "nan, found 0"));
  CHECK(contains(failures([](const float*, std::span<float> y) {
                   for (float& value : y) value = std::min(value, 1e30f);
                 }),
                 "expected inf, found 1"));
  CHECK(contains(failures([=](const float*, std::span<float> y) {
                   for (float& value : y)
                     if (value == -inf) value = inf;
                 }),
                 "expected -inf, found inf"));
  // From the first pixel to the last output, which is far away.
  CHECK(
      contains(failures([](const float* x, std::span<float> y) { y.back() += 0 * x[0]; }), "nan"));
}

TEST_CASE("what a rung does beyond the definition is told by kinds, and compared with the record") {
  const Rung spoilt = changed([](const float*, std::span<float> y) {
    for (float& value : y)
      if (std::isinf(value)) value = std::numeric_limits<float>::quiet_NaN();
  });
  const NonFiniteReport report = report_of(spoilt);
  CHECK(report.failures.empty());
  CHECK(report.excesses.at("x").contains("nan"));

  const Excesses zeros = {{"weights", {"zeros"}}}, more = {{"weights", {"zeros", "nan"}}};
  CHECK(excess_differences(zeros, zeros, true).empty());
  CHECK(contains(first(excess_differences(zeros, more, true)), "now makes NaN where infinity is"));
  CHECK(contains(first(excess_differences({}, zeros, false)), "--record-non-finite"));
  CHECK(contains(first(excess_differences(more, zeros, true)), "no longer makes"));
  CHECK(excess_differences(more, zeros, false).empty());  // a GPU may have another path
}

TEST_CASE("the checker's table is the record") {
  ExcessesByRung compiled;
  for (const RecordedReach& row : recorded_reach())
    compiled[std::string(row.rung)][std::string(row.input)].insert(std::string(row.kind));
  CHECK(compiled == recorded_excesses());
}

TEST_CASE("the record of numbers that are not finite is read as it is written, and names rungs") {
  const ExcessesByRung made_up = {{"a", {{"x", {"nan", "zeros"}}}}, {"b", {{"x", {"zeros"}}}}};
  CHECK(parsed_excesses(excesses_text(made_up)) == made_up);
  std::set<std::string> rungs;
  for (const Ladder& ladder : ladders())
    for (const Rung& rung : ladder.rungs) rungs.insert(rung.name);
  const ExcessesByRung recorded = recorded_excesses();
  CHECK(!recorded.empty());
  for (const auto& [rung, excesses] : recorded) {
    CAPTURE(rung);
    CHECK(rungs.contains(rung));
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
