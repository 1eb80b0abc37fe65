/// @file limits_test.cpp
/// @brief Problems that no machine holds, and types that a ladder's arrays have not: rungs are
/// asked whether they take them, for how much workspace, and what they choose, but nothing runs.
/// They decline with a reason, or they take it; their own arithmetic must not overflow on the way
/// (a sanitizer sees that).
#include <doctest/doctest.h>

#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "tests/ladders/ladder_tests.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {

TEST_SUITE_BEGIN("limits");

TEST_CASE("what no machine holds is declined with a reason, or taken without an overflow") {
  for (const Ladder& ladder : ladders()) {
    const std::vector<Problem> problems = tests_of(ladder.name).limits();
    REQUIRE(!problems.empty());
    for (const Rung& rung : ladder.rungs) {
      for (const Where where : kEverywhere) {
        const auto& code = rung.code_at(where);
        if (!code || device_at(where) == nullptr) continue;
        for (const Problem& problem : problems) {
          for (const std::vector<Problem>& forms : forms_of(problem)) {
            for (const Problem& form : forms) {
              INFO(rung.name, " (", name_of(where), "): ", describe(form));
              try {
                if (const Declined why = code->supports(form)) {
                  CHECK(!why->empty());
                } else {
                  code->workspace_bytes(form);
                  code->tile(form);
                  if (code->choice) code->choice(form);
                }
              } catch (const BadInput& error) {
                CHECK(std::string(error.what()) != "");  // sizes whose product 64 bits do not hold
              }
            }
          }
        }
      }
    }
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
