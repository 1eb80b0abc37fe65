/// @file tap_plan.cuh
/// @brief Which tiles, bands and parts of the sums hopper/halo_tile.cu and
/// hopper/cluster_reduction.cu choose: those with the fewest cycles by a model that was fitted to
/// an H100 and an H200.
#pragma once

#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_bands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kMaxTapCluster = 4;  ///< Blocks of a cluster; of 8, few run at a time.
inline constexpr int kBiasWarps = 3;      ///< That add up dy.
/// Of db's parts, before the stages: each block of a cluster sends one from each of these warps.
inline constexpr int kBiasBytes = kMaxTapCluster * kBiasWarps * kTapFilters * 4;

/// Bytes of all sums of a tile of dw.
HOST_DEVICE constexpr std::int64_t tile_bytes(int channels) {
  return std::int64_t{4} * kTapFilters * kTapAxis * kTapAxis * channels;
}

/// Cycles that a band is expected to take. @param step_cycles of kTapDepth pixels
inline double band_cycles(const Bands& bands, double step_cycles) {
  constexpr double kBandCycles = 200, kLoadedBytes = 22;  // per cycle, from L2 to an SM
  const double bands_of_image = static_cast<double>(bands.down) * bands.across;
  const double computing =
      static_cast<double>(bands.steps_of_image()) / bands_of_image * step_cycles;
  const double loading = bands.bytes / kLoadedBytes;
  // With two stages, a load waits for the products of the band before.
  return kBandCycles + (bands.stages > 2 ? std::max(computing, loading) : computing + loading / 2);
}

/// Cycles to add up so many parts of dw.
inline double adding_cycles(const Conv2dProblem& conv, int parts) {
  constexpr double kAddCycles = 5000, kAddedBytes = 2400;  // per cycle, of all SMs
  const double weights = static_cast<double>(conv.K) * (conv.C / conv.groups) * conv.R * conv.S;
  return parts > 1 ? kAddCycles + 4 * weights * (parts + 1) / kAddedBytes : 0;
}

/// Calls consider(channels, bands) for all bands of an image that fit into shared memory beside
/// `reserved` bytes. @param by_tma TMA loads the boxes; else tiles have many channels
/// @param most_images of a band, where tiles have few channels
template <class Consider>
void for_each_bands(const Conv2dProblem& conv, bool by_tma, int reserved, int most_images,
                    const Consider& consider) {
  constexpr std::int64_t kDeclared = 1024;  // bytes of barriers, and more
  const std::int64_t room =
      static_cast<std::int64_t>(max_shared_bytes()) - kDeclared - gemm::kAtom - reserved;
  const auto fitting = [&](int channels, int rows, int columns, int images) {
    const Bands bands = bands_of(conv, channels, rows, columns, room, images);
    if (bands.stages >= 2 && bands.count() <= INT32_MAX) consider(channels, bands);
  };
  for (const int channels : {kManyChannels, kFewChannels}) {
    if (channels == kFewChannels && !by_tma) continue;
    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}) {
      if (rows > conv.P) break;
      for (const int columns : {0, 16, 32, 64}) fitting(channels, rows, columns, 1);
    }
    for (int images = 2; channels == kFewChannels && images <= std::min(most_images, conv.N);
         ++images)
      fitting(channels, conv.P, 0, images);
  }
}

/// How hopper/halo_tile.cu computes a gradient. A block computes a tile of one part.
struct TapPlan {
  int channels;  ///< of a tile
  Bands bands;   ///< fewer than two stages: none fit
  int splits;    ///< parts of each sum
};

/// Cycles for which a plan is expected to keep the GPU.
inline double cycles_of(const Conv2dProblem& conv, const TapPlan& plan, int multiprocessors) {
  const bool many = plan.channels == kManyChannels;
  const double band = band_cycles(plan.bands, many ? 300 : 155), store = many ? 9000 : 4500;
  const std::int64_t blocks = TapTiles(conv, plan.channels).count() * plan.splits;
  const auto waves = static_cast<double>(ceil_div<std::int64_t>(blocks, multiprocessors));
  const auto in_turn = static_cast<double>(ceil_div<std::int64_t>(plan.bands.count(), plan.splits));
  return waves * (in_turn * band + store) + adding_cycles(conv, plan.splits);
}

inline constexpr int kMostTapWaves = 2;  ///< Of blocks.

/// The plan with the fewest cycles. @param by_tma as of for_each_bands()
inline TapPlan tap_plan(const Conv2dProblem& conv, bool by_tma) {
  const int sms = multiprocessors();
  TapPlan best{};
  double least = 0;
  for_each_bands(conv, by_tma, kOnesBytes, 1, [&](int channels, const Bands& bands) {
    const std::int64_t tiles = TapTiles(conv, channels).count();
    const std::int64_t count = std::max<std::int64_t>(bands.count(), 1);
    for (int waves = 1; waves <= kMostTapWaves; ++waves) {
      const TapPlan plan = {
          channels, bands,
          static_cast<int>(std::clamp<std::int64_t>(std::int64_t{waves} * sms / tiles, 1, count))};
      const double cycles = cycles_of(conv, plan, sms);
      if (best.splits > 0 && cycles >= least) continue;
      best = plan;
      least = cycles;
    }
  });
  return best;
}

/// How hopper/cluster_reduction.cu does. A block computes a tile of one of cluster * parts parts:
/// where one cluster is not enough for all of them, several cost what they save.
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

/// Cycles for which a plan is expected to keep the GPU.
inline double cycles_of(const Conv2dProblem& conv, const ClusterPlan& plan, int multiprocessors) {
  constexpr double kMeetCycles = 1500;
  constexpr double kExchangedBytes = 16, kStoredBytes = 16;  // per cycle: between SMs, and to L2
  const int shares = plan.cluster * plan.parts;
  const std::int64_t blocks = TapTiles(conv, plan.channels).count() * shares;
  const auto waves = static_cast<double>(
      ceil_div<std::int64_t>(blocks, clustered_blocks(multiprocessors, plan.cluster)));
  const auto in_turn = static_cast<double>(ceil_div<std::int64_t>(plan.bands.count(), shares));
  const auto sums = static_cast<double>(tile_bytes(plan.channels));
  const double others = sums * (plan.cluster - 1) / plan.cluster;
  const double exchanging = plan.cluster > 1 ? kMeetCycles + others / kExchangedBytes : 0;
  const double storing = (sums - others) / kStoredBytes;
  return waves * (in_turn * plan.band + exchanging + storing) + adding_cycles(conv, plan.parts);
}

/// The plan with the fewest cycles. @param by_tma as of for_each_bands()
inline ClusterPlan cluster_plan(const Conv2dProblem& conv, bool by_tma) {
  constexpr int kMostImages = 4;
  const int sms = multiprocessors();
  ClusterPlan best{};
  double least = 0;
  for_each_bands(conv, by_tma, kBiasBytes, kMostImages, [&](int channels, const Bands& bands) {
    const double band = band_cycles(bands, channels == kManyChannels ? 300 : 180);
    const std::int64_t tiles = TapTiles(conv, channels).count();
    const std::int64_t count = std::max<std::int64_t>(bands.count(), 1);
    const auto take = [&](int cluster, int parts) {
      const ClusterPlan plan = {channels, bands, band, cluster, parts};
      const double cycles = cycles_of(conv, plan, sms);
      if (best.parts > 0 && cycles >= least) return;
      best = plan;
      least = cycles;
    };
    for (int waves = 1; waves <= kMostTapWaves; ++waves)
      take(1, static_cast<int>(std::clamp<std::int64_t>(waves * sms / tiles, 1, count)));
    for (int cluster = 2; cluster <= std::min<std::int64_t>(kMaxTapCluster, count); cluster *= 2)
      take(cluster, 1);
  });
  return best;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
