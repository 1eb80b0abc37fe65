/// @file ladder_tests.hpp
/// @brief What the suite asks of the rungs of a ladder: each file beside this one fills rows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/dice.hpp"
#include "tests/identity_tools.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {

/// A ladder's problems and identities.
struct LadderTests {
  std::function<std::vector<TestProblem>()> problems;  ///< See problems_of().
  /// See random_problems().
  std::function<std::vector<TestProblem>(int count, std::uint64_t seed)> random;
  std::function<std::vector<TestProblem>()> rounding;  ///< See rounding_problems(); may be empty.
  /// See check_identities().
  std::function<void(const Subject&, const CheckOptions&, CheckReport&)> identities;
  /// Problems that no machine holds, and types that its arrays have not, see limits_test.cpp; with
  /// some that take too long here, for which choices alone are asked.
  std::function<std::vector<Problem>()> limits;
  /// Small problems, for infinities and NaNs in each input of floats; empty: it has none.
  std::function<std::vector<TestProblem>()> non_finite = {};
};

/// The ladder's row. @throws std::logic_error if there is none
const LadderTests& tests_of(const std::string& ladder);

/// Problems that draw(dice, i) makes, with arrays misaligned at random unless told otherwise.
template <class Draw>
std::vector<TestProblem> drawn(int count, std::uint64_t seed, const Draw& draw,
                               bool misaligned = true) {
  Dice dice(seed);
  std::vector<TestProblem> list;
  for (int i = 1; i <= count; ++i) {
    const Problem problem = draw(dice, i);
    list.push_back({0, text("random ", i, " of seed ", seed), problem, Size::small,
                    misaligned ? static_cast<std::size_t>(dice(0, 3)) * 4 : std::size_t{0}});
  }
  return list;
}

/// A row of typed identities on typed problems.
template <class P, class Identities, class Bases>
auto checked(const Identities& identities, const Bases& bases) {
  return [=](const Subject& subject, const CheckOptions& options, CheckReport& report) {
    check_all<P>(identities(subject, options), bases(), options, report);
  };
}

}  // namespace convladder::testing
