/// @file
/// @brief The device that this library presents: the limits of compute capability 9.0, and few SMs.
#pragma once

#include <cstddef>

namespace cuda_on_cpu::model {

inline constexpr int kWarp = 32;
inline constexpr unsigned kThreadsPerBlock = 1024;
inline constexpr unsigned kBlockDim[3] = {1024, 1024, 64};
inline constexpr unsigned kGridDim[3] = {2147483647, 65535, 65535};
inline constexpr std::size_t kClusterBlocks = 8;  ///< of any GPU that has clusters
inline constexpr std::size_t kSharedPerBlock = std::size_t{48} * 1024;  ///< without being asked for
inline constexpr std::size_t kSharedPerBlockOptin =
    std::size_t{227} * 1024;  ///< with cudaFuncSetAttribute
inline constexpr std::size_t kSharedPerSm = std::size_t{228} * 1024;
inline constexpr std::size_t kSharedReserved = 1024;  ///< taken by the system in each block
inline constexpr int kThreadsPerSm = 2048;
inline constexpr int kBlocksPerSm = 32;
inline constexpr int kRegisters = 65536;
inline constexpr std::size_t kConstant = std::size_t{64} * 1024;
inline constexpr int kL2Bytes = 50 * 1024 * 1024;

/// CUDA_ON_CPU_MULTIPROCESSORS in the environment, else 8: few, because each block of a cooperative
/// launch takes an OS thread.
int multiprocessors();

/// Blocks of this size that an SM can hold.
int blocks_per_sm(unsigned block_threads, std::size_t dynamic_shared_bytes);

}  // namespace cuda_on_cpu::model
