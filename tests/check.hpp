/// @file check.hpp
/// @brief Checks one rung in one place on all problems of its ladder. The suite and the tests with
/// planted bugs call the same function, so that what catches a planted bug guards every rung.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/runner.hpp"
#include "tests/problems.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {

struct CheckOptions {
  Size largest = Size::full;     ///< Problems beyond this size are left out.
  int random_problems = 16;      ///< Beside the list.
  bool real_mode = true;         ///< Random floats, too: the same code, compared within a bound.
  bool all_orders = true;        ///< Of threads on cuda_on_cpu three, not two.
  std::uint64_t seed = 1;        ///< For the random problems and all data.
  bool poison = true;            ///< RunOptions::poison
  bool forbid_guards = false;    ///< RunOptions::forbid_guards
  std::size_t max_failures = 5;  ///< Stops after so many.
};

/// What the environment asks for.
CheckOptions options_for(const Settings& settings);

/// What a rung does with a problem of fixed_problems().
struct FixedProblem {
  std::string name, title;         ///< TestProblem::id, and title_of() it.
  std::vector<std::string> forms;  ///< name_of_form() those that it takes.
  std::string reasons;             ///< Why it declined others; each once.
};

/// Asks code for all problems of a list: it runs none.
std::vector<FixedProblem> taken_of(const std::vector<TestProblem>& problems,
                                   const AnyImplementation& code);

/// How often a rung chooses what (Implementation::choice), and in the same form some sums.
using ChoiceCounts = std::map<std::string, std::int64_t>;
/// Such a sum: of LadderTests::limits, so many forms are declined.
inline constexpr const char* kDeclinesLimits = "in all: limits declined";

/// Asks code for its choices and its tiles over the problems of a list and over the ladder's
/// limits, in each form that it takes, and for the workspaces of the list: it runs none.
ChoiceCounts choices_of(const std::vector<TestProblem>& problems, const std::string& ladder,
                        const AnyImplementation& code);

/// What a check found out.
struct CheckReport {
  int problems = 0;                     ///< Problems on which the rung ran and was compared,
  int comparisons = 0;                  ///< in so many runs: modes, thread orders, repetitions.
  std::map<std::string, int> declined;  ///< Problems by the reason for which the rung declined.
  std::vector<std::string> skipped;     ///< Problems that did not fit here, with the reason.
  std::vector<std::string> failures;    ///< Each a line that names the problem and what is wrong.
};

/// Checks `rung` there on every problem of its ladder:
/// - exact mode: bit-identical to the reference;
/// - in each layout that it takes, and in the strictest precision;
/// - real mode: every element within its bound on rounding, and, if the row says so, the same bits
///   in every run;
/// - on cuda_on_cpu with the threads of a block in three orders, each in one mode at least and the
///   shuffled one in both; elsewhere at least twice;
/// - where its arrays are misaligned, in some of these runs all, in others one of them alone;
/// - CUDA rungs in the last run with few blocks, so that every loop over a grid goes round.
/// Never throws for what a rung does: an exception is a failure too. A rung that declines without a
/// reason, or that declines everything, fails.
CheckReport check_rung(const Ladder& ladder, const Rung& rung, Where where,
                       const CheckOptions& options);

/// See set_emulated_thread_order(): so many are of different kinds.
inline constexpr int kThreadOrderCount = 3;

/// "forward", "reverse" or "shuffled".
const char* name_of_thread_order(int run);

/// Sets the order of cuda_on_cpu's threads: run 0 forward, 1 reverse, 2 and later shuffled by the
/// seed.
void set_emulated_thread_order(int run, std::uint64_t seed);

/// Like check_rung(), on these problems only, all of which the rung may decline.
CheckReport check_rung_on(const std::vector<TestProblem>& problems, const Ladder& ladder,
                          const Rung& rung, Where where, const CheckOptions& options);

}  // namespace convladder::testing
