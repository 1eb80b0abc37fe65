#include <doctest/doctest.h>

#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

using cuda_on_cpu::control::ThreadOrder;
constexpr ThreadOrder kOrders[] = {ThreadOrder::forward, ThreadOrder::reverse,
                                   ThreadOrder::shuffled};

}  // namespace

TEST_CASE("a wait at an mbarrier lets other threads run until its phase is complete") {
  const Defaults defaults;
  std::vector<int> values(32 * 10);
  std::iota(values.begin(), values.end(), 0);
  DeviceArray<int> in(values);
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 5);
    DeviceArray<int> out(values.size());
    REQUIRE(launch(pass_through_ring, {1, 64}, in.data(), out.data(), 10) == cudaSuccess);
    const std::vector<int> result = out.host();
    for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i] == values[i ^ 31u]);
  }
}

TEST_CASE("the phase before the first one counts as complete") {
  const Defaults defaults;
  DeviceArray<int> done(std::vector<int>{0});
  REQUIRE(launch(wait_for_phase_before, {1, 1}, done.data()) == cudaSuccess);
  CHECK(done.first() == 1);
}

TEST_CASE(
    "a wait at an mbarrier that cannot end is a deadlock that names the wait, the barrier and what "
    "is missing") {
  const Defaults defaults;
  REQUIRE(launch(wait_in_vain, {2, 32}, 31) == cudaSuccess);
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 5);
    CHECK(launch(wait_in_vain, {2, 32}, 33) == cudaErrorLaunchFailure);
    CHECK(report_names("Kernel wait_in_vain", "deadlock: thread (0,0,0)",
                       place_of("mbarriers.cu", "endless wait"),
                       place_of("mbarriers.cu", "initialized"), "lacks 2 of 33 arrivals"));
  }
  CHECK(launch(wait_in_vain, {1, 32}, 31) == cudaSuccess);  // no state is left behind
}

TEST_CASE("misuse of an mbarrier is an error that names the location") {
  const Defaults defaults;
  const auto fails_at = [](int how, const char* mark, const char* why) {
    return launch(misuse_barrier, {1, 2}, how) == cudaErrorLaunchFailure &&
           report_names(place_of("mbarriers.cu", mark), why);
  };
  CHECK(fails_at(0, "not initialized", "has not been initialized"));
  CHECK(fails_at(1, "twice", "was initialized before"));
  CHECK(fails_at(2, "once too often", "once more than its phase expects"));
  CHECK(fails_at(3, "overwritten", "were overwritten"));
  CHECK(fails_at(4, "parity", "not 0 or 1"));
  CHECK(fails_at(5, "too many bytes", "2^20"));
  CHECK(launch(misuse_barrier, {1, 2}, 6) == cudaSuccess);
}

TEST_CASE("named barriers let parts of a block meet") {
  const Defaults defaults;
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 5);
    DeviceArray<int> out(std::vector<int>(3 * 128, -1));
    REQUIRE(launch(meet_in_halves, {1, 128}, out.data()) == cudaSuccess);
    const std::vector<int> result = out.host();
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 128; ++i) {
        const bool returned = i >= 64 && round == 2;
        CHECK(result[static_cast<std::size_t>(128 * round + i)] ==
              (returned ? -1 : (i ^ 63) + round));
      }
    }
  }
  CHECK(launch(meet_in_vain, {1, 64}) == cudaErrorLaunchFailure);
  CHECK(report_names("deadlock", place_of("mbarriers.cu", "half a meeting")));
}

TEST_CASE(
    "asynchronous copies arrive when a thread waits for them, also after their threads have "
    "exited") {
  const Defaults defaults;
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 7);
  DeviceArray<int> in(values), early(std::vector<int>(32, 0)), out(std::vector<int>(64, 0));
  const auto run = [&](int how) {
    return launch(copies_arrive, {1, 64}, in.data(), early.data(), out.data(), how);
  };
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 5);
    REQUIRE(run(0) == cudaSuccess);
    const std::vector<int> result = out.host(), before = early.host();
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(before[i] == -1);  // the bytes of a NaN
      CHECK(result[i] == values[i]);
      CHECK(result[32 + i] == -1);
    }
    CHECK(run(1) == cudaErrorLaunchFailure);
    CHECK(report_names("without a wait for the copies", place_of("mbarriers.cu", "for copies"),
                       "lacks 0 of 33 arrivals"));
    CHECK(run(2) == cudaErrorLaunchFailure);
    CHECK(report_names(place_of("mbarriers.cu", "one copy too many")));
  }
}

TEST_CASE("a bulk load copies contiguous bytes, and completes at the wait") {
  const Defaults defaults;
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 7);
  DeviceArray<int> in(values), early(std::vector<int>(32, 0)), out(std::vector<int>(32, 0));
  REQUIRE(launch(bulk_copy, {1, 32}, in.data(), early.data(), out.data(), 4) == cudaSuccess);
  const std::vector<int> result = out.host(), before = early.host();
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(before[i] == -1);
    CHECK(result[i] == values[i + 4]);
  }
  CHECK(launch(bulk_copy, {1, 32}, in.data(), early.data(), out.data(), 1) ==
        cudaErrorIllegalInstruction);
  CHECK(report_names(place_of("mbarriers.cu", "first half"), "multiples of 16"));
}
