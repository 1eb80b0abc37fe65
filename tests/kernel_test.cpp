/// @file kernel_test.cpp
/// @brief What rungs are made of, at sizes at which no rung could be tested on the CPU; and whether
/// a test's threads run in the order that it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "tests/check.hpp"
#include "tests/identities.hpp"
#include "tests/kernel_probe.hpp"

namespace convladder::testing {
namespace {

using namespace emulated;

constexpr int kThreads = 128;

/// A rung that spoils its result where the first thread of a block to run is `culprit`.
Rung rung_that_fails_if_first(int culprit) {
  for (Rung rung : ladder("gemm").rungs) {
    if (!rung.code_at(Where::emulated)) continue;
    auto& run = rung.code[static_cast<std::size_t>(Where::emulated)]->run;
    run = [then = run, culprit](const Problem& problem, const Arguments& arrays) {
      then(problem, arrays);
      const float wrong = -1234;
      if (kernel_probe::first_thread(kThreads) == culprit)
        device_at(Where::emulated)->upload(arrays.out<float>("c"), &wrong, sizeof wrong);
    };
    return rung;
  }
  throw std::logic_error("no rung runs on cuda_on_cpu");
}

}  // namespace

TEST_SUITE_BEGIN("kernels");

TEST_CASE("threads run in the order that is set") {
  set_emulated_thread_order(0, 1);
  CHECK(kernel_probe::first_thread(kThreads) == 0);
  set_emulated_thread_order(1, 1);
  CHECK(kernel_probe::first_thread(kThreads) == kThreads - 1);
  std::set<int> first;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    set_emulated_thread_order(2, seed);
    first.insert(kernel_probe::first_thread(kThreads));
  }
  CHECK(first.size() > 4);
}

TEST_CASE("identities find what shows in one thread order alone") {
  const CheckOptions options{.largest = Size::small};
  const auto failures = [&](int culprit) {
    return check_identities(ladder("gemm"), rung_that_fails_if_first(culprit), Where::emulated,
                            options)
        .failures;
  };
  CHECK(failures(-1).empty());
  for (const auto& [culprit, order] : {std::pair{0, "forward"}, {kThreads - 1, "reverse"}}) {
    const std::vector<std::string> found = failures(culprit);
    REQUIRE(!found.empty());
    for (const std::string& failure : found)
      CHECK(failure.find(text("threads ", order)) != std::string::npos);
  }
}

TEST_CASE("sums of rows that take several rounds") {
  for (const auto& [rows, columns, blocks] :
       {std::array{1, 1, 1}, {3, 64, 2}, {5, 65, 2}, {2, 128, 4}, {7, 200, 3}, {1, 1000, 1}}) {
    CAPTURE(columns);
    std::vector<int> values, sums, totals;
    for (int row = 0; row < rows; ++row) {
      int before = 0;
      for (int column = 0; column < columns; ++column) {
        const int value = (row * 31 + column * 17) % 29;
        values.push_back(value);
        sums.push_back(before);
        before += value;
      }
      totals.push_back(before);
    }
    for (int order = 0; order < kThreadOrderCount; ++order) {
      set_emulated_thread_order(order, 1);
      const RowSums found = kernel_probe::row_sums(rows, columns, blocks, values);
      CHECK(found.sums == sums);
      CHECK(found.totals == totals);
    }
  }
}

TEST_CASE("pairs in several slabs: each in one part, and all of them added") {
  std::vector<int> many(70);  // taps, of which a warp sees 32 at a time
  for (std::size_t k = 0; k < many.size(); ++k) many[k] = static_cast<int>(k * 7 % 23);
  const std::vector<std::vector<int>> cases = {{500}, {3, 0, 41, 0, 0, 250, 1}, many, {0, 0, 5}};
  std::set<int> slabs;
  for (const std::vector<int>& pairs_of_taps : cases) {
    for (const int wanted : {1, 2, 7, 20, 1000}) {
      for (const int columns : {1, 45}) {
        const PairSums found = kernel_probe::pair_sums(pairs_of_taps, wanted, columns);
        slabs.insert(found.slabs);
        CAPTURE(wanted);
        CAPTURE(found.slabs);
        std::vector<int> tap;
        std::vector<float> of_taps;
        int pair = 0;
        for (std::size_t k = 0; k < pairs_of_taps.size(); ++k) {
          const int first = pair, count = pairs_of_taps[k];
          for (; pair < first + count; ++pair) tap.push_back(static_cast<int>(k));
          for (int column = 0; column < columns; ++column) {
            const int sum = count * (2 * (first + column) + count - 1) / 2;
            of_taps.push_back(static_cast<float>(sum));
          }
        }
        CHECK(std::ranges::all_of(found.seen, [](int times) { return times == 1; }));
        CHECK(found.tap == tap);
        CHECK(found.of_taps == of_taps);
      }
    }
  }
  CHECK(slabs == std::set<int>{1, 2, 4, 8, 16, 32});
}

TEST_SUITE_END();

}  // namespace convladder::testing
