/// @file cache_hints.hpp
/// @brief What a kernel may tell the L2 cache about what it stores.
///
/// The functions in namespace ptx are named after their instructions, as those of ptx.hpp.
#pragma once

#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND::ptx {

/// tma_store() with `.L2::cache_hint` (sm_90), whose policy is `createpolicy.fractional` with
/// `evict_first`: where the cache needs room, these lines leave it before others. It is a hint, and
/// changes no result; cuda_on_cpu has no cache.
template <int kRank>
__device__ inline void tma_store_evict_first(const CUtensorMap* map, const void* shared_from,
                                             const int (&at)[kRank]) {
  static_assert(kRank == 4, "not needed so far");
#ifndef __CUDACC__
  tma_store<kRank>(map, shared_from, at);
#elif __CUDA_ARCH__ >= 900
  std::uint64_t policy = 0;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
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
