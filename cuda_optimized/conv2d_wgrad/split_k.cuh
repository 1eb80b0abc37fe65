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

/// For a rung's choice.
inline std::string in_words(const TileShape& shape) {
  return text(shape.filters, " x ", shape.columns);
}

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

/// An H200, for estimates. The number of parts depends on the problem alone, not on the GPU: then
/// so do the bits of dw.
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

/// Even shares: all tiles' steps in a row, cut into as many equal pieces as there are blocks,
/// whether or not a tile ends there. Every block of an SM is busy to the end, however many tiles
/// there are.
///
///       tile 0               tile 1               tile 2
///     | . . . . . . . . . |  . . . . . . . . . |  . . . . . . . . . |
///       block 0         block 1       block 2         block 3
///
/// A tile has as many parts as blocks take part in it; SplitProduct::splits is the most that any
/// has.
struct EvenShares {
  int steps = 0;   ///< Of a tile.
  int blocks = 0;  ///< That share all of them.
  int across = 1;  ///< So many neighbouring blocks have the same part of different tiles' sums.
  std::int64_t all_steps = 0;  ///< Of all tiles.

  /// Which share a block gets: blocks that run at the same time should read the same pixels.
  HOST_DEVICE constexpr int share_of(int block) const {
    return block % across * (blocks / across) + block / across;
  }
  /// The first step of a share.
  HOST_DEVICE constexpr std::int64_t begin_of(int share) const {
    return share * all_steps / blocks;
  }
  /// The share that has this step.
  HOST_DEVICE constexpr int share_with(std::int64_t step) const {
    return static_cast<int>(((step + 1) * blocks - 1) / all_steps);
  }
};

/// A product in even shares.
struct EvenPlan {
  SplitProduct product;  ///< What is computed.
  EvenShares shares;     ///< Which block computes what of it.
  double microseconds;   ///< An estimate of its time.
};

/// As many shares as a multiple of the tiles, which makes the same parts as plan_for() does; or as
/// an H200 holds blocks: no wave is cut short then, but most blocks begin and end twice.
inline EvenPlan even_plan_for(const Conv2dProblem& conv, TileShape shape, int step,
                              int most_splits) {
  const Plan plan = plan_for(conv, shape, step, most_splits);
  EvenPlan even{plan.product, {}, plan.microseconds};
  SplitProduct& product = even.product;
  const std::int64_t tiles = std::int64_t{product.tiles_m} * product.tiles_n * conv.groups;
  const int steps = std::max(1, ceil_div(product.pixels, step));
  even.shares = {steps, static_cast<int>(tiles * product.splits), static_cast<int>(tiles),
                 tiles * steps};
  const int resident = kSms * shape.resident;
  const std::int64_t share = even.shares.all_steps / resident;
  if (share < kStartSteps || tiles > 4 * resident) return even;
  const double step_time =
      2.0 * shape.filters * shape.columns * step * shape.resident / (shape.teraflops * 1e6 / kSms);
  const auto part_bytes = 2.0 * static_cast<double>(product.weights()) * sizeof(float);
  const auto most_parts = static_cast<int>(ceil_div<std::int64_t>(steps - 1, share) + 1);
  const double time = static_cast<double>(share + 1 + 2 * kStartSteps) * step_time +
                      kReductionMicroseconds + most_parts * part_bytes / kPartBytes;
  if (most_parts <= most_splits && time < even.microseconds) {
    even.microseconds = time;
    even.shares.blocks = resident;
    even.shares.across = 1;
    product.splits = most_parts;
  }
  return even;
}

/// Bytes of all parts: floats [splits][weights], then [splits][K] for db.
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

constexpr int kReducingThreads = 256;  ///< Of a block that adds up parts.
constexpr int kManyParts = 16;         ///< From so many on, threads share the parts of a weight.

/// dw = sum of its parts, and db likewise, each always in the same order. A block adds up kThreads
/// / kShares neighbouring weights; thread (i, y) takes parts y, y + kShares ... of weight i. Any
/// one-dimensional grid, block (kReducingThreads / kShares, kShares).
template <int kShares>
static __global__ void __launch_bounds__(kReducingThreads)
    add_parts(SplitProduct product, Sums parts, float* dw, float* db) {
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

/// Whether there are so many parts that threads share them.
inline bool has_many_parts(const SplitProduct& product) { return product.splits >= kManyParts; }

/// For a rung's choice: "one part", "several parts", "many parts".
inline std::string parts_in_words(const SplitProduct& product) {
  return has_many_parts(product) ? "many parts" : how_many(product.splits, "part");
}

constexpr int kTurnedWeights = 1024;  ///< That a block of add_turned_parts() turns at a time.

/// The same for parts whose columns are in the order [r][s][c]; dw has [c][r][s]. A block takes
/// some neighbouring channels of a filter, all taps of them: it reads neighbouring channels, tap by
/// tap, and writes what belongs together in dw. In dw's order the lanes of a warp would read from
/// different sectors, and the parts are most of the traffic. Any one-dimensional grid, block
/// (kReducingThreads / kShares, kShares).
/// @param channels of a block, with all their taps at most kTurnedWeights weights
template <int kShares>
static __global__ void __launch_bounds__(kReducingThreads)
    add_turned_parts(SplitProduct product, Sums parts, int channels, float* dw, float* db) {
  __shared__ float sums[kShares][kTurnedWeights], bias_sums[kShares];
  const int thread = static_cast<int>(threadIdx.x), share = static_cast<int>(threadIdx.y);
  const int taps = product.columns / product.group_c;
  const int chunks = ceil_div(product.group_c, channels);
  const std::int64_t weights = product.weights();
  for (std::int64_t work = blockIdx.x; work < std::int64_t{product.conv.K} * chunks;
       work += gridDim.x) {
    const std::int64_t filter = work / chunks;
    const int c0 = static_cast<int>(work % chunks) * channels;
    const int count = min(channels, product.group_c - c0);
    const float* const from = parts.dw + filter * product.columns + c0;
    for (int i = thread; i < count * taps; i += kReducingThreads / kShares) {
      const int tap = i / count, c = i % count;
      const float* const part = from + tap * product.group_c + c;
      float sum = 0.0f;
      for (int split = share; split < product.splits; split += 4 * kShares) {
        float four[4];  // loaded before the first is added, also where there are fewer
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int other = split + j * kShares;
          four[j] = other < product.splits ? part[other * weights] : 0.0f;
        }
        for (const float value : four) sum += value;
      }
      sums[share][c * taps + tap] = sum;
    }
    if (c0 == 0 && thread == 0) {
      float sum = 0.0f;
#pragma unroll 4
      for (int split = share; split < product.splits; split += kShares) {
        sum += parts.db[std::int64_t{split} * product.conv.K + filter];
      }
      bias_sums[share] = sum;
    }
    __syncthreads();  // between these writes and the reads below
    float* const to = dw + filter * product.columns + std::int64_t{c0} * taps;
    for (int i = share * (kReducingThreads / kShares) + thread; i < count * taps;
         i += kReducingThreads) {
      float sum = sums[0][i];
#pragma unroll
      for (int row = 1; row < kShares; ++row) sum += sums[row][i];
      to[i] = sum;
    }
    if (c0 == 0 && thread == 0 && share == 0) {
      float sum = bias_sums[0];
      for (int row = 1; row < kShares; ++row) sum += bias_sums[row];
      db[filter] = sum;
    }
    __syncthreads();  // between these reads and the next weights' writes
  }
}

/// Adds up the parts; nothing to do where there is one.
/// @param turned the parts' columns are in the order [r][s][c], not in dw's [c][r][s]; a filter has
/// at most kTurnedWeights taps
static inline void launch_add_parts(const SplitProduct& product, const Sums& parts, bool turned,
                                    const Arguments& arrays) {
  if (product.splits == 1) return;
  // Few parts: a thread adds up all parts of a weight. Many: eight threads share them, otherwise
  // too few loads would be under way (a dw that has many parts is small).
  const bool many = has_many_parts(product);
  const int shares = many ? 8 : 1, across = kReducingThreads / shares;
  const dim3 block(static_cast<unsigned>(across), static_cast<unsigned>(shares));
  float* const dw = arrays.out<float>("dw");
  float* const db = arrays.out<float>("db");
  const int taps = product.conv.R * product.conv.S;
  if (!turned || taps == 1) {
    launch(many ? add_parts<8> : add_parts<1>,
           {blocks_for(product.weights() + product.conv.K, across, kMaxGridYZ), block}, product,
           parts, dw, db);
    return;
  }
  // Eight channels are a sector of 32 bytes.
  const int channels = std::clamp(kTurnedWeights / taps, 1, many ? 8 : 64);
  const std::int64_t chunks = ceil_div(product.group_c, channels);
  launch(many ? add_turned_parts<8> : add_turned_parts<1>,
         {blocks_for(product.conv.K * chunks, 1, kMaxGridYZ), block}, product, parts, channels, dw,
         db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
