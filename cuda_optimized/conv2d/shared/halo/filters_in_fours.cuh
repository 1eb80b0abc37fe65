/// @file filters_in_fours.cuh
/// @brief Tiles of 128 filters of one tap for hopper/halo_tile_tf32.cu, in an order in
/// which a lane's four sums of a pixel are neighbours.
///
/// `wgmma` gives a lane the rows l and l + 8 of its warp's 16, l = lane / 4, and of two blocks of
/// 64 rows four in all. Which filters these are is up to who fills the rows:
///
///     filter, of the tile's 128      32 * warp + 4 * l + f
///     its block, and row in there    f / 2,   16 * warp + 8 * (f % 2) + l
///
/// So a warp stores 32 filters of a pixel at once, 128 bytes.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Weights [K][group_c] by TMA: 128 filters, by 32 words of channels. Groups are of
/// multiples of kInFours filters.
struct CopiedFours {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap weights;                       ///< [K / 32][f][l][group_c]

  /// Starts the copies of a chunk to a slot; `full` completes once all bytes are there.
  __device__ void load(const PatchFilters& filters, const Tap&, int chunk, char* slot,
                       std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, 2 * kTapBytes);
    for (int block = 0; block < 2; ++block) {
      ptx::tma_load<4>(slot + block * kTapBytes, &weights, full,
                       {chunk * kTensorMapRow, 0, 2 * block, filters.first / kInFours});
    }
  }
};

/// TMA's view of weights that begin at a multiple of 16 bytes.
inline CopiedFours copied_fours(const Windows& windows, const float* weights) {
  const std::int64_t words = windows.group_c;
  return {.weights = tensor_map(TiledMap{.rank = 4,
                                         .extents = {words, 8, 4, windows.K / kInFours},
                                         .strides = {1, 4 * words, words, kInFours * words},
                                         .box = {kTensorMapRow, 8, 2, 4}},
                                weights)};
}

/// The same by a warp, of filters of one tap.
struct GatheredFours {
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a filter's words
  const float* weights;                     ///< [K][group_c]
  int group_c;                              ///< channels of a group

  /// Copies a chunk; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const PatchFilters& filters, const Tap&, int chunk, char* slot,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, first = chunk * kTensorMapRow + lane;
    for (int j = 0; j < 2 * kPatchFilters; ++j) {
      const int f = j % 4, row = j / 32 * 16 + f % 2 * 8 + j % 32 / 4;
      char* const block = slot + f / 2 * kTapBytes;
      reinterpret_cast<std::uint32_t*>(block)[gemm::swizzled(row, lane)] =
          j < filters.count ? word_at(weights, (filters.first + std::int64_t{j}) * group_c + first,
                                      group_c - first)
                            : 0;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
