/// @file microscope.cpp
/// @brief `./ladder inspect`, and the budgets of `./ladder test`: rungs under the microscope.
#include <algorithm>
#include <cstdio>
#include <map>

#include "check/assignment.hpp"
#include "check/counters.hpp"
#include "command/inspect/listing.hpp"
#include "core/error.hpp"

namespace convladder::check {

command::Inspection look(const Judged& judged, const Trial& trial) {
  return watch(judged, trial,
               [&](const RunOptions& options) { return run_once(judged, trial, options); });
}

namespace {

void print(const std::string& line) { std::printf("%s\n", line.c_str()); }

/// Empty, or the first error that makes the counters worthless.
std::string trouble_of(const command::Inspection& seen) {
  if (!seen.agrees) return "differs: " + seen.reason;
  for (const auto& race : seen.seen.races)
    if (race.is_error) return command::sentence_of(race);
  if (!seen.seen.unwritten.empty())
    return command::sentence_of(seen.seen.unwritten.front(), /*is_used=*/true);
  return "";
}

/// Every budget, and whether it is kept.
int budgets() {
  std::map<std::string, command::Inspection> seen;
  for (const Case& one : read_cases()) {
    if (!one.is_counted()) continue;
    const Judged judged = rung_named(one.rung);
    seen[one.name] = look(judged, read_trial(judged.ladder->name, split(one.words)));
    if (const std::string trouble = trouble_of(seen[one.name]); !trouble.empty()) {
      print(text(one.name, " ", trouble));
      print(text("  details: ./ladder inspect ", one.rung, " ", one.words));
      return 1;
    }
  }
  bool kept = true;
  for (const Budget& budget : read_budgets()) {
    const double value = counter(seen.at(budget.on_case), budget.counter);
    const bool within = value <= budget.most;
    kept = kept && within;
    print(text(budget.id, ": ", budget.counter, " of ", budget.on_case, " is ", value,
               "; the budget is at most ", budget.most, within ? "" : "  <- exceeded"));
  }
  return kept ? 0 : 1;
}

/// A rung on a problem, line by line.
int inspect(const std::vector<std::string>& words) {
  const bool named = !words.empty() && !words.front().starts_with("--");
  const Judged judged = rung_named(named ? words.front() : exercises().front().rung);
  const std::vector<std::string> rest(words.begin() + (named ? 1 : 0), words.end());
  const command::Inspection seen = look(judged, read_trial(judged.ladder->name, rest));
  std::fputs(command::inspect_text(seen).c_str(), stdout);
  return trouble_of(seen).empty() ? 0 : 1;
}

/// `count COUNTER RUNG PROBLEM...`: one number.
int count(const std::vector<std::string>& words) {
  require(words.size() >= 2, "count", words.size(), "must name a counter, a rung and a problem");
  const Judged judged = rung_named(words[1]);
  const std::vector<std::string> rest(words.begin() + 2, words.end());
  const Trial trial = read_trial(judged.ladder->name, rest);
  const std::optional<double> number = number_of(words[0], trial.problem);
  print(text(number ? *number : counter(look(judged, trial), words[0])));
  return 0;
}

int main_with(const std::vector<std::string>& words) {
  require(!words.empty(), "command", "", "must be budgets, inspect or count");
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words.front() == "budgets") return budgets();
  if (words.front() == "inspect") return inspect(rest);
  require(words.front() == "count", "command", words.front(), "must be budgets, inspect or count");
  return count(rest);
}

}  // namespace
}  // namespace convladder::check

int main(int count, char** words) {
  try {
    return convladder::check::main_with({words + 1, words + count});
  } catch (const convladder::BadInput& error) {
    std::fprintf(stderr, "ladder: %s\n", error.what());
    return 2;
  }
}
