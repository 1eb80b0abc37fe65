/// @file parallel.hpp
/// @brief A parallel loop over the cores: for the reference and for the blocked CPU rungs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace convladder {

/// The machine's cores, at least 1.
inline int cores() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

/// Calls work() in this thread and meanwhile in up to `helpers` other threads of a pool. It does
/// not wait for busy threads to join. Returns when all calls have returned. `work` must not throw.
void work_with_helpers(int helpers, const std::function<void()>& work);

/// Calls body(i) for 0 <= i < count, in no particular order; on all cores if the remaining work
/// exceeds the time to wake threads. `body` must not throw.
/// @param nanoseconds estimate for all calls on one core: if it is large, threads are woken at
/// once, which matters only for a loop of few long calls; 0 if unknown
template <class Body>
void parallel_for(std::int64_t count, const Body& body, double nanoseconds = 0) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  constexpr auto kWorthThreads = std::chrono::microseconds(200);
  constexpr double kKnownWorth = 30'000;  // nanoseconds; waking a thread takes some 10'000
  const auto begin = std::chrono::steady_clock::now();
  for (std::chrono::steady_clock::duration time{};
       nanoseconds < kKnownWorth &&
       (time < kWorthThreads || time * (count - next) < kWorthThreads * std::int64_t{next});) {
    const std::int64_t i = next++;
    if (i >= count) return;
    body(i);
    time = std::chrono::steady_clock::now() - begin;
  }
  const auto threads = static_cast<int>(std::min<std::int64_t>(count - next, cores()));
  work_with_helpers(threads - 1, work);
}

}  // namespace convladder
