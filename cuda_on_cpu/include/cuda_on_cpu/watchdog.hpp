/// @file
/// @brief How far a launch is, and how long it may take. Brings in no CUDA names.
#pragma once

#include <chrono>
#include <cstdint>

namespace cuda_on_cpu::control {

/// While one is alive, a launch ends with cudaErrorLaunchTimeout if all launches since then would
/// take longer than a limit: as by the watchdog of a GPU that drives a display. It looks whenever a
/// block begins; by those that have begun before it, it estimates the time of the launch. One at a
/// time.
class Watchdog {
 public:
  /// @param limit of all launches together
  explicit Watchdog(std::chrono::duration<double> limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  /// How long the launches would have taken, at least; 0 if it has ended none.
  std::chrono::duration<double> estimate() const;
};

/// How far a launch is.
struct LaunchProgress {
  std::uint64_t begun;   ///< Blocks that run, or have run.
  std::uint64_t blocks;  ///< Of the grid; 0: no kernel runs.
};
/// Of the launch that runs now. Any thread may ask.
LaunchProgress launch_progress();

}  // namespace cuda_on_cpu::control
