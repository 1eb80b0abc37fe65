/// @file split_model.cuh
/// @brief Into how many parts the accumulators of a tile are cut: a small model of the time that
/// blocks take; cuda_optimized/conv2d/implicit_gemm/split_k.cu explains it.
#pragma once

#include <functional>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kMostSplits = 32;  ///< Parts of a sum, at most.

/// What the model needs to know of a GPU, and of a tile on it: numbers fitted to an H200. Another
/// GPU has others, but the choice depends on their ratios only.
struct Model {
  static constexpr double kSmFlops = 65e12 / 132;  ///< an SM, multiply-adds alone
  static constexpr double kBytes = 3.5e12;         ///< a second, written or read, through the L2
  static constexpr double kLaunch = 3e-6;          ///< of the second kernel
  static constexpr double kAlone = 1.35;  ///< how much longer a block takes that fills half an SM
};

/// What there is to compute with tiles of one size.
struct SplitWork {
  std::int64_t tiles;                ///< that have products to add up
  std::int64_t sums;                 ///< floats of a part of all sums
  int fewest, most;                  ///< parts
  std::function<double(int)> steps;  ///< of a block, where a tile is cut into so many parts
};

/// Seconds that it takes with blocks of T, each with 1 / splits of its tile's steps.
template <class T>
double estimated_seconds(const SplitWork& work, int splits, double efficiency, int sms) {
  if (work.tiles == 0) return splits;
  const double block = 2.0 * T::kBlockM * T::kBlockN * T::kBlockK * work.steps(splits) /
                       (Model::kSmFlops * efficiency);
  const std::int64_t busiest = ceil_div<std::int64_t>(work.tiles * splits, sms);  // of one SM
  // Blocks of an SM hide each other's stalls. The last ones may be too few to hide each other's
  // waiting.
  const std::int64_t last = busiest % T::kBlocks;
  double seconds = static_cast<double>(busiest) * block;
  if (last > 0 && last * T::kThreads <= 256) {
    seconds += static_cast<double>(last) * block * (Model::kAlone - 1.0);
  }
  if (splits > 1) {
    const double bytes = static_cast<double>(work.sums) * sizeof(float);
    seconds += (2.0 * splits + 1.0) * bytes / Model::kBytes + Model::kLaunch;
  }
  return seconds;
}

/// Calls body(TileTag<T>, splits) for the tile and the number of parts that the model thinks best.
/// @param work_of a function of TileTag<T> that returns a SplitWork
template <class WorkOf, class Body>
auto with_best_split(const WorkOf& work_of, const Body& body) {
  const int sms = multiprocessors();
  double best = 1e300;
  int best_tile = 0, best_splits = 1, tile = 0;
  const auto consider = [&]<class T>(TileTag<T> tag, double efficiency) {
    const SplitWork work = work_of(tag);
    for (int splits = work.fewest; splits <= work.most; ++splits) {
      const double seconds = estimated_seconds<T>(work, splits, efficiency, sms);
      if (seconds < best) {
        best = seconds;
        best_tile = tile;
        best_splits = splits;
      }
    }
    ++tile;
  };
  consider(TileTag<Tile128>{}, 0.73);
  consider(TileTag<Tile64>{}, 0.69);
  consider(TileTag<Tile32>{}, 0.50);
  consider(TileTag<TileSmall>{}, 0.30);
  switch (best_tile) {
    case 0: return body(TileTag<Tile128>{}, best_splits);
    case 1: return body(TileTag<Tile64>{}, best_splits);
    case 2: return body(TileTag<Tile32>{}, best_splits);
    default: return body(TileTag<TileSmall>{}, best_splits);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
