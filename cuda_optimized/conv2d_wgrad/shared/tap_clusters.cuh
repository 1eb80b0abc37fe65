/// @file tap_clusters.cuh
/// @brief Which tiles, bands and clusters hopper/cluster_reduction.cu takes.
#pragma once

#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_bands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kMaxTapCluster = 4;  ///< Blocks of a cluster; of 8, few run at a time.
inline constexpr int kTapConsumers = 128 * kTapAxis;  ///< Threads that multiply.
inline constexpr int kBiasWarps = 3;                  ///< That add up dy.
/// Of db's parts, before the stages: each block of a cluster sends one from each of these warps.
inline constexpr int kBiasBytes = kMaxTapCluster * kBiasWarps * kTapFilters * 4;

/// Bytes of all sums of a tile of dw.
HOST_DEVICE constexpr std::int64_t tile_bytes(int channels) {
  return std::int64_t{4} * kTapFilters * kTapAxis * kTapAxis * channels;
}

/// What is chosen. A block computes a tile of one of cluster * parts parts: where one cluster is
/// not enough for all of them, several cost what they save.
struct ClusterPlan {
  int channels;  ///< of a tile
  Bands bands;   ///< fewer than two stages: none fit
  double band;   ///< cycles that one is expected to take
  int cluster;   ///< blocks that add up their sums before they store them: a power of two
  int parts;     ///< of each sum in memory
};

/// Blocks that are there at a time, in clusters: those of one lie in a part of the GPU that has up
/// to 18 SMs, and some of each part are left over. On an H200 CUDA counts 66, 30 and 15 clusters of
/// 2, 4 and 8 blocks.
inline std::int64_t clustered_blocks(int multiprocessors, int cluster) {
  const std::int64_t used = cluster > 2 ? multiprocessors * 10 / 11 : multiprocessors;
  return std::max<std::int64_t>(used / cluster, 1) * cluster;
}

/// Cycles that a band is expected to take.
inline double band_cycles(int channels, const Bands& bands) {
  const double step = channels == kManyChannels ? 300 : 180;
  constexpr double kBandCycles = 200, kLoadedBytes = 22;  // a cycle, from L2 to an SM
  const double bands_of_image = static_cast<double>(bands.down) * bands.across;
  const double computing = static_cast<double>(bands.steps_of_image()) / bands_of_image * step;
  const double loading = bands.bytes / kLoadedBytes;
  // With two stages, a load waits for the products of the band before.
  return kBandCycles + (bands.stages > 2 ? std::max(computing, loading) : computing + loading / 2);
}

/// Cycles for which a plan is expected to keep the GPU.
inline double cycles_of(const Conv2dProblem& conv, const ClusterPlan& plan, int multiprocessors) {
  constexpr double kMeetCycles = 1500, kAddCycles = 5000;
  // A cycle: between SMs, of an SM to L2, and of all SMs.
  constexpr double kExchangedBytes = 16, kStoredBytes = 16, kAddedBytes = 2400;
  const int shares = plan.cluster * plan.parts;
  const std::int64_t blocks = TapTiles(conv, plan.channels).count() * shares;
  const auto waves = static_cast<double>(
      ceil_div<std::int64_t>(blocks, clustered_blocks(multiprocessors, plan.cluster)));
  const auto in_turn = static_cast<double>(ceil_div<std::int64_t>(plan.bands.count(), shares));
  const auto sums = static_cast<double>(tile_bytes(plan.channels));
  const double others = sums * (plan.cluster - 1) / plan.cluster;
  const double exchanging = plan.cluster > 1 ? kMeetCycles + others / kExchangedBytes : 0;
  const double storing = (sums - others) / kStoredBytes;
  const double weights = static_cast<double>(conv.K) * (conv.C / conv.groups) * conv.R * conv.S;
  const double adding =
      plan.parts > 1 ? kAddCycles + 4 * weights * (plan.parts + 1) / kAddedBytes : 0;
  return waves * (in_turn * plan.band + exchanging + storing) + adding;
}

/// The plan with the fewest cycles.
/// @param copied TMA loads the boxes; else tiles have many channels
inline ClusterPlan cluster_plan(const Conv2dProblem& conv, bool copied) {
  constexpr int kMostWaves = 2;
  constexpr std::int64_t kDeclared = 1024;  // bytes of barriers, and more
  const int sms = multiprocessors();
  const std::int64_t room =
      static_cast<std::int64_t>(max_shared_bytes()) - kDeclared - gemm::kAtom - kBiasBytes;
  ClusterPlan best{};
  double least = 0;
  const auto consider = [&](int channels, const Bands& bands) {
    if (bands.stages < 2 || bands.count() > INT32_MAX) return;
    const double band = band_cycles(channels, bands);
    const std::int64_t tiles = TapTiles(conv, channels).count();
    const std::int64_t count = std::max<std::int64_t>(bands.count(), 1);
    const auto take = [&](int cluster, int parts) {
      const ClusterPlan plan = {channels, bands, band, cluster, parts};
      const double cycles = cycles_of(conv, plan, sms);
      if (best.parts > 0 && cycles >= least) return;
      best = plan;
      least = cycles;
    };
    for (int waves = 1; waves <= kMostWaves; ++waves)
      take(1, static_cast<int>(std::clamp<std::int64_t>(waves * sms / tiles, 1, count)));
    for (int cluster = 2; cluster <= std::min<std::int64_t>(kMaxTapCluster, count); cluster *= 2)
      take(cluster, 1);
  };
  for (const int channels : {kManyChannels, kFewChannels}) {
    if (channels == kFewChannels && !copied) continue;
    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}) {
      if (rows > conv.P) break;
      for (const int columns : {0, 16, 32, 64})
        consider(channels, bands_of(conv, channels, rows, columns, room));
    }
    constexpr int kMostImages = 4;
    for (int images = 2; channels == kFewChannels && images <= std::min(kMostImages, conv.N);
         ++images)
      consider(channels, bands_of(conv, channels, conv.P, 0, room, images));
  }
  return best;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
