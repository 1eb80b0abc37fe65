/// @file shared_sums.cuh
/// @brief How the two blocks that share the sums of a tile in implicit_gemm_wgmma_two_blocks.cu
/// exchange them.
#pragma once

#include "cuda_optimized/conv2d/patch_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kHalfTileColumns = 112;  ///< Of a tile's columns, those that a block stores.
inline constexpr int kSharedColumns = 2 * kHalfTileColumns;  ///< Of a tile.
inline constexpr int kSumThreads = 128;                      ///< A warpgroup, which multiplies.

/// The plan with the fewest tiles of kSharedColumns; without patches if none fits.
inline PatchPlan shared_plan(const Windows& windows) {
  PatchPlan best;
  for (const PatchTiles& tiles :
       {strips_of(windows, kSharedColumns), rows_of(windows, kSharedColumns),
        images_of(windows, kSharedColumns)}) {
    PatchPlan plan = plan_with(windows, tiles, 1, 0);
    plan.stay = false;  // there is no other tile
    const bool is_better =
        best.patches == 0 || tiles.count(windows.N) < best.tiles.count(windows.N);
    if (plan.patches > 0 && is_better) best = plan;
  }
  return best;
}

/// Why two blocks do not share the sums of each tile, if so.
inline Declined why_not_shared(const Windows& windows) {
  if (windows.pixels() == 0) return {};
  if (windows.chunks() < 2) return "sums over 64 channels at most: one patch, nothing to share";
  const PatchPlan plan = shared_plan(windows);
  if (const Declined why = why_no_patches(windows, plan)) return why;
  const std::int64_t blocks = 2 * plan.tiles.count(windows.N) * filter_tiles_of(windows, 1);
  if (blocks <= multiprocessors()) return {};
  return text(how_many(blocks / 2, "tile"),
              ", with two blocks each: they must all run at once, on ", multiprocessors(),
              " multiprocessors");
}

/// Sums on their way from a block to the one that stores them, as the registers of those who
/// multiplied hold them: [block][8 columns][thread of a warpgroup][4 sums].
struct SumExchange {
  static constexpr int kEights = kHalfTileColumns / 8;  ///< that a block sends
  float4* sums;                                         ///< of block 0

  /// Bytes of the workspace.
  static std::size_t bytes(const Windows& windows) {
    if (windows.pixels() == 0) return 0;
    const std::int64_t tiles =
        shared_plan(windows).tiles.count(windows.N) * filter_tiles_of(windows, 1);
    return static_cast<std::size_t>(2 * tiles) * kEights * kSumThreads * sizeof(float4);
  }
  /// Sends a warpgroup's sums of the half of the columns that it does not keep.
  template <int kKept>
  __device__ void send(const float (&of)[kSharedColumns / 2]) const {
    constexpr int kSent = (1 - kKept) * kEights;
    float4* const to = sums + std::int64_t{blockIdx.x} * (kEights * kSumThreads) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      const float* const four = of + 4 * (kSent + i);
      to[i * kSumThreads] = {four[0], four[1], four[2], four[3]};
    }
  }
  /// The sums of the columns that it keeps, with what the other block has sent.
  template <int kKept>
  __device__ void add(const float (&of)[kSharedColumns / 2],
                      float (&whole)[kHalfTileColumns / 2]) const {
    const float4* const from =
        sums + std::int64_t{blockIdx.x ^ 1} * (kEights * kSumThreads) + threadIdx.x;
    float4 sent[kEights];
#pragma unroll
    for (int i = 0; i < kEights; ++i) sent[i] = from[i * kSumThreads];
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      const float* const four = of + 4 * (kKept * kEights + i);
      whole[4 * i] = four[0] + sent[i].x;
      whole[4 * i + 1] = four[1] + sent[i].y;
      whole[4 * i + 2] = four[2] + sent[i].z;
      whole[4 * i + 3] = four[3] + sent[i].w;
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
