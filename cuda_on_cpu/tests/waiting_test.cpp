#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "kernels.hpp"
#include "launch.hpp"
#include "own_interface.hpp"

namespace control = cuda_on_cpu::control;

TEST_CASE("a block that waits for another lets the other blocks run") {
  const Defaults defaults;
  using control::ThreadOrder;
  for (const ThreadOrder order :
       {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    control::set_thread_order(order, 9);
    DeviceArray<unsigned> next(std::vector<unsigned>{0});
    REQUIRE(launch(pass_backwards, {50, 2}, next.data()) == cudaSuccess);
    CHECK(next.first() == 50);
  }
}

TEST_CASE("a thread can wait for a thread of its own block") {
  const Defaults defaults;
  DeviceArray<int> flag(std::vector<int>{0});
  REQUIRE(launch(wait_for_own_block, {1, 32}, flag.data()) == cudaSuccess);
  CHECK(flag.first() == 31);
}

TEST_CASE("a block can wait when the launching thread has no block any more") {
  const Defaults defaults;
  const unsigned workers = control::worker_threads();
  control::set_worker_threads(2);
  DeviceArray<int> helping(std::vector<int>{0});
  CHECK(launch(wait_after_the_launching_thread, {2, 1}, std::this_thread::get_id(),
               helping.data()) == cudaSuccess);
  CHECK(helping.first() == 1);
  control::set_worker_threads(workers);
}

TEST_CASE("a spin with __nanosleep lets the other blocks run") {
  const Defaults defaults;
  const unsigned workers = control::worker_threads();
  control::set_worker_threads(1);
  DeviceArray<int> flag(std::vector<int>{0});
  CHECK(launch(spin_with_nanosleep, {2, 1}, flag.data()) == cudaSuccess);
  control::set_worker_threads(workers);
}

TEST_CASE("blocks that all wait forever are reported as a deadlock") {
  const Defaults defaults;
  control::set_deadlock_timeout(std::chrono::milliseconds(50));
  DeviceArray<int> flag(std::vector<int>{0});
  for (const unsigned blocks : {2u, 5u}) {
    CHECK(launch(wait_for_ever, {blocks, 2}, flag.data()) == cudaErrorLaunchTimeout);
    CHECK(report_names("wait_for_ever", "deadlock", place_of("own_interface.cu", "forever")));
  }
  DeviceArray<unsigned> next(std::vector<unsigned>{0});
  CHECK(launch(pass_backwards, {5, 2}, next.data()) == cudaSuccess);
}

TEST_CASE("a cooperative launch synchronizes the whole grid") {
  const Defaults defaults;
  DeviceArray<unsigned> sums(std::vector<unsigned>(5, 0)), mistakes(std::vector<unsigned>{0});
  REQUIRE(launch_cooperatively(grid_rounds, {20, 33}, sums.data(), 5, mistakes.data()) ==
          cudaSuccess);
  CHECK(sums.host() == std::vector<unsigned>(5, 190));
  CHECK(mistakes.first() == 0);
}

TEST_CASE("a grid barrier needs a cooperative launch") {
  const Defaults defaults;
  DeviceArray<unsigned> sums(std::vector<unsigned>(5, 0)), mistakes(std::vector<unsigned>{0});
  CHECK(launch(grid_rounds, {2, 1}, sums.data(), 5, mistakes.data()) == cudaErrorLaunchFailure);
  CHECK(report_names("not cooperative"));
}

TEST_CASE("the process can map memory after any number of threads have waited concurrently") {
  const Defaults defaults;
  DeviceArray<unsigned> sums(std::vector<unsigned>(1, 0)), mistakes(std::vector<unsigned>{0});
  // Each block waits on an OS thread of its own, which keeps the stacks of its largest block.
  for (const auto& [blocks, threads] : {std::pair{64u, 256u},
                                        {16u, 1024u},
                                        {32u, 512u},
                                        {16u, 1024u},
                                        {16u, 1024u},
                                        {16u, 1024u}}) {
    REQUIRE(launch_cooperatively(grid_rounds, {blocks, threads}, sums.data(), 1, mistakes.data()) ==
            cudaSuccess);
  }
  std::ifstream maps("/proc/self/maps");
  if (!maps) return;  // not Linux
  int mappings = 0;
  for (std::string line; std::getline(maps, line);) ++mappings;
  CHECK(mappings < 60'000);  // of 65530
}

TEST_CASE("an environment variable sets the number of multiprocessors of the device") {
  for (const auto& [text, expected] : {std::pair{"132", 132}, {"0", 8}, {"many", 8}}) {
    CAPTURE(text);
    setenv("CUDA_ON_CPU_MULTIPROCESSORS", text, 1);
    int sms = 0;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
    CHECK(sms == expected);
  }
  unsetenv("CUDA_ON_CPU_MULTIPROCESSORS");
}

TEST_CASE("a cooperative launch of more blocks than can be resident is refused") {
  const Defaults defaults;
  int blocks_per_sm = 0, sms = 0;
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, grid_rounds, 1024, 0) ==
          cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  CHECK(blocks_per_sm == 2);
  const auto most = static_cast<unsigned>(blocks_per_sm * sms);
  DeviceArray<unsigned> sums(std::vector<unsigned>(1, 0)), mistakes(std::vector<unsigned>{0});
  CHECK(launch_cooperatively(grid_rounds, {most + 1, 1024}, sums.data(), 1, mistakes.data()) ==
        cudaErrorCooperativeLaunchTooLarge);
  CHECK(launch_cooperatively(grid_rounds, {most, 1024}, sums.data(), 1, mistakes.data()) ==
        cudaSuccess);
  CHECK(mistakes.first() == 0);
}
