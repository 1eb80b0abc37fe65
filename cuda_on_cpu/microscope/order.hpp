/// @file
/// @brief Determines which accesses of a block's threads are ordered: vector clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lanes.hpp"

namespace cuda_on_cpu::microscope {

/// The order that barriers, meetings of lanes and objects in shared memory establish between the
/// threads of the blocks of a cluster (usually one block). A thread's clock counts its release
/// operations. An access is stamped with the clock, and is ordered before the operations of another
/// thread that has acquired the stamp.
///
/// Source: C. Flanagan, S. Freund, "FastTrack: Efficient and Precise Dynamic Race Detection", 2009.
class ClusterOrder {
 public:
  ClusterOrder(unsigned threads, unsigned blocks)
      : pitch_((threads + 31) / 32 * 32), clock_(std::size_t{pitch_} * blocks, 1),
        floor_(blocks, std::vector<std::uint32_t>(clock_.size(), 0)), known_(clock_.size()),
        in_warp_(clock_.size() * 32) {}

  /// The index, in this class, of a thread of the block with this rank.
  unsigned number(unsigned rank, unsigned thread) const { return rank * pitch_ + thread; }
  std::uint32_t clock(unsigned number) const { return clock_[number]; }

  /// Whether the event of `other` at `clock` is ordered before the current event of `thread`.
  bool is_before(unsigned other, std::uint32_t clock, unsigned thread) const {
    if (clock <= floor_[thread / pitch_][other]) return true;
    if (other / 32 == thread / 32 && row(thread)[other % 32] >= clock) return true;
    return !known_[thread].empty() && known_[thread][other] >= clock;
  }

  /// All threads of a block have passed a barrier.
  void barrier(unsigned rank) {
    std::vector<std::uint32_t>& floor = floor_[rank];
    const std::size_t begin = std::size_t{rank} * pitch_, end = begin + pitch_;
    if (floor_.size() > 1) {  // their knowledge of other blocks
      for (std::size_t thread = begin; thread < end; ++thread) join(floor, known_[thread]);
    }
    for (std::size_t thread = begin; thread < end; ++thread) floor[thread] = clock_[thread]++;
  }

  /// These lanes of a warp have met.
  void meeting(unsigned first, std::uint32_t lanes) {
    std::uint32_t all[32] = {};
    std::vector<std::uint32_t> known;
    for_each_lane(lanes, [&](unsigned lane) {
      for (unsigned i = 0; i < 32; ++i) all[i] = std::max(all[i], row(first + lane)[i]);
      join(known, known_[first + lane]);
    });
    for_each_lane(lanes, [&](unsigned lane) { all[lane] = clock_[first + lane]++; });
    for_each_lane(lanes, [&](unsigned lane) {
      std::copy_n(all, 32, row(first + lane));
      known_[first + lane] = known;
    });
  }

  void release(const void* object, unsigned thread) {
    std::vector<std::uint32_t>& told = objects_[object];
    told.resize(clock_.size());
    join(told, known_[thread]);
    if (floor_.size() > 1) join(told, floor_[thread / pitch_]);
    const unsigned first = thread / 32 * 32;
    for (unsigned i = 0; i < 32; ++i) told[first + i] = std::max(told[first + i], row(thread)[i]);
    told[thread] = clock_[thread]++;
  }
  void acquire(const void* object, unsigned thread) { join(known_[thread], objects_[object]); }

 private:
  static void join(std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& from) {
    if (to.size() < from.size()) to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
  }
  std::uint32_t* row(unsigned thread) { return in_warp_.data() + std::size_t{thread} * 32; }
  const std::uint32_t* row(unsigned thread) const {
    return in_warp_.data() + std::size_t{thread} * 32;
  }

  unsigned pitch_;                                 ///< between blocks: threads of whole warps
  std::vector<std::uint32_t> clock_;               ///< of each thread
  std::vector<std::vector<std::uint32_t>> floor_;  ///< by block: the clocks that all threads of it
                                                   ///< have acquired from each
  std::vector<std::vector<std::uint32_t>> known_;  ///< through objects; empty: none
  std::vector<std::uint32_t> in_warp_;             ///< what each thread has acquired from its
                                                   ///< warp's lanes
  std::map<const void*, std::vector<std::uint32_t>> objects_;
};

}  // namespace cuda_on_cpu::microscope
