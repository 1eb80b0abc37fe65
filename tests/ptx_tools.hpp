/// @file ptx_tools.hpp
/// @brief The probes of each place that has the instructions, and numbers as tensor cores take
/// them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device.hpp"
#include "core/float8.hpp"
#include "tests/ptx_probe.hpp"

namespace convladder::testing {

/// The probes of a place.
struct Probes {
  const char* place;
  Registers (*load_matrices)(const Registers&, const Registers&, int, bool);
  Registers (*store_matrices)(const Registers&, const Registers&);
  Registers (*multiply)(FactorType, const Registers&, const Registers&, const Registers&);
  Registers (*round_to_tf32)(const Registers&);
  Registers (*load_box)(const TensorLoad&, const Registers&);
  Registers (*copy_to_barrier)(const Registers&);
  Registers (*share_in_clusters)(const Registers&, int);
  Registers (*exchange_in_clusters)(const Registers&, int);
  Registers (*multiply_in_warpgroup)(FactorType, const Registers&, const WgmmaFactor&,
                                     const WgmmaFactor&, int, int, const Registers&);
  Registers (*through_shared_memory)(LaunchedBy, std::size_t);
  bool has_wgmma;
};

/// cuda_on_cpu's, and the GPU's where there is one that has the instructions.
inline std::vector<Probes> all_probes() {
  std::vector<Probes> probes = {
      {"emulated", emulated::ptx_probe::load_matrices, emulated::ptx_probe::store_matrices,
       emulated::ptx_probe::multiply, emulated::ptx_probe::round_to_tf32,
       emulated::ptx_probe::load_box, emulated::ptx_probe::copy_to_barrier,
       emulated::ptx_probe::share_in_clusters, emulated::ptx_probe::exchange_in_clusters,
       emulated::ptx_probe::multiply_in_warpgroup, emulated::ptx_probe::through_shared_memory,
       true}};
#ifdef CONVLADDER_HAVE_NVCC
  if (device_at(Where::gpu) != nullptr && gpu::ptx_probe::has_tensor_cores()) {
    probes.push_back({"gpu", gpu::ptx_probe::load_matrices, gpu::ptx_probe::store_matrices,
                      gpu::ptx_probe::multiply, gpu::ptx_probe::round_to_tf32,
                      gpu::ptx_probe::load_box, gpu::ptx_probe::copy_to_barrier,
                      gpu::ptx_probe::share_in_clusters, gpu::ptx_probe::exchange_in_clusters,
                      gpu::ptx_probe::multiply_in_warpgroup, gpu::ptx_probe::through_shared_memory,
                      gpu::ptx_probe::has_wgmma()});
  }
#endif
  return probes;
}

/// Those of the places that have tensor loads and wgmma.
inline std::vector<Probes> hopper_probes() {
  std::vector<Probes> probes = all_probes();
  std::erase_if(probes, [](const Probes& p) { return !p.has_wgmma; });
  return probes;
}

/// A number's bits, and back.
inline std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float real(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Those of mma.sync.
inline constexpr FactorType kTypes[] = {FactorType::tf32, FactorType::f16, FactorType::bf16};
/// Those of wgmma.
inline constexpr FactorType kWgmmaTypes[] = {FactorType::tf32, FactorType::f16, FactorType::bf16,
                                             FactorType::e4m3};

/// Numbers in a register; the first one is in its low bits.
inline std::size_t per_register(FactorType type) {
  return type == FactorType::tf32 ? 1 : type == FactorType::e4m3 ? 4 : 2;
}

/// The register that holds the numbers from `values` on.
inline std::uint32_t packed(FactorType type, const float* values, std::size_t stride = 1) {
  if (type == FactorType::tf32) return bits(values[0]);
  if (type == FactorType::e4m3) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 4; ++i)
      word |= std::uint32_t{rounded_to<Float8>(values[i * stride]).bits} << 8 * i;
    return word;
  }
  const auto one = [=](float value) -> std::uint32_t {
    return type == FactorType::f16 ? rounded_to<Half>(value).bits
                                   : rounded_to<BFloat16>(value).bits;
  };
  return one(values[0]) | one(values[stride]) << 16;
}

/// What a factor is to the tensor cores.
inline double as_factor(FactorType type, float value) {
  switch (type) {
    case FactorType::tf32: return double{real(bits(value) & ~0x1fffu)};
    case FactorType::f16: return double{to_float(rounded_to<Half>(value))};
    case FactorType::bf16: return double{to_float(rounded_to<BFloat16>(value))};
    case FactorType::e4m3: return double{to_float(rounded_to<Float8>(value))};
  }
  return 0;
}

/// Where a swizzle of so many bytes puts a word.
inline std::size_t swizzled(std::size_t word, int span) {
  const std::size_t mask = span == 0 ? 0 : static_cast<std::size_t>(span) / 4 - 4;
  return word ^ (word >> 3 & mask);
}

}  // namespace convladder::testing
