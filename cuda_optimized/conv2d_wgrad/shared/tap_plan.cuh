/// @file tap_plan.cuh
/// @brief Which tiles and bands hopper/halo_tile.cu takes, and in how many parts the
/// sums are computed.
#pragma once

#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_bands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// What is chosen. A block computes a tile of one part.
struct TapPlan {
  int channels;  ///< of a tile
  Bands bands;   ///< fewer than two stages: none fit
  int splits;    ///< parts of each sum
};

/// Cycles for which a plan is expected to keep the GPU, seen on an H100.
inline double cycles_of(const Conv2dProblem& conv, const TapPlan& plan, int multiprocessors) {
  const bool many = plan.channels == kManyChannels;
  const double step = many ? 300 : 155, store = many ? 9000 : 4500;
  constexpr double kBandCycles = 200, kAddCycles = 5000;
  constexpr double kLoadedBytes = 22, kAddedBytes = 2400;  // a cycle: of an SM, and of all
  const Bands& bands = plan.bands;
  const double bands_of_image = static_cast<double>(bands.down) * bands.across;
  const double computing = static_cast<double>(bands.steps_of_image()) / bands_of_image * step;
  const double loading = bands.bytes / kLoadedBytes;
  // With two stages, a load waits for the products of the band before.
  const double band =
      kBandCycles + (bands.stages > 2 ? std::max(computing, loading) : computing + loading / 2);
  const std::int64_t blocks = TapTiles(conv, plan.channels).count() * plan.splits;
  const auto waves = static_cast<double>(ceil_div<std::int64_t>(blocks, multiprocessors));
  const auto in_turn = static_cast<double>(ceil_div<std::int64_t>(bands.count(), plan.splits));
  const double weights = static_cast<double>(conv.K) * (conv.C / conv.groups) * conv.R * conv.S;
  const double adding =
      plan.splits > 1 ? kAddCycles + 4 * weights * (plan.splits + 1) / kAddedBytes : 0;
  return waves * (in_turn * band + store) + adding;
}

/// The plan with the fewest cycles.
/// @param copied TMA loads the boxes; else tiles have many channels
inline TapPlan tap_plan(const Conv2dProblem& conv, bool copied) {
  constexpr int kMostWaves = 2;
  constexpr std::int64_t kDeclared = 1024;  // bytes of barriers, and more
  const int sms = multiprocessors();
  const std::int64_t room =
      static_cast<std::int64_t>(max_shared_bytes()) - kDeclared - gemm::kAtom - kOnesBytes;
  TapPlan best{};
  double least = 0;
  for (const int channels : {kManyChannels, kFewChannels}) {
    if (channels == kFewChannels && !copied) continue;
    const std::int64_t tiles = TapTiles(conv, channels).count();
    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}) {
      if (rows > conv.P) break;
      for (const int columns : {0, 16, 32, 64}) {
        const Bands bands = bands_of(conv, channels, rows, columns, room);
        if (bands.stages < 2 || bands.count() > INT32_MAX) continue;
        for (int waves = 1; waves <= kMostWaves; ++waves) {
          const TapPlan plan = {
              channels, bands,
              static_cast<int>(std::clamp<std::int64_t>(std::int64_t{waves} * sms / tiles, 1,
                                                        std::max<std::int64_t>(bands.count(), 1)))};
          const double cycles = cycles_of(conv, plan, sms);
          if (best.splits > 0 && cycles >= least) continue;
          best = plan;
          least = cycles;
        }
      }
    }
  }
  return best;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
