/// @file
/// @brief The progress and the time limit of a launch. This header declares no CUDA names.
#pragma once

#include <chrono>
#include <cstdint>

namespace cuda_on_cpu::control {

/// While an object exists, a launch ends with cudaErrorLaunchTimeout if all launches since its
/// construction would exceed a time limit, like the watchdog of a GPU that drives a display. The
/// time of the launch is estimated whenever a block starts, from the blocks that have started
/// before. One object at a time.
class Watchdog {
 public:
  /// @param limit for all launches together
  explicit Watchdog(std::chrono::duration<double> limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  /// The estimated time of the launches; 0 if no launch was ended.
  std::chrono::duration<double> estimate() const;
};

/// The progress of a launch.
struct LaunchProgress {
  std::uint64_t begun;   ///< Blocks that have started.
  std::uint64_t blocks;  ///< Blocks of the grid; 0: no kernel runs.
};
/// The progress of the current launch. May be called from any thread.
LaunchProgress launch_progress();

}  // namespace cuda_on_cpu::control
