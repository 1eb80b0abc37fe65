#include "lanes.hpp"

#include <bit>
#include <cstddef>
#include <tuple>

namespace cuda_on_cpu::microscope {
namespace {

/// Identifies one step of a function. A copy has two steps at one location: it reads global memory,
/// unless all its bytes are zeros, and writes shared memory.
auto step_of(const Event& event) { return std::tuple(event.pc, event.kind, event.space); }

}  // namespace

const Event& WarpAccess::first() const {
  return *(*event)[static_cast<std::size_t>(std::countr_zero(lanes))];
}

void align_lanes(const CallTree& calls, const std::array<const std::vector<Event>*, 32>& events,
                 const std::function<void(const WarpAccess&)>& access,
                 const std::function<void()>& met) {
  std::array<const Event*, 32> at{}, end{};
  std::uint32_t active = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (events[lane] == nullptr || events[lane]->empty()) continue;
    at[lane] = events[lane]->data();
    end[lane] = at[lane] + events[lane]->size();
    active |= 1u << lane;
  }
  while (active != 0) {
    const Event* next = nullptr;
    std::uint32_t depth = 0;
    std::uint32_t together = 0;
    for_each_lane(active, [&](unsigned lane) {
      const Event& event = *at[lane];
      if (event.kind == Event::Kind::meeting) return;  // waits for other lanes
      if (next != nullptr && step_of(event) == step_of(*next) && event.call == next->call) {
        together |= 1u << lane;
        return;
      }
      const std::uint32_t own = calls[event.call].depth;
      if (next == nullptr || own > depth || (own == depth && step_of(event) < step_of(*next))) {
        next = &event;
        depth = own;
        together = 1u << lane;
      }
    });
    if (next == nullptr) {
      // All lanes wait: the lanes of one meeting continue.
      const Event& meeting = *at[static_cast<unsigned>(std::countr_zero(active))];
      for_each_lane(active, [&](unsigned lane) {
        if (at[lane]->pc == meeting.pc) together |= 1u << lane;
      });
      met();
    } else if (next->kind == Event::Kind::access) {
      access({together, &at});
    }
    for_each_lane(together, [&](unsigned lane) {
      if (++at[lane] == end[lane]) active &= ~(1u << lane);
    });
  }
}

}  // namespace cuda_on_cpu::microscope
