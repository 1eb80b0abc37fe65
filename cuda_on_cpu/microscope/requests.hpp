/// @file
/// @brief What a warp's request costs the memory: sectors, and turns of the banks.
#pragma once

#include <array>
#include <cstdint>
#include <cuda_on_cpu/microscope.hpp>

namespace cuda_on_cpu::microscope {

/// What each active lane asks for.
struct Request {
  std::uint32_t lanes = 0;  ///< a mask
  std::array<std::uintptr_t, 32> address{};
  unsigned width = 0;  ///< bytes a lane
};

/// Of global memory: sectors. Source: NVIDIA, "Nsight Compute Profiling Guide", L1TEX.
Counts count_global(const Request& request, bool atomic);
/// Of shared memory: wavefronts.
Counts count_shared(const Request& request, bool atomic);
/// Of others: lanes and bytes.
Counts count_plain(const Request& request);

}  // namespace cuda_on_cpu::microscope
