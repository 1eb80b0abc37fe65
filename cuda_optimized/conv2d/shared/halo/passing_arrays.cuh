/// @file passing_arrays.cuh
/// @brief Arrays that are too large for the L2 cache, and may leave it before others; for
/// hopper/weight_stationary.cu here and in ../conv2d_dgrad.
#pragma once

#include "core/cuda/cache_hints.hpp"
#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Bytes of an array that the next layer may find in the L2 cache: half of an H200's.
inline constexpr std::int64_t kStayBytes = 25'000'000;

/// Whether an array of so many bytes is too large for the L2 cache. On a machine that tests made
/// small, a smaller one is.
inline bool passes_the_cache(std::int64_t bytes) { return bytes > enough_blocks(kStayBytes); }

/// A source that may leave the L2 cache before other arrays: each pixel is read once.
struct PassingPatches : CopiedPatches {
  bool passes;  ///< passes_the_cache()

  /// As CopiedPatches::load(), but for the hint.
  __device__ void load(const PatchOrigin& from, char* patch, std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load_cache_hint<4>(
        patch, &source, full,
        {from.group * group_c + from.chunk * kTensorMapRow, from.w, from.n, from.h},
        ptx::createpolicy(passes));
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
