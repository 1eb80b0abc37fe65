#include "tests/outcome.hpp"

#include <doctest/doctest.h>

#include <cstdio>

#include "core/device.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {
namespace {

int passed = 0, failed = 0, skipped = 0;
bool skip_this = false;

/// Counts the test cases, and fails those that assert nothing.
struct Counter : doctest::IReporter {
  explicit Counter(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test) override {
    name = test.m_name;
    skip_this = false;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (stats.failure_flags != 0) {
      ++failed;
    } else if (skip_this) {
      ++skipped;
    } else if (stats.numAssertsCurrentTest == 0) {
      std::printf("%s: FAILED: it asserts nothing\n", name.c_str());
      ++failed;
    } else {
      ++passed;
    }
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

  std::string name;
};

}  // namespace

REGISTER_LISTENER("counter", 0, Counter);

void skip(const std::string& reason) {
  std::printf("SKIPPED: %s\n", reason.c_str());
  skip_this = true;
}

void skip_for_want_of_a_gpu() {
  const std::string reason = "no GPU: " + why_no_gpu();
  if (settings().require_gpu) {
    FAIL_CHECK(reason << "; CONVLADDER_REQUIRE_GPU asks for one");
  } else {
    skip(reason);
  }
}

int conclude() {
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  if (failed > 0) return 1;
  if (passed > 0) return 0;
  return skipped > 0 ? 77 : 1;
}

}  // namespace convladder::testing
