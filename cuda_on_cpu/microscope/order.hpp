/// @file
/// @brief Which accesses of a block's threads are ordered: vector clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lanes.hpp"

namespace cuda_on_cpu::microscope {

/// The order that barriers, meetings of lanes and objects in shared memory make between the threads
/// of one block. A thread's clock counts what it has told others; an access is stamped with it, and
/// lies before what another thread does if that one has learned of the stamp.
///
/// Source: C. Flanagan, S. Freund, "FastTrack: Efficient and Precise Dynamic Race Detection", 2009.
class BlockOrder {
 public:
  explicit BlockOrder(unsigned threads)
      : clock_(threads, 1), floor_(threads, 0), known_(threads),
        in_warp_((threads + 31) / 32 * std::size_t{32} * 32) {}

  std::uint32_t clock(unsigned thread) const { return clock_[thread]; }

  /// Whether what `other` did at `clock` lies before what `thread` does now.
  bool is_before(unsigned other, std::uint32_t clock, unsigned thread) const {
    if (clock <= floor_[other]) return true;
    if (other / 32 == thread / 32 && row(thread)[other % 32] >= clock) return true;
    return !known_[thread].empty() && known_[thread][other] >= clock;
  }

  /// All threads were at a barrier.
  void barrier() {
    floor_ = clock_;
    for (std::uint32_t& own : clock_) ++own;
  }

  /// These lanes of a warp have met.
  void meeting(unsigned warp, std::uint32_t lanes) {
    const unsigned first = warp * 32;
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
    const unsigned first = thread / 32 * 32;
    for (unsigned i = 0; i < 32 && first + i < told.size(); ++i) {
      told[first + i] = std::max(told[first + i], row(thread)[i]);
    }
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

  std::vector<std::uint32_t> clock_;               ///< of each thread
  std::vector<std::uint32_t> floor_;               ///< what all know of each
  std::vector<std::vector<std::uint32_t>> known_;  ///< through objects; empty: nothing
  std::vector<std::uint32_t> in_warp_;             ///< what each thread knows of its warp's lanes
  std::map<const void*, std::vector<std::uint32_t>> objects_;
};

}  // namespace cuda_on_cpu::microscope
