#include <algorithm>
#include <cuda_on_cpu/device_models.hpp>
#include <iterator>

#include "settings.hpp"

namespace cuda_on_cpu::control {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

// Limits of a compute capability: CUDA C++ Programming Guide 13.0, "Compute Capabilities", table
// "Technical Specifications per Compute Capability": resident threads and blocks per SM, shared
// memory per SM and per block (the guide: 64 KB, 163 KB, 99 KB, 99 KB, 227 KB, 99 KB per block),
// 64 K registers per SM and per block, 255 per thread. The toolkit says the same of blocks in
// cuda_occupancy.h, cudaOccMaxBlocksPerMultiprocessor(), and that 1 KiB of each block's shared
// memory is reserved from 8.0 on.
//
// Features: the same chapter, table "Feature Support per Compute Capability" (asynchronous copies
// from 8.0 on; clusters, distributed shared memory and TMA from 9.0 on, 12.0 among them); PTX ISA
// 9.0, target notes of mma (TF32, bfloat16 and m16n8k16 from sm_80 on), wgmma (sm_90a) and
// setmaxnreg (sm_90a, sm_100a, sm_120a, no plain architecture).
//
// Sizes of cards:
//   T4        white paper "NVIDIA Turing GPU Architecture": 40 SMs, 4096 KB of L2
//   A100      white paper "NVIDIA A100 Tensor Core GPU Architecture": 108 SMs, 40960 KB
//   RTX 3060  nvidia.com: 3584 CUDA cores, 192-bit bus; white paper "NVIDIA Ampere GA102 GPU
//             Architecture": 128 CUDA cores to an SM, 512 KB of L2 to each 32-bit controller
//   RTX 4090  white paper "NVIDIA Ada GPU Architecture": 128 SMs, 73728 KB
//   H200      white paper "NVIDIA H100 Tensor Core GPU Architecture", SXM5: 132 SMs, 50 MB
//   RTX 5090  white paper "NVIDIA RTX Blackwell GPU Architecture": 170 SMs, 98304 KB
constexpr DeviceModel kModels[] = {
    // architecture, card, others, compute capability, SMs, threads and blocks per SM, shared memory
    // of an SM and what is reserved of it for a block, L2 cache
    {"sm_75", "T4", "RTX 20 series", 75, 40, 1024, 16, 64 * kKiB, 0, 4 * kMiB},
    {"sm_80", "A100", "A30", 80, 108, 2048, 32, 164 * kKiB, kKiB, 40 * kMiB},
    {"sm_86", "RTX 3060", "RTX 30 series, A10", 86, 28, 1536, 16, 100 * kKiB, kKiB, 3 * kMiB},
    {"sm_89", "RTX 4090", "RTX 40 series, L4", 89, 128, 1536, 24, 100 * kKiB, kKiB, 72 * kMiB},
    {"sm_90", "H200", "H100", 90, 132, 2048, 32, 228 * kKiB, kKiB, 50 * kMiB},
    {"sm_120", "RTX 5090", "RTX 50 series", 120, 170, 1536, 24, 100 * kKiB, kKiB, 96 * kMiB},
};

}  // namespace

std::span<const DeviceModel> device_models() { return kModels; }

const DeviceModel* find_device_model(std::string_view architecture) {
  const auto* const found =
      std::find_if(std::begin(kModels), std::end(kModels),
                   [&](const DeviceModel& model) { return model.architecture == architecture; });
  return found == std::end(kModels) ? nullptr : found;
}

const DeviceModel& device_model() { return *current_settings().model; }

}  // namespace cuda_on_cpu::control

namespace cuda_on_cpu {

const control::DeviceModel* default_model() { return control::find_device_model("sm_90"); }

}  // namespace cuda_on_cpu
