/// @file
/// @brief The failures of a block, and the sentences that describe them.
#include <algorithm>
#include <cstdio>

#include "block_runner.hpp"
#include "device_arena.hpp"
#include "report_text.hpp"
#include "symbol_name.hpp"

namespace cuda_on_cpu {

void BlockRunner::fail(cudaError_t error, const std::string& report) {
  launch_->fail(error, report);
  failed_ = true;
}

void BlockRunner::fail_thread(cudaError_t error, const std::string& what) {
  fail(error, describe_thread(current_) + " " + what);
  throw ThreadEnded{};
}

void BlockRunner::fail_at_other_barrier(const detail::Site& site) {
  threads_[current_].state = State::at_barrier;
  threads_[current_].site = site;
  fail(cudaErrorLaunchFailure,
       describe_block() + ": threads are at different barriers: " + describe_state(first_at_) +
           ", but " + describe_state(current_) + ".");
  throw ThreadEnded{};
}

void BlockRunner::fail_without_own_lane(const detail::Site& site) {
  fail_thread(cudaErrorLaunchFailure, "calls a warp function at " + describe_site(site) +
                                          " with a mask that does not include its own lane.");
}

void BlockRunner::abandon_faulted_thread() {
  running_->threads_[running_->current_].fiber->leave_for(running_->scheduler_);
}

void BlockRunner::handle_fault() {
  faulted_ = false;
  Thread& thread = threads_[current_];
  const Fiber* const fiber = thread.fiber;
  fail(cudaErrorIllegalAddress, describe_thread(current_) + " " + describe_fault(*fiber));
  thread.state = State::finished;
  thread.fiber = nullptr;
  std::erase_if(fibers_, [fiber](const auto& owned) { return owned.get() == fiber; });
}

namespace {

bool same_call(const WarpCall& a, const WarpCall& b) {
  return a.function == b.function && a.mask == b.mask;
}

}  // namespace

// --- Sentences

std::string BlockRunner::describe_block() const {
  return "Kernel " + function_name(launch_->kernel.function) + ", block " +
         describe_index(launch_->index_of(block_));
}

std::string BlockRunner::describe_thread_index(unsigned thread) const {
  return "thread " + describe_index(threads_[thread].index);
}

std::string BlockRunner::describe_thread(unsigned thread) const {
  return describe_block() + ", thread " + describe_index(threads_[thread].index);
}

std::string BlockRunner::describe_state(unsigned thread) const {
  const Thread& t = threads_[thread];
  const std::string who = describe_thread_index(thread) + " ";
  switch (t.state) {
    case State::at_barrier: return who + "waits at the barrier at " + describe_site(t.site);
    case State::in_warp: return who + "waits for other lanes at " + describe_site(t.site);
    case State::asleep: {
      const char* const what[] = {"waits at the mbarrier_wait at ",
                                  "waits at the named barrier at ",
                                  "waits for the other threads of its warpgroup at ",
                                  "waits for all threads of its cluster at "};
      return who + what[static_cast<int>(t.sleep)] + describe_site(t.site);
    }
    case State::waiting: return who + "waits for other blocks at " + describe_site(t.site);
    case State::finished: return who + "has returned from the kernel";
    default: return who + "runs";
  }
}

std::string BlockRunner::describe_fault(const Fiber& fiber) const {
  if (fiber.guards(fault_)) return "overflowed its stack.";
  if (DeviceArena::instance().contains(fault_)) {
    return "touched " + DeviceArena::instance().describe(fault_) + ".";
  }
  char address[32];
  std::snprintf(address, sizeof address, "%p", fault_);
  return std::string("touched address ") + address + ", which is not mapped.";
}

std::string BlockRunner::describe_sleeper(unsigned thread) const {
  if (threads_[thread].sleep == Sleep::mbarrier) {
    for (const Mbarrier& barrier : mbarriers_) {
      if (std::ranges::count(barrier.waiting(), thread) > 0) {
        return describe_state(thread) + ": " + barrier.describe() + ".";
      }
    }
  }
  for (unsigned i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state != State::asleep || threads_[i].sleep != threads_[thread].sleep) {
      return describe_state(thread) + ", but " + describe_state(i) + ".";
    }
  }
  return describe_state(thread) + " forever.";
}

std::string BlockRunner::describe_stuck_cluster() {
  std::string sentences = describe_block() + ": " + describe_stuck_block();
  if (cluster_ == nullptr) return sentences;
  for (unsigned rank = 0; rank < cluster_->size(); ++rank) {
    const BlockRunner& other = cluster_->block(rank);
    if (rank == cluster_rank_ || cluster_->has_ended(rank)) continue;
    sentences += " In the same cluster, block " + describe_index(launch_->index_of(other.block_)) +
                 ": " + other.describe_stuck_block();
  }
  return sentences;
}

std::string BlockRunner::describe_stuck_block() const {
  // A thread that waits at an mbarrier may keep others from reaching their barrier: it is the
  // better explanation.
  for (const Sleep what :
       {Sleep::mbarrier, Sleep::warpgroup, Sleep::named_barrier, Sleep::cluster_barrier}) {
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (threads_[i].state == State::asleep && threads_[i].sleep == what) {
        return "deadlock: " + describe_sleeper(i);
      }
    }
  }
  // A thread waits forever; another thread, in a different state, is the reason.
  unsigned waits = 0;
  while (threads_[waits].state == State::finished) ++waits;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state == State::in_warp)
      waits = i;  // the narrower wait is the better
                  // explanation
  }
  const Warp& warp = warps_[waits / kLanes];
  const bool in_warp = threads_[waits].state == State::in_warp;
  const unsigned mask = in_warp ? warp.call_of(waits % kLanes).mask : 0;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    const bool other_lane = i / kLanes == waits / kLanes && i != waits && (mask >> i % kLanes & 1u);
    if (in_warp ? other_lane && threads_[i].state != State::finished &&
                      (threads_[i].state != State::in_warp ||
                       !same_call(warp.call_of(i % kLanes), warp.call_of(waits % kLanes)))
                : threads_[i].state != State::at_barrier) {
      return (in_warp ? "a warp function that some lanes of its mask never reach: "
                      : "a barrier that some threads never reach: ") +
             describe_state(waits) + ", but " + describe_state(i) +
             (in_warp && threads_[i].state == State::in_warp ? " with another function or mask."
                                                             : ".");
    }
  }
  return describe_state(waits) + " forever.";
}

}  // namespace cuda_on_cpu
