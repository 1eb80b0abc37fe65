/// @file
/// @brief What a warp's request costs the memory: sectors, and turns of the banks; and what is left
/// of requests when neighbours are joined.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_on_cpu/microscope.hpp>
#include <functional>
#include <vector>

#include "lanes.hpp"

namespace cuda_on_cpu::microscope {

/// What each active lane asks for.
struct Request {
  std::uint32_t lanes = 0;  ///< a mask
  std::array<std::uintptr_t, 32> address{};
  std::array<std::uintptr_t, 32> other_end{};  ///< of asynchronous copies; 0: zeros are filled in
  unsigned width = 0;                          ///< bytes a lane
  /// Of asynchronous copies, where the array in shared memory begins that they go to: on a GPU, at
  /// the beginning of a line.
  std::uintptr_t destination = 0;
};

/// Bytes of a struct that one instruction moves: it moves a power of two of them, up to 16, and to
/// or from a multiple of that, of which nothing but the struct's size tells here.
constexpr unsigned widest_piece(unsigned bytes) { return std::min(bytes & (~bytes + 1), 16u); }

/// Of global memory: sectors. A copy of 16 bytes a lane is made a quarter of a warp at a time, as
/// shared memory takes it in: as many sectors as that reads, or as it fills there, if those are
/// more. Source: NVIDIA, "Nsight Compute Profiling Guide", L1TEX; of copies as below.
Counts count_global(const Request& request, Operation operation);
/// Of shared memory: wavefronts. 128 bytes of active lanes are served at a time, so of 8 bytes a
/// lane 16 of them, of 16 bytes 8; twice as many if they load, and either each lane and its
/// neighbour the same place, or each lane and the one two further in its four. An asynchronous copy
/// of 4 or 8 bytes a lane also waits for the banks of its source, each of which gives to one lane
/// at a time; of 16 bytes, lanes go together whose pieces' numbers in their lines, at both ends,
/// differ in the same bits, as a network of exchanges moves them. Source: measured on an NVIDIA
/// H200 and an H100 (ConvLadder's benchmarks/counters).
Counts count_shared(const Request& request, Operation operation);
/// Of others: lanes and bytes.
Counts count_plain(const Request& request);

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
