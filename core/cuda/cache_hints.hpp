/// @file cache_hints.hpp
/// @brief Hints to the L2 cache about loads and stores.
///
/// The functions in namespace ptx are named after their instructions, like those of ptx.hpp. Hints
/// do not change results; cuda_on_cpu has no cache.
#pragma once

#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND::ptx {

/// `createpolicy.fractional` (sm_80) for all accesses with this policy: with `evict_first`, their
/// lines are evicted before others; otherwise `evict_normal`. Older GPUs have no such hints.
__device__ inline std::uint64_t createpolicy(bool evict_first) {
  std::uint64_t policy = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (evict_first) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
#else
  static_cast<void>(evict_first);
#endif
  return policy;
}

/// `st.global` of four floats with `.L2::cache_hint` (sm_80). @param to a multiple of 16 bytes
__device__ inline void st_cache_hint(float* to, const float4& four, std::uint64_t policy) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "f"(four.x),
               "f"(four.y), "f"(four.z), "f"(four.w), "l"(policy)
               : "memory");
#else
  static_cast<void>(policy);
  *reinterpret_cast<float4*>(to) = four;
#endif
}

/// tma_load() with `.L2::cache_hint` (sm_90).
template <int kRank>
__device__ inline void tma_load_cache_hint(void* shared_to, const CUtensorMap* map,
                                           std::uint64_t* barrier, const int (&at)[kRank],
                                           std::uint64_t policy) {
  static_assert(kRank == 4, "not needed so far");
#ifndef __CUDACC__
  static_cast<void>(policy);
  tma_load<kRank>(shared_to, map, barrier, at);
#elif __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(shared_to)),
      "l"(map), "r"(shared_address(barrier)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
      "l"(policy)
      : "memory");
#else
  __trap();
#endif
}

/// tma_store() with `.L2::cache_hint` (sm_90).
template <int kRank>
__device__ inline void tma_store_cache_hint(const CUtensorMap* map, const void* shared_from,
                                            const int (&at)[kRank], std::uint64_t policy) {
  static_assert(kRank == 4, "not needed so far");
#ifndef __CUDACC__
  static_cast<void>(policy);
  tma_store<kRank>(map, shared_from, at);
#elif __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint"
      " [%0, {%2, %3, %4, %5}], [%1], %6;" ::"l"(map),
      "r"(shared_address(shared_from)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "l"(policy)
      : "memory");
#else
  __trap();
#endif
}

}  // namespace convladder::BACKEND::ptx
