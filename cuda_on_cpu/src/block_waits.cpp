/// @file
/// @brief Waiting for other blocks, and the detection of deadlocks.
#include <chrono>
#include <thread>

#include "block_runner.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {

void BlockRunner::wait_for_other_blocks() {
  if (progressed_) {
    // The others may have waited for a thread of this block.
    stop_waiting();
  } else if (!is_waiting_) {
    is_waiting_ = true;
    idle_polls_ = 0;
    progress_seen_ = launch_->progress();
    waiting_since_ = std::chrono::steady_clock::now();
    if (!(cluster_ != nullptr ? cluster_->begin_waiting() : WorkerPool::instance().block_waits())) {
      fail(cudaErrorLaunchFailure,
           describe_block() + ": " + describe_state(waiting_.front()) +
               ", and so many blocks wait that no further block can be started.");
    }
  } else {
    let_time_pass();
  }
  if (launch_->failed()) failed_ = true;
  if (failed()) return;
  progressed_ = false;
  for (const unsigned thread : waiting_) ready_.push(thread);
  waiting_.clear();
}

void BlockRunner::let_time_pass() {
  using namespace std::chrono_literals;
  if (launch_->progress() != progress_seen_) {
    progress_seen_ = launch_->progress();
    waiting_since_ = std::chrono::steady_clock::now();
  } else if (WorkerPool::instance().all_wait() && launch_->exhausted() &&
             std::chrono::steady_clock::now() - waiting_since_ >
                 launch_->settings.deadlock_timeout) {
    fail(cudaErrorLaunchTimeout, describe_block() +
                                     ": deadlock: " + describe_state(waiting_.front()) +
                                     ", and every other block that has not finished waits too.");
    return;
  }
  constexpr unsigned kPollsBeforeSleep = 16;
  if (++idle_polls_ < kPollsBeforeSleep) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(50us);
  }
}

void BlockRunner::stop_waiting() {
  if (!is_waiting_) return;
  is_waiting_ = false;
  launch_->note_progress();
  cluster_ != nullptr ? cluster_->end_waiting() : WorkerPool::instance().block_goes_on();
}

bool BlockRunner::let_cluster_run() {
  if (progressed_) launch_->note_progress();
  if (waiting_.empty()) progressed_ = false;
  if (!cluster_->take_turns(cluster_rank_, !waiting_.empty())) return false;
  if (launch_->failed()) failed_ = true;
  return true;
}

}  // namespace cuda_on_cpu
