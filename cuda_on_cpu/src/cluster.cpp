#include "cluster.hpp"

#include <bit>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "block_runner.hpp"
#include "statistics.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

/// An OS thread that runs one block after another, of clusters that other OS threads have taken.
class Mate {
 public:
  Mate() : thread_(&Mate::serve, this) { thread_.detach(); }
  void start(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    changed_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return static_cast<bool>(work_); });
      // Cleared before the block runs, so that this OS thread can be reused.
      const std::function<void()> work = std::exchange(work_, nullptr);
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  std::thread thread_;
};

/// The idle OS threads. Never destroyed: they sleep until the process ends.
class FreeMates {
 public:
  static FreeMates& instance() {
    static FreeMates& all = *new FreeMates;
    return all;
  }
  std::vector<Mate*> take(unsigned count) {
    const std::lock_guard lock(mutex_);
    while (free_.size() < count) free_.push_back(new Mate);
    const std::vector<Mate*> taken(free_.end() - count, free_.end());
    free_.resize(free_.size() - count);
    return taken;
  }
  void give_back(Mate* mate) {
    const std::lock_guard lock(mutex_);
    free_.push_back(mate);
  }

 private:
  std::mutex mutex_;
  std::vector<Mate*> free_;
};

}  // namespace

Cluster::Cluster(GridLaunch& launch, std::uint64_t index)
    : launch_(launch), index_(index), blocks_(launch.cluster_blocks),
      random_(launch.settings.seed ^ (index + 1) * 0x9e3779b97f4a7c15u),
      alive_((1u << launch.cluster_blocks) - 1), changed_(launch.cluster_blocks) {
  barrier_.waiting.resize(launch.cluster_blocks);
}

void Cluster::run(GridLaunch& launch, std::uint64_t index) {
  Cluster cluster(launch, index);
  std::vector<Mate*> mates;
  try {
    mates = FreeMates::instance().take(launch.cluster_blocks - 1);
  } catch (const std::system_error&) {
    launch.fail(cudaErrorLaunchOutOfResources, "There are not enough threads for a cluster.");
    return;
  }
  cluster.running_ = launch.cluster_blocks - 1;
  for (unsigned i = 0; i < mates.size(); ++i) {
    mates[i]->start([&cluster, rank = i + 1, mate = mates[i]] {
      cluster.run_block(rank);
      FreeMates::instance().give_back(mate);
      const std::lock_guard lock(cluster.mutex_);
      --cluster.running_;
      cluster.left_.notify_one();
    });
  }
  cluster.run_block(0);
  std::unique_lock lock(cluster.mutex_);
  cluster.left_.wait(lock, [&] { return cluster.running_ == 0; });
}

void Cluster::run_block(unsigned rank) {
  BlockRunner& runner = BlockRunner::of_this_thread();
  await_turn(rank);
  blocks_[rank].runner = &runner;
  runner.run(launch_, launch_.block_of(index_, rank), this, rank);
  count_fiber_switches(runner.take_switch_count());
}

unsigned Cluster::next(unsigned rank) {
  const unsigned candidates = alive_ & ~idle_;
  const bool backwards = launch_.settings.order == control::ThreadOrder::reverse;
  unsigned turns = 1;
  if (launch_.settings.order == control::ThreadOrder::shuffled)
    turns += random_.below(static_cast<unsigned>(std::popcount(candidates)));
  for (; turns > 0; --turns) {
    do rank = (rank + (backwards ? size() - 1 : 1)) % size();
    while ((candidates >> rank & 1u) == 0);
  }
  return rank;
}

void Cluster::begun(unsigned rank) {
  const bool is_last = rank + 1 == size();
  const bool backwards = launch_.settings.order == control::ThreadOrder::reverse;
  hand_to(is_last ? next(backwards ? 0 : rank) : rank + 1);
  await_turn(rank);
}

bool Cluster::take_turns(unsigned rank, bool may_look_again) {
  blocks_[rank].may_look_again = may_look_again;
  idle_ |= 1u << rank;
  if ((alive_ & ~idle_) != 0) {
    hand_to(next(rank));
  } else {
    if (may_look_again) return false;
    unsigned other = 0;
    while (other < size() && (has_ended(other) || !blocks_[other].may_look_again)) ++other;
    if (other == size()) return false;
    hand_to(other);
  }
  await_turn(rank);
  return true;
}

void Cluster::ended(unsigned rank) {
  alive_ &= ~(1u << rank);
  idle_ = 0;
  if (alive_ != 0) hand_to(next(rank));
}

bool Cluster::begin_waiting() { return waiting_++ > 0 || WorkerPool::instance().block_waits(); }

void Cluster::end_waiting() {
  if (--waiting_ == 0) WorkerPool::instance().block_goes_on();
}

void Cluster::hand_to(unsigned rank) {
  const std::lock_guard lock(mutex_);
  turn_ = rank;
  changed_[rank].notify_one();
}

void Cluster::await_turn(unsigned rank) {
  std::unique_lock lock(mutex_);
  changed_[rank].wait(lock, [&] { return turn_ == rank; });
}

}  // namespace cuda_on_cpu
