#include "worker_pool.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>

#include "block_runner.hpp"
#include "settings.hpp"
#include "statistics.hpp"

namespace cuda_on_cpu {
namespace {

/// The most blocks that can wait at the same time.
constexpr unsigned kMaxHelpers = 1024;

unsigned default_threads() {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(
      number_in_environment("CUDA_ON_CPU_THREADS", static_cast<int>(cores)));
}

}  // namespace

WorkerPool& WorkerPool::instance() {
  // Never destroyed: helpers sleep in it until the process ends.
  static WorkerPool& pool = *new WorkerPool;
  return pool;
}

WorkerPool::WorkerPool() : threads_(default_threads()) {}

void WorkerPool::set_threads(unsigned count) {
  const std::lock_guard lock(mutex_);
  threads_ = std::clamp(count, 1u, kMaxHelpers);
}

void WorkerPool::run(GridLaunch& launch) {
  {
    const std::lock_guard lock(mutex_);
    launch_ = &launch;
    wanted_ = static_cast<unsigned>(std::min<std::uint64_t>(threads_, launch.clusters)) - 1;
    start_missing_helpers();
  }
  if (wanted_ > 0) wake_.notify_all();
  run_blocks(launch, false);
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return helpers_ == 0; });  // their blocks may still access launch_
  launch_ = nullptr;
}

control::LaunchProgress WorkerPool::progress() {
  const std::lock_guard lock(mutex_);
  if (launch_ == nullptr) return {0, 0};
  return {launch_->begun(), launch_->blocks};
}

bool WorkerPool::start_missing_helpers() {
  try {
    for (; started_ < wanted_; ++started_) std::thread(&WorkerPool::help, this).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void WorkerPool::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return launch_ && !launch_->exhausted() && helpers_ < wanted_; });
    GridLaunch& launch = *launch_;
    ++helpers_;
    do {
      lock.unlock();
      run_blocks(launch, true);
      lock.lock();
    } while (helpers_ <= wanted_ &&
             !launch.exhausted());  // two helpers may have decided that they are surplus
    --helpers_;
    left_.notify_one();
  }
}

void WorkerPool::run_blocks(GridLaunch& launch, bool is_helper) {
  BlockRunner& runner = BlockRunner::of_this_thread();
  std::uint64_t index = 0;
  ++running_;
  // When blocks have stopped waiting, there are more helpers than wanted.
  while (!(is_helper && helpers_ > wanted_) && launch.take_cluster(&index)) {
    launch.cluster_blocks == 1 ? runner.run(launch, index) : Cluster::run(launch, index);
  }
  --running_;
  count_fiber_switches(runner.take_switch_count());
}

bool WorkerPool::block_waits() {
  const std::lock_guard lock(mutex_);
  ++waiting_;
  if (launch_->exhausted()) return true;
  if (wanted_ >= kMaxHelpers) return false;
  ++wanted_;
  const bool enough = start_missing_helpers();
  wake_.notify_one();
  return enough;
}

void WorkerPool::block_goes_on() {
  const std::lock_guard lock(mutex_);
  --waiting_;
  if (wanted_ > 0) --wanted_;
}

}  // namespace cuda_on_cpu
