#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"

using cuda_on_cpu::control::set_thread_order;
using cuda_on_cpu::control::set_worker_threads;
using cuda_on_cpu::control::ThreadOrder;

namespace {

constexpr unsigned kThreads = 64;

/// The order in which one block's threads run before and after a barrier.
std::vector<unsigned> order_in_block() {
  DeviceArray<unsigned> count(std::vector<unsigned>{0}), order(2 * kThreads);
  REQUIRE(launch(record_order, {1, kThreads}, count.data(), order.data()) == cudaSuccess);
  return order.host();
}

std::vector<unsigned> sorted(std::vector<unsigned> v) {
  std::sort(v.begin(), v.end());
  return v;
}

}  // namespace

TEST_CASE("threads run forward or in reverse between barriers, as set") {
  const Defaults defaults;
  std::vector<unsigned> once(kThreads);
  std::iota(once.begin(), once.end(), 0u);
  std::vector<unsigned> expected = once;
  expected.insert(expected.end(), once.begin(), once.end());
  CHECK(order_in_block() == expected);

  set_thread_order(ThreadOrder::reverse);
  std::reverse(once.begin(), once.end());
  expected = once;
  expected.insert(expected.end(), once.begin(), once.end());
  CHECK(order_in_block() == expected);
}

TEST_CASE("a seed shuffles the threads in each barrier interval, reproducibly") {
  const Defaults defaults;
  set_thread_order(ThreadOrder::shuffled, 1);
  const std::vector<unsigned> order = order_in_block();
  const std::vector<unsigned> before(order.begin(), order.begin() + kThreads);
  const std::vector<unsigned> after(order.begin() + kThreads, order.end());
  std::vector<unsigned> all(kThreads);
  std::iota(all.begin(), all.end(), 0u);
  CHECK(sorted(before) == all);
  CHECK(sorted(after) == all);
  CHECK(before != all);
  CHECK(before != after);
  CHECK(order_in_block() == order);
  set_thread_order(ThreadOrder::shuffled, 2);
  CHECK(order_in_block() != order);
}

TEST_CASE("blocks run in the same kind of order as threads") {
  const Defaults defaults;
  const unsigned workers = cuda_on_cpu::control::worker_threads();
  set_worker_threads(1);
  const auto order_of_blocks = [] {
    DeviceArray<unsigned> count(std::vector<unsigned>{0}), order(2 * 10);
    REQUIRE(launch(record_order, {10, 1}, count.data(), order.data()) == cudaSuccess);
    std::vector<unsigned>
        blocks;  // each block's thread is recorded twice, before and after its barrier
    for (std::size_t i = 0; i < 20; i += 2) blocks.push_back(order.host()[i]);
    return blocks;
  };
  const std::vector<unsigned> forward{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(order_of_blocks() == forward);
  set_thread_order(ThreadOrder::reverse);
  CHECK(order_of_blocks() == std::vector<unsigned>(forward.rbegin(), forward.rend()));
  set_thread_order(ThreadOrder::shuffled, 12);
  CHECK(sorted(order_of_blocks()) == forward);
  CHECK(order_of_blocks() != forward);
  set_worker_threads(workers);
}

TEST_CASE("a missing barrier shows as a wrong result, even in a block of one warp") {
  const Defaults defaults;
  std::vector<int> expected(32);
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = (i + 1) % 32;
  for (const ThreadOrder order :
       {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    set_thread_order(order, 3);
    DeviceArray<int> out(32);
    REQUIRE(launch(rotate_through_shared<true>, {1, 32}, out.data()) == cudaSuccess);
    CHECK(out.host() == expected);
    REQUIRE(launch(rotate_through_shared<false>, {1, 32}, out.data()) == cudaSuccess);
    CHECK(out.host() != expected);
    REQUIRE(launch(rotate_in_warp<true>, {1, 32}, out.data()) == cudaSuccess);
    CHECK(out.host() == expected);
    REQUIRE(launch(rotate_in_warp<false>, {1, 32}, out.data()) == cudaSuccess);
    CHECK(out.host() != expected);
  }
}

TEST_CASE("the number of workers can be set, and results do not depend on it") {
  const Defaults defaults;
  const unsigned workers = cuda_on_cpu::control::worker_threads();
  std::vector<unsigned long long> sums;
  for (const unsigned count : {1u, 2u, 8u}) {
    set_worker_threads(count);
    CHECK(cuda_on_cpu::control::worker_threads() == count);
    DeviceArray<unsigned long long> sum(std::vector<unsigned long long>{0});
    REQUIRE(launch(unequal_work, {100, 32}, sum.data(), 100) == cudaSuccess);
    sums.push_back(sum.first());
  }
  CHECK(sums[0] > 0);
  CHECK(sums[1] == sums[0]);
  CHECK(sums[2] == sums[0]);
  set_worker_threads(workers);
}
