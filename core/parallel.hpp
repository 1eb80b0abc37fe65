/// @file parallel.hpp
/// @brief A loop spread over the cores, for the programs around the rungs (rungs do not use it).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace convladder {

/// Calls body(i) for 0 <= i < count, on all cores, in no particular order. `body` must not throw.
template <class Body>
void parallel_for(std::int64_t count, const Body& body) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  const std::int64_t threads =
      std::min<std::int64_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

}  // namespace convladder
