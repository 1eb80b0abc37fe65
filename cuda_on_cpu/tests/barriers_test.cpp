#include <doctest/doctest.h>

#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

/// A later launch works: a failed one leaves no state behind.
bool goes_on_to_work() {
  DeviceArray<int> in(std::vector<int>(256, 2)), out(1);
  return launch(reduce_tree, {1, 256}, in.data(), out.data()) == cudaSuccess && out.first() == 512;
}

}  // namespace

TEST_CASE("__syncthreads separates what threads write from what they read") {
  const Defaults defaults;
  std::vector<int> in(100 * 256);
  std::iota(in.begin(), in.end(), 0);
  DeviceArray<int> input(in), out(100);
  REQUIRE(launch(reduce_tree, {100, 256}, input.data(), out.data()) == cudaSuccess);
  const std::vector<int> sums = out.host();
  for (std::size_t b = 0; b < 100; ++b) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(256 * b);
    CHECK(sums[b] == std::accumulate(begin, begin + 256, 0));
  }
}

TEST_CASE("__syncthreads_count, _and, _or tell every thread the block's vote") {
  const Defaults defaults;
  for (const int trues : {0, 1, 70}) {
    std::vector<int> predicate(70, 0);
    for (int i = 0; i < trues; ++i) predicate[static_cast<std::size_t>(69 - i)] = 5;
    DeviceArray<int> in(predicate), count(70), all(70), any(70);
    REQUIRE(launch(barrier_votes, {1, 70}, in.data(), count.data(), all.data(), any.data()) ==
            cudaSuccess);
    CHECK(count.host() == std::vector<int>(70, trues));
    CHECK(all.host() == std::vector<int>(70, trues == 70));
    CHECK(any.host() == std::vector<int>(70, trues > 0));
  }
}

TEST_CASE("barriers at two lines are an error that names both") {
  const Defaults defaults;
  CHECK(launch(barriers_at_two_lines, {3, 32}) == cudaErrorLaunchFailure);
  CHECK(report_names("Kernel barriers_at_two_lines", "block (", "thread (0,0,0)", "thread (5,0,0)",
                     place_of("barriers.cu", "then"), place_of("barriers.cu", "else")));
  CHECK(goes_on_to_work());
}

TEST_CASE("a barrier that some threads never reach is an error that names it and one of them") {
  const Defaults defaults;
  CHECK(launch(barrier_after_return, {2, 64}) == cudaErrorLaunchFailure);
  CHECK(report_names("barrier_after_return", "thread (7,0,0) has returned",
                     place_of("barriers.cu", "after return")));
  CHECK(goes_on_to_work());
  CHECK(launch(barrier_in_loop_of_different_length, {1, 4}) == cudaErrorLaunchFailure);
  CHECK(report_names("thread (0,0,0) has returned", place_of("barriers.cu", "in loop")));
  CHECK(goes_on_to_work());
}

TEST_CASE("a failed kernel's threads are unwound") {
  const Defaults defaults;
  DeviceArray<int> destroyed(std::vector<int>{0});
  CHECK(launch(destroy_locals_in_failure, {1, 64}, destroyed.data()) == cudaErrorLaunchFailure);
  CHECK(destroyed.first() == 64);
  CHECK(goes_on_to_work());
}

TEST_CASE("a kernel's error is the launch's, the last error, and the next synchronization's") {
  const Defaults defaults;
  CHECK(launch(call_trap, {1, 32}) == cudaErrorLaunchFailure);
  CHECK(cudaPeekAtLastError() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(launch(call_trap, {1, 32}) == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);  // returned and cleared
}

TEST_CASE("__trap and a failed assert end the kernel with a report") {
  const Defaults defaults;
  CHECK(launch(call_trap, {1, 32}) == cudaErrorLaunchFailure);
  CHECK(report_names("call_trap", "thread (3,0,0)", place_of("barriers.cu", "trap")));
  CHECK(launch(check_assertion, {1, 1}, 0) == cudaSuccess);
  CHECK(launch(check_assertion, {1, 1}, 1) == cudaErrorAssert);
  CHECK(report_names("value == 0", place_of("barriers.cu", "assertion")));
  CHECK(goes_on_to_work());
}

TEST_CASE("printf works in a kernel") {
  const Defaults defaults;
  CHECK(launch(print_hello, {1, 2}) == cudaSuccess);
}
