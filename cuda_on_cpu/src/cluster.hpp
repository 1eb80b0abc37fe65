/// @file
/// @brief The blocks of a cluster, which run concurrently.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "grid_launch.hpp"
#include "random.hpp"

namespace cuda_on_cpu {

class BlockRunner;

/// The barrier of all threads of a cluster (`barrier.cluster`).
struct ClusterBarrier {
  unsigned arrived = 0;     ///< threads, in the current phase, that have not exited
  std::uint64_t phase = 0;  ///< earlier phases are complete
  std::vector<std::vector<unsigned>> waiting;  ///< threads, by the ranks of their blocks
  /// The identity of a phase for watchers: a late thread may find that the next phase has started.
  const void* object(std::uint64_t of_phase) const { return &objects_[of_phase % 2]; }

 private:
  char objects_[2] = {};
};

/// The blocks of a cluster. Each block has an OS thread and therefore its own shared memory, but
/// only one of them runs at a time. A block yields when none of its threads can continue. The
/// members of this class and of the blocks are therefore never accessed concurrently, and every run
/// is deterministic.
class Cluster {
 public:
  /// Runs all blocks, one of them on the calling OS thread. Errors are reported to the launch.
  static void run(GridLaunch& launch, std::uint64_t index);

  unsigned size() const { return static_cast<unsigned>(blocks_.size()); }
  BlockRunner& block(unsigned rank) { return *blocks_[rank].runner; }
  bool has_ended(unsigned rank) const { return (alive_ >> rank & 1u) == 0; }
  ClusterBarrier& barrier() { return barrier_; }

  // --- Called by the running block

  /// The block has started, and waits until all blocks have.
  void begun(unsigned rank);
  /// A thread of the block can continue.
  void goes_on() { idle_ = 0; }
  /// None of the block's threads can continue, except possibly by polling: lets the other blocks
  /// run. False if none of those can continue, either.
  bool take_turns(unsigned rank, bool may_look_again);
  /// The block has ended.
  void ended(unsigned rank);
  /// The block waits, or no longer waits, for blocks of other clusters. False if no other block can
  /// be started meanwhile.
  bool begin_waiting();
  void end_waiting();

 private:
  struct Block {
    BlockRunner* runner = nullptr;
    bool may_look_again = false;  ///< when all are idle
  };

  Cluster(GridLaunch& launch, std::uint64_t index);
  void run_block(unsigned rank);
  /// The next block to run among those that are not idle, in the order of the settings.
  unsigned next(unsigned rank);
  void hand_to(unsigned rank);
  void await_turn(unsigned rank);

  GridLaunch& launch_;
  const std::uint64_t index_;
  std::vector<Block> blocks_;
  ClusterBarrier barrier_;
  Random random_;
  unsigned waiting_ = 0;  ///< blocks that wait for those of other clusters
  unsigned alive_;        ///< blocks that have not ended: a mask
  unsigned idle_ = 0;     ///< blocks that could not continue since another block last did: a mask

  std::mutex mutex_;
  std::vector<std::condition_variable> changed_;  ///< by rank
  std::condition_variable left_;
  unsigned turn_ = 0;     ///< whose it is
  unsigned running_ = 0;  ///< OS threads beside the calling one
};

}  // namespace cuda_on_cpu
