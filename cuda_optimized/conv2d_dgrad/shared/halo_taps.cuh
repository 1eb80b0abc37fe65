/// @file halo_taps.cuh
/// @brief Loads of the weights of hopper/halo_tile.cu in the order of w: by TMA, or by a warp.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/half_classes.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

using conv2d::PatchFilters;
using conv2d::Tap;

/// Products with weights as they lie: slots hold [64 of k][64 channels of dx].
struct WeightsAcross {
  /// Adds the products of a tap's weights and the columns that a descriptor names to the sums.
  template <int kColumns, class T>
  __device__ static void multiply(float (&sums)[kColumns / 2], const char* weights,
                                  std::uint64_t columns) {
    const std::uint64_t rows = ptx::wgmma_row_major_descriptor(weights, 0);
#pragma unroll
    for (int k = 0; k < gemm::kHalfStep; k += 16)  // descriptors count in units of 16 bytes
      gemm::wgmma_down_a<kColumns, T>(sums, rows + k * conv2d::kPixelBytes / 16, columns + k / 8);
  }
};

/// Weights [groups][K/groups][R*S][C/groups] by TMA: 64 of dy's channels k of a tap, by
/// 64 channels of dx, which are the "filters" of the product.
struct CopiedClassTaps {
  using Product = WeightsAcross;             ///< how they are multiplied
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap weights;                       ///< of words
  ClassTaps taps;                            ///< which tap of the filter is which of the windows
  int group_c;                               ///< channels of dx in a group

  /// Starts the copy of a tap's weights to a slot [64 of k][64]; `full` completes once all bytes
  /// are there. @param chunk which 64 of k
  __device__ void load(const PatchFilters& columns, const Tap& tap, int chunk, char* slot,
                       std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, conv2d::kTapBytes);
    ptx::tma_load<4>(slot, &weights, full,
                     {(group_c - columns.count) / 2, taps.at(tap.r, tap.s), chunk * gemm::kHalfStep,
                      columns.group});
  }
};

/// TMA's view of weights that begin at a multiple of 16 bytes.
template <class T>
CopiedClassTaps copied_class_taps(const Conv2dProblem& conv, const HalfClass& part,
                                  const T* weights) {
  return {.weights = tensor_map(weights_as_they_lie(conv), conv2d::words_of(weights)),
          .taps = part.taps,
          .group_c = conv.C / conv.groups};
}

/// The same by a warp.
template <class T>
struct GatheredClassTaps {
  using Product = WeightsAcross;            ///< how they are multiplied
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a row's words
  const T* weights;                         ///< [groups][K/groups][R*S][C/groups]
  ClassTaps taps;                           ///< which tap of the filter is which of the windows
  int filter_taps,                          ///< of the filter
      group_k,                              ///< channels of dy in a group
      group_c;                              ///< channels of dx in a group

  /// Copies a tap's weights; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const PatchFilters& columns, const Tap& tap, int chunk, char* slot,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, k = chunk * gemm::kHalfStep;
    const Index4 at{group_k, filter_taps, group_c};
    for (int i = 0; i < gemm::kHalfStep; ++i) {
      reinterpret_cast<std::uint32_t*>(slot)[gemm::swizzled(i, lane)] =
          k + i < group_k ? conv2d::word_at(weights,
                                            at(columns.group, k + i, taps.at(tap.r, tap.s),
                                               group_c - columns.count + 2 * lane),
                                            columns.count - 2 * lane)
                          : 0;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
