/// @file
/// @brief The lanes of a warp and their meetings.
#pragma once

#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>
#include <memory>

namespace cuda_on_cpu {

inline constexpr unsigned kLanes = 32;

/// The operands of a lane that calls a warp function.
struct WarpCall {
  detail::WarpFunction function;
  unsigned mask;
  std::uint64_t value;
};

/// The meetings of a warp's lanes. Lanes meet when all live lanes of a mask have called the same
/// function with that mask; several meetings of disjoint lanes can be pending.
class Warp {
 public:
  void reset(unsigned alive) {
    alive_ = alive;
    pending_ = 0;
    if (meetings_) abandon_meetings();
  }

  bool has_pending() const { return pending_ != 0; }
  void arrive(unsigned lane, const WarpCall& call) {
    calls_[lane] = call;
    pending_ |= 1u << lane;
  }
  void retire(unsigned lane) { alive_ &= ~(1u << lane); }
  /// If the meeting of pending `lane` is complete, publishes its values and returns its lanes,
  /// which are no longer pending. Otherwise 0.
  unsigned try_complete(unsigned lane) {
    const unsigned needed = calls_[lane].mask & alive_;
    return (needed & pending_) == needed ? complete(lane, needed) : 0;
  }
  unsigned pending() const { return pending_; }
  /// The values of the meeting in which `lane` took part last.
  detail::WarpValues& values_for(unsigned lane) { return meetings_[meeting_of_[lane]]; }
  const WarpCall& call_of(unsigned lane) const { return calls_[lane]; }

 private:
  /// As try_complete(); all lanes of the mask are pending, in this meeting or another.
  unsigned complete(unsigned lane, unsigned needed);
  void abandon_meetings();

  unsigned alive_ = 0;    ///< lanes that have not exited
  unsigned pending_ = 0;  ///< lanes that wait in a meeting
  WarpCall calls_[kLanes];
  unsigned meeting_of_[kLanes];
  /// One per lane suffices: a lane reads the values of its last meeting before it joins another.
  /// Created on first use.
  std::unique_ptr<detail::WarpValues[]> meetings_;
};

}  // namespace cuda_on_cpu
