/// @file
/// @brief The cost of a warp's request: sectors and wavefronts; and the requests that remain when
/// adjacent accesses are merged.
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

/// The bytes that each active lane requests.
struct Request {
  std::uint32_t lanes = 0;  ///< a mask
  std::array<std::uintptr_t, 32> address{};
  std::array<std::uintptr_t, 32> other_end{};  ///< of asynchronous copies; 0: zeros are filled in
  unsigned width = 0;                          ///< bytes per lane
  /// For asynchronous copies, the start of the destination array in shared memory: on a GPU, arrays
  /// start at the beginning of a line.
  std::uintptr_t destination = 0;
};

/// Bytes of a struct that one instruction moves: an aligned power of two, up to 16, which is
/// derived from the struct's size only.
constexpr unsigned widest_piece(unsigned bytes) { return std::min(bytes & (~bytes + 1), 16u); }

/// For global memory: sectors. A copy of 16 bytes per lane is executed a quarter of a warp at a
/// time, like its store to shared memory: it takes the sectors that it reads or the sectors that it
/// fills, whichever are more. Source: NVIDIA, "Nsight Compute Profiling Guide", L1TEX; for copies
/// as below.
Counts count_global(const Request& request, Operation operation);
/// For shared memory: wavefronts. 128 bytes of active lanes are served per wavefront, so 16 lanes
/// of 8 bytes or 8 lanes of 16 bytes. For loads it is twice as many lanes if each lane and its
/// neighbour, or each lane and the one two further in its group of four, read the same location. An
/// asynchronous copy of 4 or 8 bytes per lane also waits for the banks of its source, each of which
/// serves one lane at a time. With 16 bytes per lane, lanes are served together if the indices of
/// their 16-byte parts within a line differ in the same bits at source and destination, as in a
/// butterfly network. Source: measured on an NVIDIA H200 and an H100 (ConvLadder's
/// benchmarks/counters).
Counts count_shared(const Request& request, Operation operation);
/// For other memory: lanes and bytes.
Counts count_plain(const Request& request);

/// The joint access of lanes of a warp to shared memory, or a meeting of lanes.
struct SharedStep {
  const Event* event = nullptr;          ///< code location of one of the lanes; null: a meeting
  std::uint32_t lanes = 0;               ///< a mask
  std::size_t array = 0;                 ///< number of the array
  std::uintptr_t begin = 0;              ///< start address of the array
  std::array<std::uint32_t, 32> byte{};  ///< of each lane: offset in the array
};

/// Calls `tell(step, request)` for each request that remains, with its first step.
///
/// A compiler knows the alignment of arrays in shared memory. Where it also knows an address modulo
/// 16 bytes, it merges adjacent accesses between two multiples of 16 bytes into one instruction,
/// and it keeps loaded values in registers. For the accesses of the same lanes of a warp to an
/// array, one request of 1 to 16 bytes therefore remains per 16-byte part, and one for repeated
/// loads of the same bytes, wherever they are. An address counts as known if all lanes of the block
/// that execute an instruction for the n-th time have addresses with the same value modulo 16.
/// Barriers, meetings and atomics end the merging; for loads also a store or an asynchronous copy
/// to the array; for stores a load of it. (Asynchronous copies are not passed to this function.)
/// @param warps by warp, the accesses between two barriers of its block
void join_neighbours(const std::vector<std::vector<SharedStep>>& warps,
                     const std::function<void(const SharedStep&, const Request&)>& tell);

}  // namespace cuda_on_cpu::microscope
