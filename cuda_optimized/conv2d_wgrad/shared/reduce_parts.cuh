/// @file reduce_parts.cuh
/// @brief Split-K parts of a weight gradient: their layout, and the second kernel, which adds them
/// up in a fixed order; implicit_gemm/split_k.cu explains it.
#pragma once

#include <algorithm>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/split_k.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

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
inline Sums sums_of(const SplitProduct& product, const Conv2dWgradArrays& arrays,
                    const Context& context) {
  if (product.splits == 1) return {arrays.dw, arrays.db};
  float* parts = context.workspace_as<float>();
  return {parts, parts + product.splits * product.weights()};
}

inline constexpr int kManyParts = 16;  ///< From so many on, threads share the parts of a weight.

/// Whether there are so many parts that threads share them.
inline bool has_many_parts(const SplitProduct& product) { return product.splits >= kManyParts; }

/// For a rung's choice: "one part", "several parts", "many parts".
inline std::string parts_in_words(const SplitProduct& product) {
  return has_many_parts(product) ? "many parts" : how_many(product.splits, "part");
}

inline constexpr int kReducingThreads = 256;  ///< Of a block that adds up parts.

/// dw = sum of its parts, and db likewise, each always in the same order. A block adds up kThreads
/// / kShares neighbouring weights; thread (i, y) takes parts y, y + kShares ... of weight i. Any
/// one-dimensional grid, block (kReducingThreads / kShares, kShares).
template <int kShares>
static __global__ void __launch_bounds__(kReducingThreads)
    conv2d_wgrad_add_parts(SplitProduct product, Sums parts, float* dw, float* db) {
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

inline constexpr int kTurnedWeights =
    1024;  ///< That a block of conv2d_wgrad_add_turned_parts() turns at a time.

/// The same for parts whose columns are in the order [r][s][c]; dw has [c][r][s]. A block takes
/// some neighbouring channels of a filter, all taps of them: it reads neighbouring channels, tap by
/// tap, and writes what belongs together in dw. In dw's order the lanes of a warp would read from
/// different sectors, and the parts are most of the traffic. Any one-dimensional grid, block
/// (kReducingThreads / kShares, kShares).
/// @param channels of a block, with all their taps at most kTurnedWeights weights
template <int kShares>
static __global__ void __launch_bounds__(kReducingThreads)
    conv2d_wgrad_add_turned_parts(SplitProduct product, Sums parts, int channels, float* dw,
                                  float* db) {
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
                                    const Conv2dWgradArrays& arrays) {
  if (product.splits == 1) return;
  // Few parts: a thread adds up all parts of a weight. Many: eight threads share them, otherwise
  // too few loads would be in flight (a dw that has many parts is small).
  const bool many = has_many_parts(product);
  const int shares = many ? 8 : 1, across = kReducingThreads / shares;
  const dim3 block(static_cast<unsigned>(across), static_cast<unsigned>(shares));
  float* const dw = arrays.dw;
  float* const db = arrays.db;
  const int taps = product.conv.R * product.conv.S;
  if (!turned || taps == 1) {
    launch(many ? conv2d_wgrad_add_parts<8> : conv2d_wgrad_add_parts<1>,
           {blocks_for(product.weights() + product.conv.K, across, kMaxGridYZ), block}, product,
           parts, dw, db);
    return;
  }
  // Eight channels are a sector of 32 bytes.
  const int channels = std::clamp(kTurnedWeights / taps, 1, many ? 8 : 64);
  const std::int64_t chunks = ceil_div(product.group_c, channels);
  launch(many ? conv2d_wgrad_add_turned_parts<8> : conv2d_wgrad_add_turned_parts<1>,
         {blocks_for(product.conv.K * chunks, 1, kMaxGridYZ), block}, product, parts, channels, dw,
         db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
