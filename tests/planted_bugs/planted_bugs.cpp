/// @file planted_bugs.cpp
/// @brief The tests are tested: the check that guards every rung must find each planted bug
/// (ladders/*.cmake), and nothing in copies of the same rungs without one.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // cuda_on_cpu's own handler explains a wrong memory access
#include <doctest/doctest.h>

#include <cstdio>
#include <deque>

#include "ladders/ladders.hpp"
#include "tests/check.hpp"
#include "tests/outcome.hpp"

namespace convladder::testing {
namespace {

/// The arrays of each ladder, for the declarations of the copies.
using conv2d_arrays = Conv2dArrays;
using conv2d_dgrad_arrays = Conv2dDgradArrays;
using conv2d_wgrad_arrays = Conv2dWgradArrays;
using im2col_arrays = Im2colArrays;
using col2im_arrays = Col2imArrays;
using gemm_arrays = GemmArrays;
using tile_map_arrays = TileMapArrays;
using rulebook_arrays = RulebookArrays;
using sparse_conv_arrays = SparseConvArrays;
using sparse_dgrad_arrays = SparseDgradArrays;
using sparse_wgrad_arrays = SparseWgradArrays;
using sparse_max_pool_arrays = SparseMaxPoolArrays;
using sparse_max_pool_dgrad_arrays = SparseMaxPoolDgradArrays;
using sparse_avg_pool_arrays = SparseAvgPoolArrays;
using sparse_global_pool_arrays = SparseGlobalPoolArrays;
using sparse_to_dense_arrays = SparseToDenseArrays;
using voxelize_arrays = VoxelizeArrays;
using fft_arrays = FftArrays;

}  // namespace
}  // namespace convladder::testing

#define PLANTED_DECLARATION(ladder, space, name)                            \
  namespace convladder::space {                                             \
  extern const Implementation<::convladder::testing::ladder##_arrays> name; \
  }
#include "planted_declarations.inc"

namespace convladder::testing {
namespace {

struct Copy {
  std::string name;  ///< Of the test.
  std::string bug;   ///< "control" for none.
  std::string ladder, rung;
  Where where;
  AnyImplementation code;
  std::string teaches;
};

template <class A>
Copy copy_of(const std::string& bug, const char* ladder, const std::string& rung, Where where,
             const Implementation<A>& code, const char* teaches) {
  return {bug == "control" ? "planted_bug.none." + rung : "planted_bug." + bug,
          bug,
          ladder,
          rung,
          where,
          AnyImplementation(code),
          teaches};
}

#define PLANTED_ROW(bug, ladder, rung, where, code, teaches) \
  copy_of(bug, #ladder, rung, Where::where, code, teaches),

std::deque<Copy>& copies() {
  static std::deque<Copy> all = {
#include "planted_rows.inc"
  };
  return all;
}

const Copy& current_copy() {
  const std::string name = doctest::getContextOptions()->currentTest->m_name;
  for (const Copy& copy : copies()) {
    if (copy.name == name) return copy;
  }
  throw std::logic_error("not a planted bug: " + name);
}

/// The row of the real rung, with the copy's code.
Rung row_of(const Copy& copy) {
  for (const Rung& rung : ladder(copy.ladder).rungs) {
    if (rung.name != copy.rung) continue;
    Rung row = rung;
    row.code[static_cast<std::size_t>(copy.where)] = copy.code;
    return row;
  }
  throw std::logic_error("no rung is called " + copy.rung);
}

void find_planted_bug() {
  const Copy& copy = current_copy();
  CheckReport report;
  // Most show in exact data and two orders: a failure there is one of the whole check.
  for (const bool whole : {false, true}) {
    if (!report.failures.empty()) break;
    report = check_rung(
        ladder(copy.ladder), row_of(copy), copy.where,
        {.random_problems = 0, .real_mode = whole, .all_orders = whole, .max_failures = 1});
  }
  REQUIRE_MESSAGE(!report.failures.empty(),
                  "not found on " << report.problems << " problems: " << copy.teaches);
  std::printf("%s\n  found after %d problems: %s\n  %s\n", copy.name.c_str(), report.problems,
              report.failures.front().c_str(), copy.teaches.c_str());
}

void pass_without_bug() {
  const Copy& copy = current_copy();
  const CheckReport report = check_rung(ladder(copy.ladder), row_of(copy), copy.where,
                                        {.largest = Size::small, .random_problems = 0});
  for (const std::string& failure : report.failures) FAIL_CHECK(failure);
  CHECK(report.problems > 0);
}

void register_tests() {
  using namespace doctest;
  const detail::TestSuite suite = detail::TestSuite() * "planted_bugs";
  for (const Copy& copy : copies()) {
    detail::regTest(detail::TestCase(copy.bug == "control" ? pass_without_bug : find_planted_bug,
                                     __FILE__, __LINE__, suite) *
                    copy.name.c_str());
  }
}

}  // namespace
}  // namespace convladder::testing

int main(int argc, char** argv) {
  convladder::testing::register_tests();
  doctest::Context context(argc, argv);
  context.run();
  if (context.shouldExit()) return 0;
  return convladder::testing::conclude();
}
