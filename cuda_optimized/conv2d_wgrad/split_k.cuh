/// @file split_k.cuh
/// @brief The long sums of a weight gradient, cut into parts: how many, and how they are added up;
/// implicit_gemm_split_k.cu explains it.
#pragma once

#include <algorithm>
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/rung.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// A tile of dw that a block computes, and what the choice among several needs to know of it.
struct TileShape {
  int filters, columns;  ///< Rows and columns of the tile; a thread has 8 x 8 of them.
  int resident;          ///< Blocks that an SM holds.
  double teraflops;      ///< What it reaches on an H200 where nothing but the products counts.

  /// Threads of the block that computes the tile.
  constexpr int threads() const { return filters * columns / 64; }
};

/// The product dw = dy * col^T of each group, and how it is handed out to blocks.
struct SplitProduct {
  Conv2dProblem conv;            ///< The convolution whose weight gradient it is.
  int group_k = 0, group_c = 0;  ///< Filters and channels of a group.
  int columns = 0;               ///< C/G * R * S
  int pixels = 0;                ///< N * P * Q: the length of each sum.
  int tiles_m = 0, tiles_n = 0;  ///< Tiles of a group's dw.
  int split_pixels = 0;  ///< Summed up by one block, a multiple of the step; the last has the rest.
  int splits = 1;        ///< Blocks that share a tile.
  FastDivision plane, row;  ///< Division of a pixel's number by P * Q, of its place by Q.

  /// Weights, all groups together.
  HOST_DEVICE constexpr std::int64_t weights() const { return std::int64_t{conv.K} * columns; }
};

/// Why a product has extents that ints do not hold.
inline Declined too_large_for_ints(const Conv2dProblem& conv) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  if (plane > kMax / std::max(1, conv.N) - 64) return "2^31 or more pixels (n * p * q) to sum over";
  if (std::int64_t{conv.C} / conv.groups * conv.H * conv.W > kMax) {
    return "2^31 or more inputs an image and group (c/groups * h * w)";
  }
  if (std::int64_t{conv.C} / conv.groups * conv.R * conv.S > kMax - 1024) {
    return "2^31 or more columns (c/groups * r * s)";
  }
  return {};
}

/// An H200, for estimates. The number of parts shall depend on the problem alone, not on the GPU:
/// then so do the bits of dw.
constexpr int kSms = 132;
constexpr double kPartBytes = 4e6;            ///< Of parts moved in a microsecond.
constexpr double kReductionMicroseconds = 3;  ///< A launch, and the latency of its loads.
constexpr int kStartSteps = 6;                ///< What a block's first loads and last stores take.
constexpr int kMaxSplits = 1024;              ///< Parts of a sum, at most.

/// The product in parts of `shape`, and an estimate of its time in microseconds.
struct Plan {
  SplitProduct product;  ///< With its splits and split_pixels.
  double microseconds;   ///< The estimate, adding up the parts included.
};

/// As many parts as take the least time: with few, SMs are idle in the last wave of blocks (or in
/// the only one); with many, the parts' traffic and the blocks' beginnings cost more than that.
/// @param step pixels that a block multiplies at a time
inline Plan plan_for(const Conv2dProblem& conv, TileShape shape, int step, int most_splits) {
  SplitProduct product;
  product.conv = conv;
  product.group_k = conv.K / conv.groups;
  product.group_c = conv.C / conv.groups;
  product.columns = product.group_c * conv.R * conv.S;
  product.pixels = conv.N * conv.P * conv.Q;
  product.tiles_m = ceil_div(product.group_k, shape.filters);
  product.tiles_n = ceil_div(product.columns, shape.columns);
  product.plane = FastDivision(conv.P * conv.Q);
  product.row = FastDivision(conv.Q);
  const std::int64_t tiles = std::int64_t{product.tiles_m} * product.tiles_n * conv.groups;
  const int steps = std::max(1, ceil_div(product.pixels, step));
  // Of all blocks that an SM holds, in microseconds.
  const double step_time =
      2.0 * shape.filters * shape.columns * step * shape.resident / (shape.teraflops * 1e6 / kSms);
  const auto part_bytes = 2.0 * static_cast<double>(product.weights()) * sizeof(float);

  Plan best{product, std::numeric_limits<double>::infinity()};
  for (int splits = 1; splits <= std::min(most_splits, steps); ++splits) {
    const int split_steps = ceil_div(steps, splits);
    if (ceil_div(steps, split_steps) != splits) continue;  // some part would be empty
    const auto waves =
        static_cast<double>(ceil_div(tiles * splits, std::int64_t{kSms} * shape.resident));
    double time = waves * (split_steps + kStartSteps) * step_time;
    if (splits > 1) {
      time += kReductionMicroseconds + splits * part_bytes / kPartBytes;
    }
    if (time < best.microseconds) {
      best.microseconds = time;
      best.product.splits = splits;
      best.product.split_pixels = split_steps * step;
    }
  }
  return best;
}

/// Floats of all parts: [splits][weights], then [splits][K] for db.
inline std::size_t part_bytes(const SplitProduct& product) {
  if (product.splits == 1) return 0;
  return static_cast<std::size_t>(checked_product(
      {product.splits, product.weights() + product.conv.K, sizeof(float)}, "bytes of parts"));
}

/// Where a kernel leaves its sums: parts, or the results themselves if there is only one part.
struct Sums {
  float* dw;  ///< [splits][K][columns]
  float* db;  ///< [splits][K]
};

/// dw and db if there is one part; otherwise the parts in the workspace, dw's before db's.
inline Sums sums_of(const SplitProduct& product, const Arguments& arrays) {
  if (product.splits == 1) return {arrays.out<float>("dw"), arrays.out<float>("db")};
  float* parts = arrays.workspace<float>();
  return {parts, parts + product.splits * product.weights()};
}

constexpr int kReducingThreads = 256;  ///< Of a block of add_parts.
constexpr int kManyParts = 16;         ///< From so many on, threads share the parts of a weight.

/// dw = sum of its parts, and db likewise, each always in the same order. A block adds up kThreads
/// / kShares neighbouring weights; thread (i, y) takes parts y, y + kShares ... of weight i. Any
/// one-dimensional grid, block (kReducingThreads / kShares, kShares).
/// @param channels_inside the parts' columns are in the order [r][s][c], not in dw's [c][r][s]
template <int kShares>
static __global__ void __launch_bounds__(kReducingThreads)
    add_parts(SplitProduct product, Sums parts, bool channels_inside, FastDivision by_taps,
              float* dw, float* db) {
  constexpr int kWeights = kReducingThreads / kShares;
  __shared__ float sums[kShares][kWeights];
  const int i = static_cast<int>(threadIdx.x), share = static_cast<int>(threadIdx.y);
  const std::int64_t weights = product.weights(), items = weights + product.conv.K;
  for (std::int64_t item0 = std::int64_t{blockIdx.x} * kWeights; item0 < items;
       item0 += std::int64_t{gridDim.x} * kWeights) {
    const std::int64_t item = item0 + i;
    const bool is_weight = item < weights;
    float sum = 0.0f;
    if (item < items) {
      const float* part = is_weight ? parts.dw + item : parts.db + (item - weights);
      const std::int64_t apart = is_weight ? weights : product.conv.K;
      if (is_weight && channels_inside) {
        const int filter = static_cast<int>(item / product.columns);
        const int column = static_cast<int>(item - std::int64_t{filter} * product.columns);
        const int c = by_taps.quotient(column), tap = by_taps.remainder(column, c);
        part += tap * product.group_c + c - column;
      }
#pragma unroll 4
      for (int split = share; split < product.splits; split += kShares) sum += part[split * apart];
    }
    if constexpr (kShares > 1) {
      sums[share][i] = sum;
      __syncthreads();  // between these writes and the reads below
      if (share == 0) {
        for (int other = 1; other < kShares; ++other) sum += sums[other][i];
      }
      __syncthreads();  // between these reads and the next weights' writes
    }
    if (share == 0 && item < items) *(is_weight ? dw + item : db + (item - weights)) = sum;
  }
}

/// Adds up the parts; nothing to do where there is one.
static inline void launch_add_parts(const SplitProduct& product, const Sums& parts,
                                    bool channels_inside, const Arguments& arrays) {
  if (product.splits == 1) return;
  // Few parts: a thread adds up all of a weight's. Many: eight threads do, else there were too few
  // loads under way (a dw that has many parts is small).
  const int shares = product.splits < kManyParts ? 1 : 8;
  const int block_weights = kReducingThreads / shares;
  launch(shares == 1 ? add_parts<1> : add_parts<8>,
         {blocks_for(product.weights() + product.conv.K, block_weights, kMaxGridYZ),
          dim3(static_cast<unsigned>(block_weights), static_cast<unsigned>(shares))},
         product, parts, channels_inside, FastDivision(product.conv.R * product.conv.S),
         arrays.out<float>("dw"), arrays.out<float>("db"));
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
