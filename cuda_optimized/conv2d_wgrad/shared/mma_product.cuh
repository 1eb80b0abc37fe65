/// @file mma_product.cuh
/// @brief The GEMM of the weight gradient on tensor cores: its tiles, the even shares of their
/// steps that blocks compute (implicit_gemm/mma_tf32.cu explains them), and the second kernel,
/// which adds the parts of each tile in a fixed order.
#pragma once

#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kMmaStep = 32;      ///< Pixels that a block multiplies between two barriers.
inline constexpr int kMmaStages = 3;     ///< Steps in shared memory: one in use, others in flight.
inline constexpr int kMmaThreads = 128;  ///< Of a block: four warps.

/// The sizes of a kernel: a block's tile of dw and a warp's, filters x taps and channels.
struct MmaShape {
  int M, N;             ///< of a block's tile
  int warp_m, warp_n;   ///< of a warp's
  int blocks;           ///< that an SM must hold
  int step = kMmaStep;  ///< pixels between two barriers

  HOST_DEVICE constexpr int pitch_a() const { return M + 8; }  ///< floats from row to row:
  HOST_DEVICE constexpr int pitch_b() const { return N + 4; }  ///< see load_run()
  /// Floats of a stage's tile of dy.
  HOST_DEVICE constexpr int floats_a() const { return kMmaStep * pitch_a(); }
  /// Floats of a stage.
  HOST_DEVICE constexpr int floats() const { return floats_a() + kMmaStep * pitch_b(); }
  /// Threads that share a filter of db.
  HOST_DEVICE constexpr int bias_shares() const { return kMmaThreads / M; }
  /// Floats of a part: dw and db.
  HOST_DEVICE constexpr int part() const { return M * N + M; }
};

/// The fewest loads for each product.
inline constexpr MmaShape kLargeMma{.M = 128, .N = 128, .warp_m = 64, .warp_n = 64, .blocks = 2};
/// For at most 64 filters.
inline constexpr MmaShape kWideMma{.M = 64, .N = 192, .warp_m = 64, .warp_n = 48, .blocks = 2};
/// For few taps and channels.
inline constexpr MmaShape kTallMma{.M = 128, .N = 64, .warp_m = 64, .warp_n = 32, .blocks = 2};
/// For both.
inline constexpr MmaShape kSmallMma{.M = 64, .N = 64, .warp_m = 32, .warp_n = 32, .blocks = 3};
/// For at most 16 filters.
inline constexpr MmaShape kThinMma{.M = 16, .N = 128, .warp_m = 16, .warp_n = 32, .blocks = 3};

/// The same as types: host code of nvcc 13.0 has no kernels whose template arguments are values of
/// a class.
struct LargeMma {
  static constexpr MmaShape kShape = kLargeMma;  ///< see there
};
struct WideMma {
  static constexpr MmaShape kShape = kWideMma;  ///< see there
};
struct TallMma {
  static constexpr MmaShape kShape = kTallMma;  ///< see there
};
struct SmallMma {
  static constexpr MmaShape kShape = kSmallMma;  ///< see there
};
struct ThinMma {
  static constexpr MmaShape kShape = kThinMma;  ///< see there
};

/// What a kernel needs to know.
struct MmaProduct {
  Conv2dProblem conv;                             ///< The convolution whose weight gradient it is.
  int pixels;                                     ///< N * P * Q: the length of the sums.
  int filters, columns;                           ///< K/G; R * S * C/G
  int tiles_n, tiles;                             ///< Across a group's dw; of all groups.
  int steps;                                      ///< Of a sum.
  int blocks;                                     ///< They share the tiles' steps evenly,
  int share, rest;                                ///< and get so many, and the rest.
  FastDivision by_channels, by_taps_across;       ///< By C/G, by S.
  FastDivision by_columns, by_rows;               ///< By Q, by P.
  FastDivision by_dilation_h, by_dilation_w;      ///< For the bits of taps.
  FastDivision by_steps, by_tiles_n, by_tiles_m;  ///< For a step's place among all.

  /// The first step of a block, all tiles' steps counted through: block * all steps / blocks.
  HOST_DEVICE int begin_of(int block) const { return block * share + block * rest / blocks; }
  /// The block that has this step.
  HOST_DEVICE int block_with(int step) const {
    return static_cast<int>((std::int64_t{step} * blocks + blocks - 1) /
                            (std::int64_t{tiles} * steps));
  }
};

/// Where a tile lies in dw.
struct DwTile {
  int group, m, n;  ///< Its group, first filter in there and first column.
};

/// The tile of that number, of all groups.
template <MmaShape S>
__device__ inline DwTile tile_at(const MmaProduct& product, int tile) {
  const int row = product.by_tiles_n.quotient(tile), group = product.by_tiles_m.quotient(row);
  return {group, product.by_tiles_m.remainder(row, group) * S.M,
          product.by_tiles_n.remainder(tile, row) * S.N};
}

/// The length of a sum.
inline std::int64_t pixels_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.P * conv.Q;
}
/// Weights of a filter.
inline std::int64_t filter_size_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.R} * conv.S * (conv.C / conv.groups);
}

inline constexpr int kLeastSteps = 4;  ///< Of a block, where there are so many.

/// The product in tiles of this shape, and how many blocks share it: as many as the GPU holds; or
/// fewer, if nearly as many are a multiple of the tiles, so that no block has two tiles.
inline MmaProduct product_with(const Conv2dProblem& conv, const MmaShape& shape) {
  MmaProduct product;
  product.conv = conv;
  product.pixels = static_cast<int>(pixels_of(conv));
  product.filters = conv.K / conv.groups;
  product.columns = static_cast<int>(filter_size_of(conv));
  product.by_channels = FastDivision(conv.C / conv.groups);
  product.by_taps_across = FastDivision(conv.S);
  product.by_columns = FastDivision(conv.Q);
  product.by_rows = FastDivision(conv.P);
  product.by_dilation_h = FastDivision(conv.dilation.h);
  product.by_dilation_w = FastDivision(conv.dilation.w);
  const int tiles_m = ceil_div(product.filters, shape.M);
  product.tiles_n = ceil_div(product.columns, shape.N);
  product.tiles = tiles_m * product.tiles_n * conv.groups;
  product.steps = ceil_div(product.pixels, shape.step);
  product.by_steps = FastDivision(std::max(1, product.steps));
  product.by_tiles_n = FastDivision(product.tiles_n);
  product.by_tiles_m = FastDivision(tiles_m);
  const int all_steps = product.tiles * product.steps;
  const int resident = shape.blocks * multiprocessors();
  const int blocks = std::min(resident, ceil_div(all_steps, kLeastSteps));
  const int whole = blocks / product.tiles * product.tiles;
  product.blocks = whole >= blocks - blocks / 16 ? whole : blocks;
  product.share = all_steps / std::max(1, product.blocks);
  product.rest = all_steps % std::max(1, product.blocks);
  return product;
}

inline constexpr int kMaxPixels =
    2147483647 - 1024;  ///< So that pixels beyond the last have numbers.

/// Why ints cannot count the product's steps, if so.
inline Declined too_many_steps(const Conv2dProblem& conv) {
  if (pixels_of(conv) > kMaxPixels || filter_size_of(conv) > kMaxPixels ||
      std::int64_t{conv.H} * conv.W * conv.C > kMaxPixels) {
    return "2^31 outputs of a channel, weights of a filter or inputs of an image, and more";
  }
  // Of the smallest tiles that a problem may get.
  const std::int64_t tiles = ceil_div<std::int64_t>(conv.K / conv.groups, kThinMma.M) *
                             ceil_div<std::int64_t>(filter_size_of(conv), kSmallMma.N) *
                             conv.groups;
  if (ceil_div<std::int64_t>(pixels_of(conv), kMmaStep) > kMaxPixels / tiles) {
    return "2^31 steps of all tiles, and more";
  }
  return {};
}

inline constexpr int kAddThreads = 256;  ///< Of a block that adds parts.
inline constexpr std::int64_t kMaxAddBlocks = 1
                                              << 20;  ///< Where there are more tiles, blocks go on.
inline constexpr int kManyParts = 16;  ///< From so many on, threads share the parts of a weight.

/// Adds the parts of each tile, always in the same order. kAddThreads / kShares neighbouring
/// threads take four weights each, or four filters' sums for db; thread (i, y) takes the tile's
/// parts y, y + kShares ... of them. Grid <= kMaxAddBlocks, block (kAddThreads / kShares, kShares).
template <class Shape, int kShares>
static __global__ void __launch_bounds__(kAddThreads)
    conv2d_wgrad_add_mma_parts(MmaProduct product, const float* parts, float* dw, float* db) {
  constexpr MmaShape S = Shape::kShape;
  constexpr int kFours = kAddThreads / kShares;            // of a block
  constexpr int kChunks = ceil_div(S.part() / 4, kFours);  // blocks of a tile
  __shared__ float4 of_share[kShares][kFours];
  const int thread = static_cast<int>(threadIdx.x), share = static_cast<int>(threadIdx.y);
  for (std::int64_t work = blockIdx.x; work < std::int64_t{product.tiles} * kChunks;
       work += gridDim.x) {
    const int tile_number = static_cast<int>(work / kChunks);
    const DwTile tile = tile_at<S>(product, tile_number);
    const int four = static_cast<int>(work % kChunks) * kFours + thread;
    const bool exists = four < (tile.n == 0 ? S.part() : S.M * S.N) / 4;
    float4 sum{};
    if (exists && product.steps > 0) {
      const int first_step = tile_number * product.steps;
      const int begin = product.block_with(first_step) + tile_number;
      const int end = product.block_with(first_step + product.steps - 1) + tile_number + 1;
      for (int part = begin + share; part < end; part += 4 * kShares) {
        float4 more[4];  // loaded before the first is added, also where there are fewer
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int other = part + j * kShares;
          const float* const from = parts + std::int64_t{other} * S.part() + four * 4;
          more[j] = other < end ? *reinterpret_cast<const float4*>(from) : float4{};
        }
        for (const float4& value : more) {
          sum = {sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w};
        }
      }
    }
    if constexpr (kShares > 1) {
      of_share[share][thread] = sum;
      __syncthreads();  // separates these stores from the loads below
      if (share == 0) {
        for (int other = 1; other < kShares; ++other) {
          const float4 more = of_share[other][thread];
          sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
        }
      }
      __syncthreads();  // separates these loads from the next weights' stores
    }
    if (share != 0 || !exists) continue;
    const bool is_weight = four < S.M * S.N / 4;
    const int m = is_weight ? four / (S.N / 4) : (four - S.M * S.N / 4) * 4;
    const int n = four % (S.N / 4) * 4;
    // A weight's neighbours are columns, a bias' neighbours are filters.
    const int left = is_weight ? product.columns - tile.n - n : product.filters - tile.m - m;
    if (tile.m + m >= product.filters) continue;
    const std::int64_t filter = std::int64_t{tile.group} * product.filters + tile.m + m;
    float* const to = is_weight ? dw + filter * product.columns + tile.n + n : db + filter;
    if (left >= 4 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      *reinterpret_cast<float4*>(to) = sum;
    } else {
      const float values[] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < left) to[i] = values[i];
      }
    }
  }
}

/// Whether there are so many parts that threads share them.
inline bool has_many_parts(const MmaProduct& product) {
  return product.blocks / kManyParts >= product.tiles;
}

/// Adds up the parts, [blocks + tiles - 1][S.part()].
template <class Shape>
void launch_add_mma_parts(const MmaProduct& product, const float* parts, float* dw, float* db) {
  constexpr MmaShape S = Shape::kShape;
  const bool many = has_many_parts(product);
  const int shares = many ? 8 : 1;
  launch(many ? conv2d_wgrad_add_mma_parts<Shape, 8> : conv2d_wgrad_add_mma_parts<Shape, 1>,
         {blocks_for(std::int64_t{product.tiles} * ceil_div(S.part() / 4, kAddThreads / shares), 1,
                     kMaxAddBlocks),
          dim3(static_cast<unsigned>(kAddThreads / shares), static_cast<unsigned>(shares))},
         product, parts, dw, db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
