/// @file
/// @brief The GPU models that the emulated device can represent. This header declares no CUDA
/// names.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cuda_on_cpu::control {

/// The properties of a GPU: the limits of its compute capability, and the size of one card.
struct DeviceModel {
  const char* architecture;     ///< "sm_86"
  const char* card;             ///< "RTX 3060", the card whose size the model has
  const char* others;           ///< "RTX 30 series", other cards, which differ in `multiprocessors`
                                ///< and `l2_bytes`
  int compute_capability;       ///< 10 * major + minor
  int multiprocessors;          ///< SMs
  int threads_per_sm;           ///< resident threads
  int blocks_per_sm;            ///< resident blocks
  std::size_t shared_per_sm;    ///< bytes of shared memory
  std::size_t shared_reserved;  ///< bytes of shared memory that the driver reserves per block
  std::size_t l2_bytes;         ///< of the L2 cache
  std::size_t shared_per_block = std::size_t{48} * 1024;  ///< bytes without cudaFuncSetAttribute
  int registers_per_sm = 65536;                           ///< 32-bit registers; a block may use as
                                                          ///< many
  int registers_per_thread = 255;                         ///< at most

  /// Bytes of shared memory that a block may have with cudaFuncSetAttribute.
  constexpr std::size_t shared_per_block_optin() const { return shared_per_sm - shared_reserved; }
  /// Asynchronous copies from global to shared memory (`cp.async`).
  constexpr bool has_cp_async() const { return compute_capability >= 80; }
  /// `mma.sync` in TF32 and bf16, and in fp16 with shape 16 x 8 x 16.
  constexpr bool has_bf16_mma() const { return compute_capability >= 80; }
  /// The Tensor Memory Accelerator, and mbarriers that count its bytes.
  constexpr bool has_tma() const { return compute_capability >= 90; }
  /// Clusters of blocks, with distributed shared memory.
  constexpr bool has_clusters() const { return compute_capability >= 90; }
  /// `wgmma`: sm_90a only.
  constexpr bool has_wgmma() const { return compute_capability == 90; }
  /// `setmaxnreg`, in code for `architecture` itself. (sm_120a supports it, too.)
  constexpr bool has_setmaxnreg() const { return compute_capability == 90; }
};

/// All models, the oldest first.
std::span<const DeviceModel> device_models();

/// The model of that architecture; null if there is none.
const DeviceModel* find_device_model(std::string_view architecture);

/// Sets the device model. Queries and launches then behave as on that card. The number of SMs is
/// the card's, unless the environment variable CUDA_ON_CPU_MULTIPROCESSORS is set. reset() does not
/// change the model.
void set_device_model(const DeviceModel& model);

/// Restores the default: sm_90 with only 8 SMs, so that kernels that adapt their grid to the device
/// launch few blocks.
void set_default_device_model();

/// The current model.
const DeviceModel& device_model();

/// The most blocks of this many threads that can wait for one another in the emulator, whatever the
/// model: each needs an OS thread and its stacks. This limits cooperative launches.
int most_waiting_blocks(int block_threads);

}  // namespace cuda_on_cpu::control
