#include "block_runner.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_on_cpu/static_shared.hpp>
#include <functional>
#include <memory>

#include "memory_fault.hpp"
#include "model_device.hpp"
#include "report_text.hpp"
#include "static_shared_registry.hpp"
#include "watching.hpp"

namespace cuda_on_cpu {

constinit thread_local BuiltinIndex threadIdx{};
constinit thread_local BuiltinIndex blockIdx{};
constinit thread_local BuiltinIndex blockDim{};
constinit thread_local BuiltinIndex gridDim{};
namespace detail {
constinit thread_local std::uint64_t block_number = 0;
}  // namespace detail

namespace {

/// BuiltinIndex has constant members, so that a kernel cannot assign them: a new object replaces
/// the old one.
void set(BuiltinIndex& index, const uint3& value) {
  std::construct_at(&index, BuiltinIndex{value.x, value.y, value.z});
}

bool same_place(const detail::Site& a, const detail::Site& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

}  // namespace

// --- Life

BlockRunner& BlockRunner::of_this_thread() {
  prepare_thread_for_memory_faults();
  thread_local BlockRunner runner;
  return runner;
}

constinit thread_local BlockRunner* BlockRunner::running_ = nullptr;

void BlockRunner::end_process_outside_kernel(const char* function) {
  std::fprintf(stderr, "cuda_on_cpu: %s was called outside a kernel.\n", function);
  std::abort();
}

BlockRunner::BlockRunner() = default;

BlockRunner::~BlockRunner() {
  closing_ = true;
  for (Fiber* const fiber : idle_fibers_) scheduler_.switch_to(*fiber);
}

void BlockRunner::ReadyQueue::reset(unsigned threads) {
  const unsigned size = std::bit_ceil(threads);
  if (ring_.size() < size) {
    ring_.resize(size);
    mask_ = size - 1;
  }
  head_ = tail_ = 0;
}

// --- Switching

[[gnu::always_inline]] inline Context& BlockRunner::take_next() {
  if (ready_.empty() || failed()) return scheduler_;
  ++switches_;
  choose_next();
  next_ = ready_.pop();
  Fiber* const fiber = threads_[next_].fiber;
  // The stacks of a block do not fit into the L1 cache: the next one is prefetched, and the one
  // after it is looked up.
  if (ready_.size() > 1) {
    if (const Fiber* const after = threads_[ready_.front()].fiber) after->prefetch();
    __builtin_prefetch(threads_[ready_.second()].fiber);
  }
  return fiber != nullptr ? *fiber : take_idle_fiber();
}

Fiber& BlockRunner::take_idle_fiber() {
  if (idle_fibers_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&BlockRunner::fiber_body, this));
    return *fibers_.back();
  }
  Fiber& fiber = *idle_fibers_.back();
  idle_fibers_.pop_back();
  return fiber;
}

inline void BlockRunner::choose_next() {
  if (launch_->settings.order == control::ThreadOrder::shuffled && ready_.size() > 1)
    ready_.bring_to_front(random_.below(ready_.size()));
}

inline void BlockRunner::make_current(unsigned thread) {
  current_ = thread;
  set(threadIdx, threads_[thread].index);
}

void BlockRunner::resume(Context& next) {
  running_ = this;
  scheduler_.switch_to(next);
  running_ = nullptr;
  if (faulted_) handle_fault();
}

[[gnu::always_inline]] inline void BlockRunner::suspend(State state, const detail::Site& site) {
  const unsigned me = current_;
  Thread& thread = threads_[me];
  thread.state = state;
  thread.site = site;
  thread.fiber->switch_to(take_next());
  make_current(me);
  if (failed()) throw ThreadEnded{};
  thread.state = State::running;
}

std::size_t BlockRunner::deepest_stack() const {
  std::size_t deepest = 0;
  for (const auto& fiber : fibers_) deepest = std::max(deepest, fiber->depth());
  return deepest;
}

// --- One block

void BlockRunner::run(GridLaunch& launch, std::uint64_t index, Cluster* cluster, unsigned rank) {
  cluster_ = cluster;
  cluster_rank_ = rank;
  begin_block(launch, index);
  if (cluster != nullptr) {
    static_places_ = &static_shared_places();
    cluster->begun(rank);
  }
  schedule();
  end_block();
  if (cluster != nullptr) cluster->ended(rank);
}

void BlockRunner::begin_block(GridLaunch& launch, std::uint64_t index) {
  ++detail::block_number;
  launch_ = &launch;
  block_ = index;
  const dim3& grid = launch.grid;
  const dim3& block = launch.block;
  set(gridDim, grid);
  set(blockDim, block);
  set(blockIdx, launch.index_of(index));

  if (block_dim_.x != block.x || block_dim_.y != block.y || block_dim_.z != block.z) {
    block_dim_ = block;
    threads_.resize(launch.threads);
    for (unsigned i = 0; i < launch.threads; ++i) {
      threads_[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    }
    warps_.resize((launch.threads + kLanes - 1) / kLanes);
    ready_.reset(launch.threads);
  }
  for (Thread& thread : threads_) {
    thread.state = State::fresh;
    thread.fiber = nullptr;
    thread.has_arrived = false;
  }
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(kLanes, launch.threads - w * kLanes);
    warps_[w].reset(lanes == kLanes ? detail::kFullWarp : (1u << lanes) - 1);
  }
  if (launch.shared_bytes != 0 || shared_.bytes() != 0) {
    shared_.prepare(launch.shared_bytes, fill_byte(launch.settings));
  }
  mbarriers_.clear();
  bulk_stores_.clear();
  named_barriers_.clear();
  warpgroups_.clear();
  sleepers_.clear();
  if (cluster_ == nullptr) {
    lone_barrier_.arrived = 0;
    lone_barrier_.waiting.resize(1);
    lone_barrier_.waiting[0].clear();
  }
  random_ = Random(launch.settings.seed ^ (index + 1) * 0x9e3779b97f4a7c15u);
  finished_ = interval_ = arrived_ = predicates_ = 0;
  failed_ = progressed_ = false;
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.block_begins(
        index, launch.threads,
        {inspect::MemorySpace::dynamic_shared, shared_.data(), launch.shared_bytes});
    if (cluster_ != nullptr) watcher.block_joins(cluster_, cluster_rank_, cluster_->size());
  });
}

void BlockRunner::end_block() {
  if (!failed()) check_nothing_under_way();
  if (std::exchange(copies_kept_, false)) {
    for (AsyncCopies& copies : async_copies_) copies.clear();
  }
  if (const std::string overrun = shared_.check_guard(); !overrun.empty()) {
    fail(cudaErrorIllegalAddress, describe_block() + ": " + overrun);
  }
  const unsigned char fill = fill_byte(launch_->settings);
  if (const std::string overrun = check_static_shared_guards(fill); !overrun.empty()) {
    fail(cudaErrorIllegalAddress, describe_block() + ": " + overrun + ".");
  }
  stop_waiting();
  launch_->note_progress();
  detail::tell_watcher([](inspect::Watcher& watcher) { watcher.block_ended(); });
}

void BlockRunner::schedule() {
  make_all_ready();
  for (;;) {
    if (cluster_ != nullptr && !ready_.empty()) cluster_->goes_on();
    resume(take_next());
    if (failed()) break;
    if (finished_ == launch_->threads) return;
    if (arrived_ == launch_->threads) {
      release_barrier();
    } else if (cluster_ != nullptr && let_cluster_run()) {
      if (failed()) break;
    } else if (!waiting_.empty()) {
      wait_for_other_blocks();
    } else {
      fail(cudaErrorLaunchFailure, describe_stuck_cluster());
    }
  }
  unwind_suspended_threads();
}

void BlockRunner::unwind_suspended_threads() {
  waiting_.clear();
  for (unsigned i = 0; i < threads_.size(); ++i) {
    if (threads_[i].fiber == nullptr) continue;
    resume(*threads_[i].fiber);  // suspend() throws there
  }
}

void BlockRunner::make_all_ready() {
  const unsigned n = launch_->threads;
  ready_.reset(n);
  switch (launch_->settings.order) {
    case control::ThreadOrder::forward:
      for (unsigned i = 0; i < n; ++i) ready_.push(i);
      break;
    case control::ThreadOrder::reverse:
      for (unsigned i = n; i-- > 0;) ready_.push(i);
      break;
    case control::ThreadOrder::shuffled: {
      std::uint16_t order[model::kThreadsPerBlock];
      for (unsigned i = 0; i < n; ++i) {  // Fisher and Yates, inside out
        const unsigned j = random_.below(i + 1);
        order[i] = order[j];
        order[j] = static_cast<std::uint16_t>(i);
      }
      for (unsigned i = 0; i < n; ++i) ready_.push(order[i]);
      break;
    }
  }
}

void BlockRunner::fiber_body(void* runner, Fiber& self) {
  BlockRunner& r = *static_cast<BlockRunner*>(runner);
  while (!r.closing_) {
    do {
      r.run_next_thread(self);
    } while (r.take_next_if_fresh());
    r.idle_fibers_.push_back(&self);
    self.switch_to(r.take_next());
  }
  self.leave_for(r.scheduler_);
}

void BlockRunner::run_next_thread(Fiber& self) {
  make_current(next_);
  threads_[current_].state = State::running;
  threads_[current_].fiber = &self;
  try {
    launch_->kernel.call(launch_->kernel.arguments);
  } catch (const ThreadEnded&) {
  } catch (...) {
    fail(cudaErrorLaunchFailure, describe_thread(current_) + " let a C++ exception escape.");
  }
  Thread& thread = threads_[current_];
  thread.state = State::finished;
  thread.fiber = nullptr;
  ++finished_;
  progressed_ = true;
  if (current_ < async_copies_.size() && !copies_kept_) async_copies_[current_].clear();
  // Lanes that waited for this one no longer wait for it.
  Warp& warp = warps_[current_ / kLanes];
  warp.retire(lane());
  if (warp.has_pending()) complete_meetings(warp, current_ - lane(), warp.pending());
  // Nor do threads at the cluster's barrier.
  ClusterBarrier& barrier = cluster_barrier();
  if (failed()) return;
  if (thread.has_arrived && thread.cluster_phase == barrier.phase) --barrier.arrived;
  if (barrier.arrived != 0) check_cluster_barrier();
}

bool BlockRunner::take_next_if_fresh() {
  if (failed() || ready_.empty()) return false;
  choose_next();
  if (threads_[ready_.front()].state != State::fresh) return false;
  next_ = ready_.pop();
  return true;
}

// --- Waiting within the block

[[gnu::always_inline]] inline int BlockRunner::block_barrier(detail::BarrierKind kind,
                                                             bool predicate,
                                                             const detail::Site& site) {
  if (arrived_ == 0) {
    first_at_ = current_;
    predicates_ = 0;
  } else if (!same_place(site, threads_[first_at_].site)) {
    fail_at_other_barrier(site);
  }
  ++arrived_;
  predicates_ += predicate;
  progressed_ = true;
  suspend(State::at_barrier, site);
  switch (kind) {
    case detail::BarrierKind::all: return barrier_result_ == static_cast<int>(launch_->threads);
    case detail::BarrierKind::any: return barrier_result_ != 0;
    default: return barrier_result_;
  }
}

int detail::block_barrier(BarrierKind kind, bool predicate, const Site& site) {
  return BlockRunner::of_running_kernel("__syncthreads").block_barrier(kind, predicate, site);
}

void BlockRunner::release_barrier() {
  // The result cannot be overwritten before all threads have read it, because that would require
  // another barrier.
  barrier_result_ = static_cast<int>(predicates_);
  arrived_ = 0;
  ++interval_;
  detail::tell_watcher([](inspect::Watcher& watcher) { watcher.barrier_passed(); });
  make_all_ready();
}

[[gnu::always_inline]] inline detail::WarpValues& BlockRunner::warp_meeting(
    const WarpCall& call, const detail::Site& site) {
  Warp& warp = warps_[current_ / kLanes];
  const unsigned me = lane();
  if (!(call.mask >> me & 1u)) fail_without_own_lane(site);
  warp.arrive(me, call);
  progressed_ = true;
  if (call.mask == 1u << me) {
    warp.try_complete(me);  // single thread: no need to suspend
  } else {
    complete_meetings(warp, current_ - me, 1u << me);
    suspend(State::in_warp, site);
  }
  return warp.values_for(me);
}

detail::WarpValues& detail::warp_meeting(WarpFunction function, unsigned mask, std::uint64_t value,
                                         const Site& site) {
  return BlockRunner::of_running_kernel("a warp function")
      .warp_meeting({function, mask, value}, site);
}

void BlockRunner::complete_meetings(Warp& warp, unsigned first_thread, unsigned candidates) {
  for (; candidates != 0; candidates &= candidates - 1) {
    const auto candidate = static_cast<unsigned>(std::countr_zero(candidates));
    const unsigned met = warp.try_complete(candidate);
    if (met == 0) continue;
    candidates &= ~met | 1u << candidate;
    detail::tell_watcher(
        [&](inspect::Watcher& watcher) { watcher.lanes_met(first_thread / kLanes, met); });
    if (launch_->settings.order == control::ThreadOrder::shuffled) {
      const unsigned turn = random_.below(kLanes);  // they start anywhere
      for (unsigned i = 0; i < kLanes; ++i) {
        const unsigned lane = (i + turn) % kLanes;
        if (met >> lane & 1u) ready_.push(first_thread + lane);
      }
      continue;
    }
    // The lanes keep their order and continue before other warps: their stacks are still in the
    // cache.
    const bool backwards = launch_->settings.order == control::ThreadOrder::reverse;
    for (unsigned i = kLanes; i-- > 0;) {
      const unsigned lane = backwards ? kLanes - 1 - i : i;
      if (met >> lane & 1u) ready_.push_front(first_thread + lane);
    }
  }
}

// --- Waiting for another thread, or for other blocks

void BlockRunner::sleep(Sleep what, const detail::Site& site) {
  threads_[current_].sleep = what;
  progressed_ = true;
  suspend(State::asleep, site);
}

void BlockRunner::wake(std::vector<unsigned>& threads) {
  // Usually they have arrived in the order in which they continue.
  if (launch_->settings.order == control::ThreadOrder::reverse) {
    if (!std::is_sorted(threads.begin(), threads.end(), std::greater<>()))
      std::sort(threads.begin(), threads.end(), std::greater<>());
  } else if (!std::is_sorted(threads.begin(), threads.end())) {
    std::sort(threads.begin(), threads.end());
  }
  for (const unsigned thread : threads) ready_.push(thread);
  threads.clear();
  progressed_ = true;
}

unsigned BlockRunner::threads_in_cluster() {
  if (cluster_ == nullptr) return launch_->threads - finished_;
  unsigned threads = 0;
  for (unsigned rank = 0; rank < cluster_->size(); ++rank) {
    const BlockRunner& block = cluster_->block(rank);
    if (!cluster_->has_ended(rank)) threads += launch_->threads - block.finished_;
  }
  return threads;
}

void BlockRunner::cluster_arrive(bool releases, const detail::Site& site) {
  Thread& thread = threads_[current_];
  ClusterBarrier& barrier = cluster_barrier();
  if (thread.has_arrived) {
    fail_thread(cudaErrorLaunchFailure, "arrives at the cluster's barrier at " +
                                            describe_site(site) +
                                            " twice, without a wait in between.");
  }
  thread.has_arrived = true;
  thread.cluster_phase = barrier.phase;
  progressed_ = true;
  if (releases) {
    detail::tell_watcher(
        [&](inspect::Watcher& watcher) { watcher.released(barrier.object(barrier.phase)); });
  }
  ++barrier.arrived;
  check_cluster_barrier();
}

void BlockRunner::check_cluster_barrier() {
  ClusterBarrier& barrier = cluster_barrier();
  if (barrier.arrived < threads_in_cluster()) return;
  const void* const object = barrier.object(barrier.phase++);
  barrier.arrived = 0;
  for (unsigned rank = 0; rank < barrier.waiting.size(); ++rank) {
    BlockRunner& block = cluster_ != nullptr ? cluster_->block(rank) : *this;
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      for (const unsigned waits : barrier.waiting[rank]) watcher.acquired(object, rank, waits);
    });
    block.wake(barrier.waiting[rank]);
  }
}

void BlockRunner::cluster_wait(const detail::Site& site) {
  Thread& thread = threads_[current_];
  if (!thread.has_arrived) {
    fail_thread(cudaErrorLaunchFailure, "waits at the cluster's barrier at " + describe_site(site) +
                                            " without having arrived there.");
  }
  thread.has_arrived = false;
  ClusterBarrier& barrier = cluster_barrier();
  if (thread.cluster_phase == barrier.phase) {
    barrier.waiting[cluster_rank_].push_back(current_);
    sleep(Sleep::cluster_barrier, site);
  } else {
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      watcher.acquired(barrier.object(thread.cluster_phase), cluster_rank_, current_);
    });
  }
}

void BlockRunner::yield(const detail::Site& site) {
  waiting_.push_back(current_);
  suspend(State::waiting, site);
}

}  // namespace cuda_on_cpu
