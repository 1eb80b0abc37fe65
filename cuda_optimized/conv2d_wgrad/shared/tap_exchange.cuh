/// @file tap_exchange.cuh
/// @brief How the blocks of a cluster add up their sums in hopper/cluster_reduction.cu.
///
/// A thread's sums come in fours, of two rows and two columns. Four number i belongs to block i %
/// blocks of the cluster: the others send it theirs, each to a place of its own, and it adds them
/// up in the order of their ranks.
#pragma once

#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_clusters.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_parts.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// A block's place in its cluster.
struct ClusterPlace {
  unsigned rank,  ///< its number
      log;        ///< of the cluster's blocks, to base 2

  /// Of the cluster.
  __device__ unsigned blocks() const { return 1u << log; }
};

/// A block's barriers.
struct TapBarriers {
  std::uint64_t full[kMaxTapStages],  ///< the stage has arrived
      empty[kMaxTapStages],           ///< all warps that read it have done so
      all_read,   ///< no block of the cluster reads its stages any more: sums may come there
      sums_came,  ///< from all others
      bias_came;  ///< likewise, to the cluster's first block

  /// Initialises them. Called by a thread.
  /// @param has_bias there are warps that add up dy
  /// @param bytes of all sums of a tile
  __device__ void begin(const Bands& bands, const ClusterPlace& place, bool has_bias,
                        std::int64_t bytes) {
    const int readers = kTapConsumers / 32 + (has_bias ? kBiasWarps : 0);
    const auto blocks = static_cast<int>(place.blocks()), others = blocks - 1;
    for (int i = 0; i < bands.stages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], readers);
    }
    ptx::mbarrier_init(&all_read, blocks * readers);
    ptx::mbarrier_init(&sums_came, 1);
    ptx::mbarrier_init(&bias_came, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&sums_came, static_cast<int>(bytes >> place.log) * others);
    ptx::mbarrier_arrive_expect_tx(&bias_came, others * kBiasWarps * kTapFilters * 4);
  }
};

/// Tells each block of the cluster that a warp has read what it wanted to. Called by all of it.
__device__ inline void tell_all(const ClusterPlace& place, std::uint64_t* all_read) {
  ptx::barrier_cluster_wait();  // separates the barriers' initialisation from their use
  const unsigned lane = threadIdx.x % 32;
  if (lane < place.blocks()) ptx::mbarrier_arrive_relaxed(ptx::mapa(all_read, lane));
}

/// Stores four sums at `to`, in the block `rank` of the cluster: there, `arrived` is told of their
/// bytes, unless it is the caller's own block.
__device__ inline void send_four(const ClusterPlace& place, unsigned rank, float* to,
                                 const float4& four, std::uint64_t* arrived) {
  if (rank == place.rank) {
    *reinterpret_cast<float4*>(to) = four;
  } else {
    ptx::st_async(ptx::mapa(to, rank), four, ptx::mapa(arrived, rank));
  }
}

/// Sends a thread's sums to those that they belong to. `parts`, [from blocks][fours][threads], and
/// `arrived` lie at the same places in all blocks; all have read what was there.
template <int kSums>
__device__ void send_sums(const ClusterPlace& place, const float (&sums)[kSums], float4* parts,
                          std::uint64_t* arrived) {
  const unsigned fours = kSums / 4 >> place.log;
  float4* const mine = parts + place.rank * fours * kTapConsumers + threadIdx.x;
#pragma unroll
  for (unsigned i = 0; i < kSums / 4; ++i) {
    const unsigned to = i & (place.blocks() - 1);
    send_four(place, to, reinterpret_cast<float*>(mine + (i >> place.log) * kTapConsumers),
              {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]}, arrived);
  }
}

/// Adds up what has arrived, and stores it, of row r of the taps, in part `part`.
/// @param pairs two neighbouring channels can be stored at once
template <int kChannels>
__device__ void add_and_store(const ClusterPlace& place, const float4* parts, const TapTiles& tiles,
                              const TapTile& tile, int r, const SumParts& dw, int part,
                              bool pairs) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  if (r >= tiles.R) return;
  const int k = tile.k + thread / 32 * 16 + lane / 4;
  const int c = tile.c + lane % 4 * 2, channels = tiles.group_c - c;
  const std::int64_t filter_floats = std::int64_t{tiles.R} * tiles.S * tiles.group_c;
  float* const first = dw.from + part * dw.apart() +
                       (std::int64_t{tile.group} * tiles.group_k + k) * filter_floats +
                       (std::int64_t{r} * tiles.S + tile.s) * tiles.group_c + c;
  const unsigned fours = kTapAxis * kChannels / 8 >> place.log;
  for (unsigned i = 0; i < fours; ++i) {
    float4 sum{};
    for (unsigned from = 0; from < place.blocks(); ++from) {
      const float4 more = parts[(from * fours + i) * kTapConsumers + threadIdx.x];
      sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
    }
    constexpr int kFours = kChannels / 8;  // of a tap
    const int four = static_cast<int>((i << place.log) + place.rank);
    const int s = four / kFours, j = four % kFours * 8;
    if (tile.s + s >= tiles.S) break;
    const auto store = [&](float* to, float left, float right) {
      if (pairs && j < channels) {
        gemm::store_two(to, left, right);
      } else {
        if (j < channels) to[0] = left;
        if (j + 1 < channels) to[1] = right;
      }
    };
    float* const to = first + s * tiles.group_c + j;
    if (k < tiles.group_k) store(to, sum.x, sum.y);
    if (k + 8 < tiles.group_k) store(to + 8 * filter_floats, sum.z, sum.w);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
