/// @file
/// @brief The state of control::Watchdog, as launches read it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cuda_on_cpu {

using WatchdogClock = std::chrono::steady_clock;

/// Whether a watchdog ends a launch, now that `begun` of its `clusters` have begun: the seconds
/// that all launches would take, if these are too many.
std::optional<double> ended_by_watchdog(WatchdogClock::time_point launched, std::uint64_t begun,
                                        std::uint64_t clusters);

}  // namespace cuda_on_cpu
