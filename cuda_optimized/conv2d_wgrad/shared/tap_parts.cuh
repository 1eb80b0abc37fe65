/// @file tap_parts.cuh
/// @brief The layout of the partial sums of hopper/halo_tile.cu, and its second kernel, which adds
/// up the parts of dw and db in a fixed order.
#pragma once

#include "core/cuda/early_launch.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_plan.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// Parts of neighbouring accumulators: those of a part follow one another, and so do parts.
struct SumParts {
  float* from = nullptr;  ///< where the first part begins
  std::int64_t count;     ///< sums
  int parts;              ///< of each

  /// Floats from a part to the next, whole fours.
  HOST_DEVICE std::int64_t apart() const { return ceil_div<std::int64_t>(count, 4) * 4; }
  /// Floats of all parts.
  std::int64_t floats() const { return parts * apart(); }
};

/// Where all blocks leave their sums.
struct TapParts {
  SumParts dw,  ///< one part: dw itself, with nothing to add
      db;       ///< each row of taps of each tile of channels has its own

  /// Of a plan, without a place.
  TapParts(const Conv2dProblem& conv, const TapPlan& plan)
      : dw{.count = std::int64_t{conv.K} * (conv.C / conv.groups) * conv.R * conv.S,
           .parts = plan.splits},
        db{.count = conv.K, .parts = plan.splits * TapTiles(conv, plan.channels).c * kTapAxis} {}
  /// Of the workspace: db's parts, and dw's after them.
  std::int64_t floats() const { return db.floats() + (dw.parts > 1 ? dw.floats() : 0); }
  /// Says where they are.
  void begin_at(float* workspace, float* whole_dw) {
    db.from = workspace;
    dw.from = dw.parts > 1 ? workspace + db.floats() : whole_dw;
  }
};

/// Stores a warpgroup's accumulators [64 filters][kTapAxis][kChannels] of row r of the taps, in
/// part `split`. Four lanes' channels are a sector.
/// @param pairs two neighbouring channels can be stored at once
template <int kChannels>
__device__ void store_taps(const TapTiles& tiles, const TapTile& tile, int r, const SumParts& dw,
                           int split, bool pairs, const float (&sums)[kTapAxis * kChannels / 2]) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  if (r >= tiles.R) return;
  const int c = tile.c + lane % 4 * 2, channels = tiles.group_c - c;
#pragma unroll
  for (int below = 0; below < 2; ++below) {
    const int k = tile.k + thread / 32 * 16 + lane / 4 + 8 * below;
    if (k >= tiles.group_k) return;
    const std::int64_t filter = std::int64_t{tile.group} * tiles.group_k + k;
    float* to = dw.from + split * dw.apart() +
                ((filter * tiles.R + r) * tiles.S + tile.s) * tiles.group_c + c;
#pragma unroll
    for (int s = 0; s < kTapAxis; ++s, to += tiles.group_c) {
      if (tile.s + s >= tiles.S) break;
#pragma unroll
      for (int j = 0; j < kChannels; j += 8) {
        const int i = (s * kChannels + j) / 2 + 2 * below;
        if (pairs && j < channels) {
          gemm::store_two(to + j, sums[i], sums[i + 1]);
        } else {
          if (j < channels) to[j] = sums[i];
          if (j + 1 < channels) to[j + 1] = sums[i + 1];
        }
      }
    }
  }
}

inline constexpr int kAddTapThreads = 256;  ///< Of a block that adds parts.
inline constexpr int kTapShares = 16;       ///< Threads that share many parts of a sum.

/// Four neighbouring floats of a part, or as many as are left, and zeros.
__device__ inline float4 four_at(const float* from, std::int64_t left) {
  if (left >= 4) return *reinterpret_cast<const float4*>(from);
  return {from[0], left > 1 ? from[1] : 0.0f, left > 2 ? from[2] : 0.0f, 0.0f};
}

/// Adds up kAddTapThreads / kShares times four accumulators: thread (i, share) the parts share,
/// share + kShares ... of four of them. Called by block `block` of those of these sums, with all
/// threads.
template <int kShares>
__device__ void add_parts_of(const SumParts& sums, std::int64_t block, float* to) {
  constexpr int kFours = kAddTapThreads / kShares, kTogether = 4;
  __shared__ float4 of_share[kShares][kFours];
  const int i = static_cast<int>(threadIdx.x) % kFours;
  const int share = static_cast<int>(threadIdx.x) / kFours;
  const std::int64_t first = (block * kFours + i) * 4, left = sums.count - first;
  const std::int64_t apart = sums.apart();
  const auto add = [](float4& a, const float4& b) {
    a = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  };
  float4 sum{};
  for (int part = share; left > 0 && part < sums.parts; part += kTogether * kShares) {
    float4 more[kTogether];  // loaded before the first is added, also where there are fewer
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int other = part + j * kShares;
      more[j] = other < sums.parts ? four_at(sums.from + first + other * apart, left) : float4{};
    }
#pragma unroll
    for (const float4& value : more) add(sum, value);
  }
  if constexpr (kShares > 1) {
    of_share[share][i] = sum;
    __syncthreads();  // separates these stores from the loads below
    for (int other = 1; share == 0 && other < kShares; ++other) add(sum, of_share[other][i]);
  }
  if (share > 0 || left <= 0) return;
  if (left >= 4 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    *reinterpret_cast<float4*>(to + first) = sum;
    return;
  }
  const float values[] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (j < left) to[first + j] = values[j];
  }
}

/// db = the sum of its parts, by the first blocks, and dw by the others, if it has several.
/// Grid: db_blocks, and as many as dw needs; block kAddTapThreads.
template <int kShares>
static __global__ void __launch_bounds__(kAddTapThreads)
    conv2d_wgrad_add_tap_parts(TapParts parts, unsigned db_blocks, float* dw, float* db) {
  wait_for_kernel_before();
  if (blockIdx.x < db_blocks) {
    add_parts_of<kTapShares>(parts.db, blockIdx.x, db);
  } else {
    add_parts_of<kShares>(parts.dw, blockIdx.x - db_blocks, dw);
  }
}

/// Launches it, so that it begins while the last blocks before it store their sums.
static inline void launch_add_tap_parts(const TapParts& parts, float* dw, float* db) {
  constexpr int kSums = 4 * kAddTapThreads;
  const bool many = parts.dw.parts >= kTapShares;
  const unsigned db_blocks = blocks_for(parts.db.count, kSums / kTapShares);
  const unsigned dw_blocks =
      parts.dw.parts > 1 ? blocks_for(parts.dw.count, many ? kSums / kTapShares : kSums) : 0;
  launch_early(many ? conv2d_wgrad_add_tap_parts<kTapShares> : conv2d_wgrad_add_tap_parts<1>,
               {dim3(db_blocks + dw_blocks), dim3(kAddTapThreads)}, parts, db_blocks, dw, db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
