/// @file cluster_reduction.cuh
/// @brief How the two blocks of a cluster exchange halves of their sums in
/// hopper/cluster_split_k.cu.
#pragma once

#include "core/cuda/cluster.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kHalfTileColumns = 112;  ///< Of a tile's columns, those that a block stores.
inline constexpr int kSharedColumns = 2 * kHalfTileColumns;  ///< Of a tile.
inline constexpr int kSumThreads = 128;                      ///< A warpgroup, which multiplies.
inline constexpr int kPairEights = kHalfTileColumns / 8;     ///< Of columns, that a block sends.
/// Of what a block sends, and of its place in the other one's shared memory.
inline constexpr int kPairBytes = kPairEights * kSumThreads * 16;

/// The plan with the fewest tiles of kSharedColumns, with room for what comes from the other block,
/// where others have drafts; without patches if none fits.
inline PatchPlan pair_plan(const Windows& windows) {
  static_assert(kPairBytes % gemm::kConsumers == 0);
  PatchPlan best;
  for (const PatchTiles& tiles :
       {strips_of(windows, kSharedColumns), rows_of(windows, kSharedColumns),
        images_of(windows, kSharedColumns)}) {
    PatchPlan plan = plan_with(windows, tiles, 1, kPairBytes / gemm::kConsumers);
    plan.stay = false;  // there is no other tile
    const bool is_better =
        best.patches == 0 || tiles.count(windows.N) < best.tiles.count(windows.N);
    if (plan.patches > 0 && is_better) best = plan;
  }
  return best;
}

/// Why two blocks do not share the sums of each tile, if so.
inline Declined why_no_pairs(const Windows& windows) {
  if (windows.pixels() == 0) return {};
  if (windows.chunks() < 2) return "sums over 64 channels at most: one patch, nothing to share";
  const PatchPlan plan = pair_plan(windows);
  if (const Declined why = why_no_patches(windows, plan)) return why;
  const std::int64_t blocks = 2 * plan.tiles.count(windows.N) * filter_tiles_of(windows, 1);
  if (blocks <= INT32_MAX) return {};
  return text(how_many(blocks / 2, "tile"), ", with two blocks each: at most ", INT32_MAX,
              " blocks");
}

/// Sums on their way to the block that stores them, as the registers of those who multiplied hold
/// them: [8 columns][thread of a warpgroup][4 sums].
struct PairExchange {
  float4* came;            ///< what the other block has sent, and at the same place there
  std::uint64_t* arrived;  ///< its barrier, which expects kPairBytes

  /// Sends a warpgroup's sums of the half of the columns that it does not keep.
  template <int kKept>
  __device__ void send(const float (&of)[kSharedColumns / 2]) const {
    constexpr int kSent = (1 - kKept) * kPairEights;
    const unsigned to = ptx::mapa(came + threadIdx.x, 1 - kKept);
    const unsigned barrier = ptx::mapa(arrived, 1 - kKept);
#pragma unroll
    for (int i = 0; i < kPairEights; ++i) {
      const float* const four = of + 4 * (kSent + i);
      ptx::st_async(to + static_cast<unsigned>(i * kSumThreads * 16),
                    {four[0], four[1], four[2], four[3]}, barrier);
    }
  }
  /// The sums of the columns that it keeps, with what the other block has sent.
  template <int kKept>
  __device__ void add(const float (&of)[kSharedColumns / 2],
                      float (&whole)[kHalfTileColumns / 2]) const {
    ptx::mbarrier_wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < kPairEights; ++i) {
      const float4 sent = came[i * kSumThreads + static_cast<int>(threadIdx.x)];
      const float* const four = of + 4 * (kKept * kPairEights + i);
      whole[4 * i] = four[0] + sent.x;
      whole[4 * i + 1] = four[1] + sent.y;
      whole[4 * i + 2] = four[2] + sent.z;
      whole[4 * i + 3] = four[3] + sent.w;
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
