/// @file
/// @brief The GPUs that the CPU's "device" can stand for. Brings in no CUDA names.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cuda_on_cpu::control {

/// What a GPU has: the limits of its compute capability, and the size of one card of it.
struct DeviceModel {
  const char* architecture;   ///< "sm_86"
  const char* card;           ///< "RTX 3060", whose size this is
  const char* others;         ///< "RTX 30 series", which differ in `multiprocessors` and `l2_bytes`
  int compute_capability;     ///< 10 * major + minor
  int multiprocessors;        ///< SMs
  int threads_per_sm;         ///< that can be resident
  int blocks_per_sm;          ///< that can be resident
  std::size_t shared_per_sm;  ///< bytes of shared memory
  std::size_t shared_reserved;  ///< bytes of it that the driver takes for each block
  std::size_t l2_bytes;         ///< of the L2 cache
  std::size_t shared_per_block = std::size_t{48} * 1024;  ///< bytes without cudaFuncSetAttribute
  int registers_per_sm = 65536;                           ///< of 32 bits; a block may have as many
  int registers_per_thread = 255;                         ///< at most

  /// Bytes of shared memory that a block may have with cudaFuncSetAttribute.
  constexpr std::size_t shared_per_block_optin() const { return shared_per_sm - shared_reserved; }
  /// Copies from global to shared memory that do not wait (`cp.async`).
  constexpr bool has_cp_async() const { return compute_capability >= 80; }
  /// `mma.sync` of TF32 and bfloat16, and of 16 x 8 x 16 float16.
  constexpr bool has_bf16_mma() const { return compute_capability >= 80; }
  /// The Tensor Memory Accelerator, and mbarriers that count its bytes.
  constexpr bool has_tma() const { return compute_capability >= 90; }
  /// Clusters of blocks, with distributed shared memory.
  constexpr bool has_clusters() const { return compute_capability >= 90; }
  /// `wgmma`: of sm_90a alone.
  constexpr bool has_wgmma() const { return compute_capability == 90; }
  /// `setmaxnreg`, in code for `architecture` itself. (sm_120a has it, too.)
  constexpr bool has_setmaxnreg() const { return compute_capability == 90; }
};

/// All of them, the oldest first.
std::span<const DeviceModel> device_models();

/// The one of that architecture; null if there is none.
const DeviceModel* find_device_model(std::string_view architecture);

/// What the device is from now on. Queries and launches answer as that card does; it has as many
/// SMs, unless the environment says CUDA_ON_CPU_MULTIPROCESSORS. reset() leaves it as it is.
void set_device_model(const DeviceModel& model);

/// Back to the default: sm_90, with 8 SMs only, so that kernels that suit their grid to the device
/// launch few blocks.
void set_default_device_model();

/// What the device is now.
const DeviceModel& device_model();

/// Blocks of so many threads that can wait for one another here, whatever the device: each keeps an
/// OS thread and its stacks. A cooperative launch takes no more.
int most_waiting_blocks(int block_threads);

}  // namespace cuda_on_cpu::control
