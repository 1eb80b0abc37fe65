/// @file
/// @brief The device that this library presents: common properties of all GPU models, and
/// properties derived from the model (cuda_on_cpu/device_models.hpp).
#pragma once

#include <cstddef>
#include <cuda_on_cpu/device_models.hpp>
#include <string>

namespace cuda_on_cpu::model {

inline constexpr int kWarp = 32;
inline constexpr unsigned kThreadsPerBlock = 1024;
inline constexpr unsigned kBlockDim[3] = {1024, 1024, 64};
inline constexpr unsigned kGridDim[3] = {2147483647, 65535, 65535};
inline constexpr std::size_t kClusterBlocks = 8;      ///< of every GPU with clusters
inline constexpr std::size_t kSharedReserved = 1024;  ///< where a block's own shared memory starts
/// The most shared memory per block of any model; buffers have this size.
inline constexpr std::size_t kMostSharedPerBlock = std::size_t{227} * 1024;
inline constexpr std::size_t kConstant = std::size_t{64} * 1024;

/// SMs of the device.
int multiprocessors();

/// Blocks of this size that an SM can hold.
int blocks_per_sm(unsigned block_threads, std::size_t dynamic_shared_bytes);

}  // namespace cuda_on_cpu::model

namespace cuda_on_cpu {

/// "wgmma needs sm_90a, and the device is sm_86 (RTX 3060)".
inline std::string text_of_need(const std::string& feature, const char* architecture,
                                const control::DeviceModel& device) {
  return feature + " needs " + architecture + ", and the device is " + device.architecture + " (" +
         device.card + ")";
}

}  // namespace cuda_on_cpu
