#include "tests/identities.hpp"

#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {

CheckReport check_identities(const Ladder& ladder, const Rung& rung, Where where,
                             const CheckOptions& options) {
  CheckReport report;
  tests_of(ladder.name).identities(Subject(ladder, rung, where, options), options, report);
  if (report.problems == 0 && report.failures.empty()) {
    report.failures.push_back("declines every identity's problems");
  }
  return report;
}

}  // namespace convladder::testing
