#include "launch.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cuda_on_cpu/watchdog.hpp>
#include <numeric>

#include "kernels.hpp"

TEST_CASE("every thread of every block runs once, with its own indices") {
  const Defaults defaults;
  for (const unsigned workers : {1u, 2u, 5u}) {
    const unsigned before = cuda_on_cpu::control::worker_threads();
    cuda_on_cpu::control::set_worker_threads(workers);
    const dim3 grid(3, 4, 5), block(7, 3, 2);
    const unsigned count = 3 * 4 * 5 * 7 * 3 * 2;
    DeviceArray<unsigned> rank(count), runs(std::vector<unsigned>(count, 0));
    REQUIRE(launch(record_indices, {grid, block}, rank.data(), runs.data()) == cudaSuccess);
    std::vector<unsigned> expected(count);
    std::iota(expected.begin(), expected.end(), 0u);
    CHECK(rank.host() == expected);
    CHECK(runs.host() == std::vector<unsigned>(count, 1));
    cuda_on_cpu::control::set_worker_threads(before);
  }
}

TEST_CASE("a watchdog ends a launch that would exceed the time limit, and no other") {
  const Defaults defaults;
  DeviceArray<int> out(1);
  const auto launch_blocks = [&](unsigned count) {
    return launch(write_int, {count, 1}, out.data(), 42);
  };
  constexpr unsigned kMany = 400'000;
  using Seconds = std::chrono::duration<double>;
  {
    const cuda_on_cpu::control::Watchdog watchdog(Seconds(1e-9));
    CHECK(launch_blocks(1) == cudaSuccess);  // the time of its only block is unknown
    CHECK(watchdog.estimate().count() == 0);
  }
  {
    const cuda_on_cpu::control::Watchdog watchdog(Seconds(1000));
    CHECK(launch_blocks(kMany) == cudaSuccess);
    CHECK(watchdog.estimate().count() == 0);
  }
  {
    const cuda_on_cpu::control::Watchdog watchdog(Seconds(1e-4));
    CHECK(launch_blocks(kMany) == cudaErrorLaunchTimeout);
    CHECK(cudaGetLastError() == cudaErrorLaunchTimeout);
    CHECK(report_names("watchdog"));
    CHECK(watchdog.estimate().count() > 1e-4);
  }
  CHECK(launch_blocks(kMany) == cudaSuccess);
  CHECK(cuda_on_cpu::control::launch_progress().blocks == 0);
}

TEST_CASE("arguments are converted to the parameters' types and every thread has its own copy") {
  const Defaults defaults;
  DeviceArray<double> out(4);
  REQUIRE(launch(store_arguments, {1, 64}, 65.5f, 2, make_float3(1, 2, 3), out.data()) ==
          cudaSuccess);
  CHECK(out.host() == std::vector<double>{66, 2, 1, 3});
}

TEST_CASE("the older launch functions take pointers to the arguments") {
  const Defaults defaults;
  DeviceArray<int> out(1);
  int* where = out.data();
  int value = 42;
  void* args[] = {&where, &value};
  REQUIRE(cudaLaunchKernel(write_int, 1, 1, args) == cudaSuccess);
  CHECK(out.first() == 42);
  value = 43;
  REQUIRE(cudaLaunchCooperativeKernel(write_int, 1, 1, args) == cudaSuccess);
  CHECK(out.first() == 43);
}

TEST_CASE("launches that CUDA refuses fail with CUDA's own error") {
  const Defaults defaults;
  const auto error_of = [](dim3 grid, dim3 block, std::size_t shared = 0) {
    const cudaError_t error = launch(print_hello, {grid, block, shared});
    CHECK(cudaGetLastError() == error);
    CHECK(report_names("print_hello", "refused"));
    return error;
  };
  CHECK(error_of(1, 1025) == cudaErrorInvalidConfiguration);
  CHECK(error_of(1, dim3(32, 33)) == cudaErrorInvalidConfiguration);
  CHECK(error_of(1, dim3(1, 1, 65)) == cudaErrorInvalidConfiguration);
  CHECK(error_of(1, 0) == cudaErrorInvalidConfiguration);
  CHECK(error_of(0, 1) == cudaErrorInvalidConfiguration);
  CHECK(error_of(dim3(1, 1, 0), 1) == cudaErrorInvalidConfiguration);
  CHECK(error_of(2147483648u, 1) == cudaErrorInvalidConfiguration);
  CHECK(error_of(dim3(1, 65536), 1) == cudaErrorInvalidConfiguration);
  CHECK(error_of(dim3(1, 1, 65536), 1) == cudaErrorInvalidConfiguration);
  CHECK(error_of(1, 1, 48 * 1024 + 1) == cudaErrorInvalidValue);
}

TEST_CASE(
    "dynamic shared memory beyond 48 KiB requires an attribute, and beyond 227 KiB is refused") {
  const Defaults defaults;
  constexpr int kMost = 227 * 1024;
  DeviceArray<int> out(1);
  CHECK(launch(write_int, {1, 1, 48 * 1024}, out.data(), 1) == cudaSuccess);
  CHECK(launch(write_int, {1, 1, kMost}, out.data(), 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(write_int, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost + 1) ==
        cudaErrorInvalidValue);
  REQUIRE(cudaFuncSetAttribute(write_int, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost) ==
          cudaSuccess);
  CHECK(launch(write_int, {1, 1, kMost}, out.data(), 2) == cudaSuccess);
  CHECK(out.first() == 2);
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, write_int) == cudaSuccess);
  CHECK(attributes.maxDynamicSharedSizeBytes == kMost);
  CHECK(attributes.maxThreadsPerBlock == 1024);
}

TEST_CASE("a kernel without barriers runs on one fiber, without a switch between its threads") {
  const Defaults defaults;
  DeviceArray<unsigned> rank(1000 * 256), runs(std::vector<unsigned>(1000 * 256, 0));
  cuda_on_cpu::control::reset_statistics();
  REQUIRE(launch(record_indices, {1000, 256}, rank.data(), runs.data()) == cudaSuccess);
  const auto statistics = cuda_on_cpu::control::statistics();
  CHECK(statistics.launches == 1);
  CHECK(statistics.blocks == 1000);
  CHECK(statistics.threads == 256000);
  CHECK(statistics.fiber_switches == 1000);  // one per block
}
