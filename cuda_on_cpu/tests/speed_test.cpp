#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

struct Cost {
  double seconds;      ///< on the clock
  double cpu_seconds;  ///< of all threads together, which other programs affect less
};

template <class Action>
Cost cost_of(Action action) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  action();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC};
}

}  // namespace

TEST_CASE("a naive convolution of a 6-channel 768 x 512 image takes about a second") {
  const Defaults defaults;
  constexpr int kChannels = 6, kHeight = 512, kWidth = 768, kFilter = 6, kOutputs = 6;
  constexpr unsigned kRows = kHeight - kFilter + 1, kColumns = kWidth - kFilter + 1;
  DeviceArray<float> x(std::vector<float>(kChannels * kHeight * kWidth, 1.0f));
  DeviceArray<float> w(std::vector<float>(kOutputs * kChannels * kFilter * kFilter, 2.0f));
  DeviceArray<float> y(std::size_t{kOutputs} * kRows * kColumns);
  const Shape shape{dim3((kColumns + 31) / 32, (kRows + 7) / 8, kOutputs), dim3(32, 8)};
  Cost best{1e9, 1e9};
  for (int i = 0; i < 3; ++i) {
    const Cost cost = cost_of([&] {
      REQUIRE(launch(naive_conv, shape, x.data(), w.data(), y.data(), kChannels, kHeight, kWidth,
                     kFilter) == cudaSuccess);
    });
    best = {std::min(best.seconds, cost.seconds), std::min(best.cpu_seconds, cost.cpu_seconds)};
  }
  MESSAGE("naive convolution, 0.5 G multiply-adds: " << best.seconds << " s, " << best.cpu_seconds
                                                     << " s of CPU time");
  const std::vector<float> result = y.host();
  CHECK(std::all_of(result.begin(), result.end(), [](float v) { return v == 432.0f; }));
#if defined(__OPTIMIZE__) && !defined(CUDA_ON_CPU_SANITIZED)
  CHECK(best.cpu_seconds < 3.0);  // 1.5 s on two cores
#endif
}

TEST_CASE("a barrier costs tens of nanoseconds per thread") {
  const Defaults defaults;
  constexpr int kRounds = 100;
  DeviceArray<float> y(100 * 256);
  REQUIRE(launch(many_barriers, {2, 256}, y.data(), 1) == cudaSuccess);  // creates the fibers
  cuda_on_cpu::control::reset_statistics();
  const Cost cost = cost_of([&] {
    REQUIRE(launch(many_barriers, {100, 256}, y.data(), kRounds) == cudaSuccess);
  });
  const double switches = static_cast<double>(cuda_on_cpu::control::statistics().fiber_switches);
  CHECK(switches >= 100.0 * 256 * (2 * kRounds + 1));
  CHECK(y.first() == kRounds);
  MESSAGE("a barrier, a thread: " << cost.cpu_seconds / switches * 1e9 << " ns of CPU time");
}

TEST_CASE("a small launch costs microseconds") {
  const Defaults defaults;
  DeviceArray<int> out(1);
  const Cost cost = cost_of([&] {
    for (int i = 0; i < 1000; ++i)
      REQUIRE(launch(write_int, {1, 32}, out.data(), i) == cudaSuccess);
  });
  MESSAGE("a launch of 32 threads: " << cost.seconds * 1e3 << " us");
  CHECK(cost.cpu_seconds < 1.0);
}
