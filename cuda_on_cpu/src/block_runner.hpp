/// @file
/// @brief Runs one block at a time on the calling OS thread: the scheduler of its threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async_copies.hpp"
#include "bulk_stores.hpp"
#include "cluster.hpp"
#include "fiber.hpp"
#include "grid_launch.hpp"
#include "mbarriers.hpp"
#include "random.hpp"
#include "shared_buffer.hpp"
#include "static_shared_registry.hpp"
#include "warp.hpp"
#include "warpgroup.hpp"

namespace cuda_on_cpu {

/// Thrown through a kernel to end one of its threads. Not an std::exception, so that a kernel does
/// not catch it.
struct ThreadEnded {};

/// The scheduler of a block's threads.
///
/// Threads run on fibers. A fiber runs thread after thread without a switch for as long as the
/// threads do not suspend: a kernel without barriers is a loop over its threads. A thread that
/// suspends keeps its fiber, and control switches directly to the fiber of the next ready thread,
/// or to an unused fiber if the next thread has not started. The scheduler runs only when no thread
/// is ready. Fibers are reused and not destroyed with a block.
///
/// A thread is in the ready queue, at the block's barrier, in a warp meeting, asleep until another
/// thread wakes it, waiting for other blocks, or finished. If the ready queue is empty, there are
/// three regular cases: all threads are finished; all threads are at the same barrier and become
/// ready in a new order; some threads wait for other blocks. Anything else is an error.
class BlockRunner {
 public:
  static BlockRunner& of_this_thread();
  /// The runner whose kernel code the calling OS thread executes, or null in host code.
  static BlockRunner* of_running_kernel() { return running_; }
  /// As above; in host code it ends the process with a message.
  static BlockRunner& of_running_kernel(const char* function) {
    if (running_ == nullptr) end_process_outside_kernel(function);
    return *running_;
  }

  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Runs block `index` of `launch`; errors are reported to the launch.
  /// @param cluster the cluster of which this block has the given rank, or null
  void run(GridLaunch& launch, std::uint64_t index, Cluster* cluster = nullptr, unsigned rank = 0);
  std::uint64_t take_switch_count() { return std::exchange(switches_, 0); }
  /// The most bytes of stack that a thread has used on this OS thread.
  std::size_t deepest_stack() const;

  // --- Called from kernel code

  int block_barrier(detail::BarrierKind kind, bool predicate, const detail::Site& site);
  detail::WarpValues& warp_meeting(const WarpCall& call, const detail::Site& site);
  void yield(const detail::Site& site);
  void note_wait_ended() { progressed_ = true; }
  void* dynamic_shared() { return shared_.data(); }
  /// Of the calling thread.
  AsyncCopies& async_copies() {
    if (async_copies_.size() < threads_.size()) async_copies_.resize(threads_.size());
    return async_copies_[current_];
  }
  /// Of the calling thread.
  BulkStores& bulk_stores() {
    bulk_stores_.resize(threads_.size());
    return bulk_stores_[current_];
  }
  /// Keeps copies of this block after the threads that issued them have ended.
  void keep_copies() { copies_kept_ = true; }

  /// The reason for which a thread sleeps.
  enum class Sleep : std::uint8_t { mbarrier, named_barrier, warpgroup, cluster_barrier };
  /// Suspends the calling thread until another thread wakes it.
  void sleep(Sleep what, const detail::Site& site);
  /// Makes sleeping threads ready, in the order of the settings, and empties the list.
  void wake(std::vector<unsigned>& threads);
  /// The block's mbarriers.
  std::vector<Mbarrier>& mbarriers() { return mbarriers_; }
  /// The state of the mbarrier with this object, or null.
  Mbarrier* find_mbarrier(const std::uint64_t* object);
  /// The cluster of this block; null without a cluster, or if the cluster has one block.
  Cluster* cluster() { return cluster_; }
  unsigned cluster_rank() const { return cluster_rank_; }
  /// The calling thread arrives, or waits, at the barrier of all threads of the cluster.
  void cluster_arrive(bool releases, const detail::Site& site);
  void cluster_wait(const detail::Site& site);
  /// The address in another block of the cluster that corresponds to `pointer` in this block's
  /// shared memory.
  void* in_block(const void* pointer, const BlockRunner& other) const;
  /// The inverse of shared_address(); null if there is no shared memory at that address.
  void* at_shared_address(unsigned address) const;
  /// One of the 16 named barriers of the block (`bar.sync`).
  struct NamedBarrier {
    unsigned threads;               ///< threads that meet
    std::vector<unsigned> waiting;  ///< threads that have arrived
  };
  NamedBarrier& named_barrier(unsigned id);
  /// The warpgroup of the calling thread; null for the last threads if they are too few for a
  /// warpgroup.
  Warpgroup* warpgroup() {
    const std::size_t number = current_ / kWarpgroup;
    if (number < warpgroups_.size() && warpgroups_[number]) return warpgroups_[number].get();
    return make_warpgroup();
  }
  /// Threads of the calling thread's warpgroup that sleep in it.
  std::vector<unsigned>& warpgroup_sleepers() { return sleepers_[current_ / kWarpgroup]; }

  /// The 18-bit address of shared memory in instructions; ~0u if `pointer` is not in shared memory.
  unsigned shared_address(const void* pointer);
  /// The inverse: the shared memory around an address, if any.
  SharedRange shared_range(unsigned address) const;
  /// Whether the block's shared memory contains all these bytes.
  bool in_shared(const void* pointer, std::size_t bytes) const;

  /// Ends the kernel with an error; `what` continues "Kernel k, block (0,0,0), thread (0,0,0): ".
  [[noreturn]] void fail_thread(cudaError_t error, const std::string& what);

  GridLaunch& launch() { return *launch_; }
  unsigned thread() const { return current_; }
  unsigned lane() const { return current_ % kLanes; }
  std::uint64_t block_index() const { return block_; }
  unsigned interval() const { return interval_; }
  const SharedBuffer& shared_buffer() const { return shared_; }

  // --- Called for a fault in kernel code

  void note_fault(const void* address) { fault_ = address, faulted_ = true; }
  void* faulted_stack_top() const { return threads_[current_].fiber->top(); }
  /// Leaves the stack of the faulting thread permanently.
  [[noreturn]] static void abandon_faulted_thread();

 private:
  enum class State : std::uint8_t {
    fresh,
    ready,
    running,
    at_barrier,
    in_warp,
    asleep,
    waiting,
    finished
  };
  struct Thread {
    State state;
    Sleep sleep;                  ///< while asleep
    Fiber* fiber;                 ///< null while unstarted or finished
    uint3 index;                  ///< threadIdx
    detail::Site site;            ///< source location where it is suspended
    bool has_arrived;             ///< arrived at the cluster's barrier, and has not waited there
    std::uint64_t cluster_phase;  ///< phase of that barrier in which it arrived
  };
  /// A ring of thread numbers; a thread is in it at most once.
  class ReadyQueue {
   public:
    void reset(unsigned threads);
    bool empty() const { return head_ == tail_; }
    void push(unsigned thread) { ring_[tail_++ & mask_] = static_cast<std::uint16_t>(thread); }
    void push_front(unsigned thread) {
      ring_[--head_ & mask_] = static_cast<std::uint16_t>(thread);
    }
    unsigned front() const { return ring_[head_ & mask_]; }
    unsigned second() const { return ring_[(head_ + 1) & mask_]; }
    unsigned size() const { return tail_ - head_; }
    /// Exchanges the thread at `place` with the one in front.
    void bring_to_front(unsigned place) {
      std::swap(ring_[head_ & mask_], ring_[(head_ + place) & mask_]);
    }
    unsigned pop() { return ring_[head_++ & mask_]; }

   private:
    std::vector<std::uint16_t> ring_;
    unsigned mask_ = 0, head_ = 0, tail_ = 0;
  };

  [[noreturn]] static void end_process_outside_kernel(const char* function);

  Warpgroup* make_warpgroup();
  void begin_block(GridLaunch& launch, std::uint64_t index);
  ClusterBarrier& cluster_barrier() {
    return cluster_ != nullptr ? cluster_->barrier() : lone_barrier_;
  }
  /// Wakes the threads at the cluster's barrier if all have arrived.
  void check_cluster_barrier();
  /// Of all blocks of the cluster.
  unsigned threads_in_cluster();
  void end_block();
  void schedule();
  /// For the shuffled order: moves a random ready thread to the front, so that a warp may continue
  /// while others have not run yet.
  void choose_next();
  /// Makes all threads ready, in the order of the settings.
  void make_all_ready();
  void make_current(unsigned thread);
  /// Takes the next thread out of the ready queue and returns the context to switch to. That is the
  /// scheduler if no thread is ready or the block has failed.
  Context& take_next();
  [[gnu::noinline]] Fiber& take_idle_fiber();
  /// From the scheduler: lets threads run until control returns to the scheduler.
  void resume(Context& next);
  void suspend(State state, const detail::Site& site);
  static void fiber_body(void* runner, Fiber& self);
  void run_next_thread(Fiber& self);
  /// Takes the next thread out of the ready queue if it has not started.
  bool take_next_if_fresh();
  void release_barrier();
  /// Completes the meetings of these pending lanes that can be completed, and makes their lanes
  /// ready.
  void complete_meetings(Warp& warp, unsigned first_thread, unsigned candidates);
  void handle_fault();
  /// Fails if an operation is pending that no thread has waited for.
  void check_nothing_under_way();

  /// Lets the cluster's other blocks run until control returns to this block; false if none of them
  /// can run.
  bool let_cluster_run();
  /// Makes the waiting threads ready, so that they test their condition again; with a delay if
  /// nothing has changed.
  void wait_for_other_blocks();
  void let_time_pass();
  void stop_waiting();

  void fail(cudaError_t error, const std::string& report);
  // Not inlined: the sentences would enlarge the stack frames of their callers. The frames of a
  // waiting thread are in the cache, together with those of all other threads.
  [[noreturn]] [[gnu::noinline]] void fail_at_other_barrier(const detail::Site& site);
  [[noreturn]] [[gnu::noinline]] void fail_without_own_lane(const detail::Site& site);
  /// Whether this block's threads are to be unwound.
  bool failed() const { return failed_; }
  void unwind_suspended_threads();
  std::string describe_block() const;
  std::string describe_thread_index(unsigned thread) const;
  std::string describe_thread(unsigned thread) const;
  std::string describe_state(unsigned thread) const;
  std::string describe_fault(const Fiber& fiber) const;
  std::string describe_stuck_block() const;
  /// The runner of each block of the cluster.
  std::string describe_stuck_cluster();
  std::string describe_sleeper(unsigned thread) const;

  /// Set while kernel code runs on this OS thread.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local BlockRunner* running_;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_fibers_;
  Context scheduler_;
  bool closing_ = false;  ///< tells idle fibers to return

  GridLaunch* launch_ = nullptr;
  std::uint64_t block_ = 0;
  Cluster* cluster_ = nullptr;
  unsigned cluster_rank_ = 0;
  ClusterBarrier lone_barrier_;  ///< if there is no cluster
  /// Static shared memory of this OS thread, for other blocks of a cluster.
  const std::vector<StaticSharedPlace>* static_places_ = nullptr;
  uint3 block_dim_{};  ///< for which threads_[].index was computed
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<AsyncCopies> async_copies_;  ///< by thread; empty until a kernel uses them
  bool copies_kept_ = false;               ///< until the block ends
  // Created on first use, and discarded with the block.
  std::vector<Mbarrier> mbarriers_;
  std::vector<NamedBarrier> named_barriers_;
  std::vector<BulkStores> bulk_stores_;  ///< by thread
  std::vector<std::unique_ptr<Warpgroup>> warpgroups_;
  std::vector<std::vector<unsigned>> sleepers_;  ///< by warpgroup
  unsigned char* static_shared_ = nullptr;       ///< base of static shared addresses
  SharedBuffer shared_;
  ReadyQueue ready_;
  Random random_{0};
  unsigned next_ = 0;  ///< the thread taken last: an unused fiber starts this thread
  // A thread becomes the current one when it arrives on its stack. Until then the leaving thread is
  // current and responsible for faults.
  unsigned current_ = 0;  ///< the thread whose stack is in use
  unsigned finished_ = 0;
  unsigned interval_ = 0;
  bool failed_ = false;
  bool faulted_ = false;
  const void* fault_ = nullptr;

  unsigned arrived_ = 0;     ///< threads at the barrier
  unsigned first_at_ = 0;    ///< the first of these threads
  unsigned predicates_ = 0;  ///< number of true predicates
  int barrier_result_ = 0;

  std::vector<unsigned> waiting_;  ///< threads that wait for other blocks
  bool progressed_ = false;        ///< some thread made progress since the last poll
  bool is_waiting_ = false;        ///< the whole block makes no progress
  unsigned idle_polls_ = 0;
  std::uint64_t progress_seen_ = 0;
  std::chrono::steady_clock::time_point waiting_since_;

  std::uint64_t switches_ = 0;
};

}  // namespace cuda_on_cpu
