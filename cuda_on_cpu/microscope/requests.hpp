/// @file
/// @brief What a warp's request costs the memory: sectors, and turns of the banks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cuda_on_cpu/microscope.hpp>

namespace cuda_on_cpu::microscope {

/// Calls `body(lane)` for each lane of a mask.
template <class Body>
void for_each_lane(std::uint32_t lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) body(static_cast<unsigned>(std::countr_zero(lanes)));
}

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

}  // namespace cuda_on_cpu::microscope
