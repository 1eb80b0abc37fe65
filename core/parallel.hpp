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

/// The machine's cores, at least 1.
inline int cores() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

/// Calls body(i) for 0 <= i < count, in no particular order; on all cores, if what is left after a
/// moment takes longer than to start threads. `body` must not throw.
/// @param nanoseconds that all calls are known to take on one core: if they are many, threads start
/// at once. Only a loop of few long calls gains from that; 0 if nothing is known
template <class Body>
void parallel_for(std::int64_t count, const Body& body, double nanoseconds = 0) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  constexpr auto kWorthThreads = std::chrono::microseconds(200);
  constexpr double kKnownWorth = 100'000;  // nanoseconds; to start a thread takes some 15'000
  const auto begin = std::chrono::steady_clock::now();
  for (std::chrono::steady_clock::duration time{};
       nanoseconds < kKnownWorth &&
       (time < kWorthThreads || time * (count - next) < kWorthThreads * std::int64_t{next});) {
    const std::int64_t i = next++;
    if (i >= count) return;
    body(i);
    time = std::chrono::steady_clock::now() - begin;
  }
  const std::int64_t threads = std::min<std::int64_t>(count - next, cores());
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

}  // namespace convladder
