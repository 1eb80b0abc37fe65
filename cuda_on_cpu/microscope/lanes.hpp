/// @file
/// @brief Finds out which lanes of a warp execute an instruction together.
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

/// What one thread did, in its order.
struct Event {
  enum class Kind : std::uint8_t {
    block,    ///< entered a basic block
    access,   ///< of memory
    meeting,  ///< with other lanes: `address` is their mask, `pc` the meeting's number
  };
  std::uintptr_t pc = 0;
  std::uintptr_t address = 0;
  std::uintptr_t other_end = 0;  ///< of an asynchronous copy; 0: there is none
  Node call = 0;                 ///< the function it happened in
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

/// Goes through what the lanes of a warp did since all of them were last at one place, and calls
/// `access` for each access, with the lanes that make it together, and `met` where some meet.
///
/// A GPU runs diverged lanes in turns, and lets them meet again; when is its own choice. Here lanes
/// in the deepest call go first, and among them those at the lowest address with the same callers.
/// Unoptimised code lies in the order of its source, so that lanes that left an iteration early, or
/// a loop, wait for the others behind it.
void align_lanes(const CallTree& calls, const std::array<const std::vector<Event>*, 32>& events,
                 const std::function<void(const WarpAccess&)>& access,
                 const std::function<void()>& met);

}  // namespace cuda_on_cpu::microscope
