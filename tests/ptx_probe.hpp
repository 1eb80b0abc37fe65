/// @file ptx_probe.hpp
/// @brief Kernels that run one instruction of core/cuda/ptx.hpp on given registers and store what
/// comes out: compiled for cuda_on_cpu and, where there is nvcc, for the GPU.
#pragma once

#include <cstdint>
#include <vector>

/// The registers of a warp, by lane.
using Registers = std::vector<std::uint32_t>;

/// Declares the probes of one place.
#define PTX_PROBES                                                                             \
  /** Whether the device there has mma.sync in TF32. */                                        \
  bool has_tensor_cores();                                                                     \
  /** ldmatrix.x4 (or .x2): lane l names `rows` + 4 * first[l]; [32][matrices]. */             \
  Registers load_matrices(const Registers& rows, const Registers& first, int matrices);        \
  /** mma.sync m16n8k8 in TF32 with a [32][4], b [32][2], d [32][4] as the lanes hold them. */ \
  Registers multiply(const Registers& a, const Registers& b, const Registers& d);              \
  /** cvt.rna.tf32.f32 of 32 floats. */                                                        \
  Registers round_to_tf32(const Registers& values);

namespace convladder::emulated::ptx_probe {
PTX_PROBES
}
namespace convladder::gpu::ptx_probe {
PTX_PROBES
}
