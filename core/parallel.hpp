/// @file parallel.hpp
/// @brief A loop spread over the cores: of the reference, and of the blocked rungs on the CPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace convladder {

/// Calls body(i) for 0 <= i < count, in no particular order; on all cores, if what is left after a
/// moment takes longer than to start threads. `body` must not throw.
template <class Body>
void parallel_for(std::int64_t count, const Body& body) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  constexpr auto kWorthThreads = std::chrono::microseconds(200);
  const auto begin = std::chrono::steady_clock::now();
  for (std::chrono::steady_clock::duration time{};
       time < kWorthThreads || time * (count - next) < kWorthThreads * std::int64_t{next};) {
    const std::int64_t i = next++;
    if (i >= count) return;
    body(i);
    time = std::chrono::steady_clock::now() - begin;
  }
  const std::int64_t threads =
      std::min<std::int64_t>(count - next, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

}  // namespace convladder
