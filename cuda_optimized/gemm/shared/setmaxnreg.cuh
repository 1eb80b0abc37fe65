/// @file setmaxnreg.cuh
/// @brief Registers for the threads that multiply, and factors in few of them; setmaxnreg.cu
/// explains both.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Of a block: the consumers, and a warpgroup of which one warp loads.
inline constexpr int kBlockThreads = kConsumerThreads + 128;
inline constexpr int kRegisters = 168,  ///< A thread begins with: 65536 / kBlockThreads, in eights.
    kRegistersToLoad = 40,              ///< With which one goes on that loads.
    kRegistersToMultiply = 232;         ///< With which one goes on that multiplies.
static_assert(kRegistersToLoad + kConsumers * kRegistersToMultiply <=
              (1 + kConsumers) * kRegisters);

/// A factor of wgmma, of which parts are read. All lie in the same 256 KB, so that their
/// descriptors differ in the low word alone: no carry, and half of the registers.
struct Factor {
  std::uint32_t low,  ///< the descriptor of its beginning,
      high;           ///< its upper half

  /// By its descriptor.
  __device__ explicit Factor(std::uint64_t all)
      : low(static_cast<std::uint32_t>(all)), high(static_cast<std::uint32_t>(all >> 32)) {}
  /// Describes the part that begins so many bytes further.
  __device__ std::uint64_t at(int bytes) const {
    return std::uint64_t{high} << 32 | (low + static_cast<std::uint32_t>(bytes / 16));
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
