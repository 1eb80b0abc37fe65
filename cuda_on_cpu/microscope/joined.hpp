/// @file
/// @brief What is left of a block's requests to shared memory when neighbours are joined.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lanes.hpp"
#include "requests.hpp"

namespace cuda_on_cpu::microscope {

/// What lanes of a warp do in shared memory together; or a meeting of them.
struct SharedStep {
  const Event* event = nullptr;          ///< of one of the lanes; null: a meeting
  std::uint32_t lanes = 0;               ///< a mask
  std::size_t array = 0;                 ///< a number of it
  std::uintptr_t begin = 0;              ///< where the array begins
  std::array<std::uint32_t, 32> byte{};  ///< of each lane, in the array
};

/// Calls `tell(step, request)` for each request that is left, with the first step that is in it.
///
/// A compiler knows how arrays in shared memory are aligned. Where it also knows how far from a
/// multiple of 16 bytes an address is, it makes one instruction of neighbours that lie between two
/// such multiples; and it keeps what a thread has loaded. So of what the same lanes of a warp do
/// with an array, one request is left for each piece of 16 bytes, of the 1 to 16 bytes that hold
/// what is asked for; and one of loads of the same bytes, wherever they lie. Such an address is
/// known if all lanes of the block that come to an instruction for the n-th time have addresses
/// with the same remainder by 16. Barriers and meetings end it, and atomics, and for loads a store
/// or an asynchronous copy to their array, for stores a load of it. (Copies themselves are not told
/// of.)
/// @param warps by warp, what it does between two barriers of its block
void join_neighbours(const std::vector<std::vector<SharedStep>>& warps,
                     const std::function<void(const SharedStep&, const Request&)>& tell);

}  // namespace cuda_on_cpu::microscope
