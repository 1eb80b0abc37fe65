/// @file problems.hpp
/// @brief The one list of edge problems, which serves every rung of every ladder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "oracle/data.hpp"

namespace convladder::testing {

/// What sizes end at.
inline constexpr int kLargestInt = std::numeric_limits<int>::max();

/// How much a problem asks for.
enum class Size {
  small,  ///< for a sanitizer, too: quick, and each kind of edge once
  full,   ///< a second at most, on one core, on cuda_on_cpu
  huge    ///< many GB or blocks: only on a GPU, and only on request
};

/// A problem that shows one kind of mistake.
struct TestProblem {
  int number = 0;    ///< One of the thirty edge shapes; 0: beyond them.
  std::string name;  ///< What it shows.
  Problem problem;   ///< Validated.
  Size size = Size::small;
  /// Bytes between a 256-byte boundary and each array whose elements may begin there: at a multiple
  /// of their size. Forms that have no such array do not run.
  std::size_t misalignment = 0;
  bool once = false;        ///< Takes long: one run in exact mode is enough.
  Arrays given = {};        ///< Inputs that are no made-up data: sites, rulebooks.
  bool equal_sums = false;  ///< One of rounding_problems(): for Data::positive.
  /// Of single arrays, by name, the bytes that they begin behind a 256-byte boundary.
  std::map<std::string, std::size_t, std::less<>> offsets = {};
  std::string id = {};  ///< Of fixed_problems(): its name, and no other's of the ladder.
  /// The rungs, by their full names, to which it shows a limit of theirs. It is large, so that only
  /// these run on it; empty: all do.
  std::vector<std::string> rungs = {};
  bool exact_only = false;  ///< One of many that differ in their tile borders; integers suffice.
};

/// Whether a rung is to run on the problem.
bool is_for(const TestProblem& problem, const std::string& rung);

/// "9 uncovered tail pixels: 1x2x10x10, 3 filters 3x3, stride 3".
std::string title_of(const TestProblem& problem);

/// Every problem of a ladder. @throws std::logic_error for an unknown ladder.
std::vector<TestProblem> problems_of(const std::string& ladder);

/// The problem in each layout, and in each of those in the precisions that a rung may want, the
/// strictest first.
std::vector<std::vector<Problem>> forms_of(const Problem& problem);

/// Problems whose every output adds up equally many products, and enough of them that rounding
/// averages out: on data without negative numbers they tell it from truncation.
std::vector<TestProblem> rounding_problems(const std::string& ladder);
/// The name of such a problem.
inline constexpr const char* kRounding = "rounding, not truncation";

/// problems_of() and rounding_problems(): those that are the same in every run, each with an id.
/// They are computed once per process.
const std::vector<TestProblem>& fixed_problems(const std::string& ladder);

/// What tells a form from the others that forms_of() gives: "nchw fp32", "bf16", "pairs"; "any"
/// where there is one only.
std::string name_of_form(const Problem& form);

/// As many more, drawn by the seed. The same seed gives the same problems on every machine.
std::vector<TestProblem> random_problems(const std::string& ladder, int count, std::uint64_t seed);

/// A problem that validated() must refuse.
struct RejectedProblem {
  int number;
  std::string name;
  Conv2dProblem problem;
  std::string message;  ///< A part of what it must say.
};

/// Numbers 18 and 19 of the thirty.
std::vector<RejectedProblem> rejected_problems();

}  // namespace convladder::testing
