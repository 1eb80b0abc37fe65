/// @file
/// @brief The state of control::Watchdog, as read by launches.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cuda_on_cpu {

using WatchdogClock = std::chrono::steady_clock;

/// Whether a watchdog ends a launch after `begun` of its `clusters` have started: the estimated
/// seconds of all launches, if they exceed the limit.
std::optional<double> ended_by_watchdog(WatchdogClock::time_point launched, std::uint64_t begun,
                                        std::uint64_t clusters);

}  // namespace cuda_on_cpu
