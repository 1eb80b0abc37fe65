/// @file
/// @brief Determines which lanes of a warp execute an instruction together.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cuda_on_cpu/microscope.hpp>
#include <functional>
#include <vector>

#include "call_tree.hpp"

namespace cuda_on_cpu::microscope {

/// Calls `body(lane)` for each lane of a mask.
template <class Body>
void for_each_lane(std::uint32_t lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) body(static_cast<unsigned>(std::countr_zero(lanes)));
}

/// The events of one thread, in program order.
struct Event {
  enum class Kind : std::uint8_t {
    block,    ///< entered a basic block
    access,   ///< of memory
    meeting,  ///< with other lanes: `address` is their mask, `pc` the number of the meeting
  };
  std::uintptr_t pc = 0;
  std::uintptr_t address = 0;
  std::uintptr_t other_end = 0;  ///< of an asynchronous copy; 0: none
  Node call = 0;                 ///< the function that contains it
  Node place = 0;                ///< of an access
  std::uint16_t width = 0;
  Kind kind = Kind::block;
  Space space = Space::global;
  Operation operation = Operation::load;
};

/// The lanes that execute one access together.
struct WarpAccess {
  std::uint32_t lanes;                        ///< a mask
  const std::array<const Event*, 32>* event;  ///< of each of them
  const Event& first() const;
};

/// Processes the events of a warp's lanes since all of them were last at one location. Calls
/// `access` for each access with the lanes that execute it together, and `met` for each meeting.
///
/// A GPU executes diverged lanes one group after another and reconverges them at a point of its
/// choice. Here the lanes in the deepest call are executed first, and among them those at the
/// lowest address with the same callers. Unoptimised code is in source order, so lanes that leave
/// an iteration or a loop early wait after it for the other lanes.
void align_lanes(const CallTree& calls, const std::array<const std::vector<Event>*, 32>& events,
                 const std::function<void(const WarpAccess&)>& access,
                 const std::function<void()>& met);

}  // namespace cuda_on_cpu::microscope
