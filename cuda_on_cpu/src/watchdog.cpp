#include "watchdog.hpp"

#include <atomic>
#include <cuda_on_cpu/watchdog.hpp>

#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

using Seconds = std::chrono::duration<double>;

/// The fraction of the limit from which on an estimate is used: the first blocks may be slower than
/// others.
constexpr double kFirstPart = 1.0 / 20;

// Written while no kernel runs, except for the estimate.
std::atomic<bool> on{false};
WatchdogClock::time_point since;
Seconds limit;
std::atomic<double> estimated{0};

}  // namespace

std::optional<double> ended_by_watchdog(WatchdogClock::time_point launched, std::uint64_t begun,
                                        std::uint64_t clusters) {
  if (!on.load(std::memory_order_relaxed) || begun == 0) return {};
  const WatchdogClock::time_point now = WatchdogClock::now();
  if (Seconds(now - since) < kFirstPart * limit) return {};
  const double share = static_cast<double>(clusters) / static_cast<double>(begun);
  const Seconds estimate = Seconds(launched - since) + Seconds(now - launched) * share;
  if (estimate <= limit) return {};
  estimated = estimate.count();
  return estimate.count();
}

namespace control {

Watchdog::Watchdog(std::chrono::duration<double> seconds) {
  since = WatchdogClock::now();
  limit = seconds;
  estimated = 0;
  on = true;
}

Watchdog::~Watchdog() { on = false; }

std::chrono::duration<double> Watchdog::estimate() const { return Seconds(estimated); }

LaunchProgress launch_progress() { return WorkerPool::instance().progress(); }

}  // namespace control
}  // namespace cuda_on_cpu
