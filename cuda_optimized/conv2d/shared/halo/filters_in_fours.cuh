/// @file filters_in_fours.cuh
/// @brief Operands and epilogue of hopper/halo_tile_tf32.cu: tiles of 128 filters of one tap, in an
/// order in which a lane's four accumulators of a pixel are neighbours; and stores from registers.
///
/// `wgmma` gives a lane the rows l and l + 8 of its warp's 16, l = lane / 4, and of two blocks of
/// 64 rows four in all. Which filters these are is up to who fills the rows:
///
///     filter, of the tile's 128      32 * warp + 4 * l + f
///     its block, and row in there    f / 2,   16 * warp + 8 * (f % 2) + l
///
/// So a warp stores 32 filters of a pixel at once, 128 bytes.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Weights [K][group_c] by TMA: 128 filters, by 32 words of channels. Groups are of
/// multiples of kInFours filters.
struct TmaFours {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap weights;                       ///< [K / 32][f][l][group_c]

  /// Starts the copies of a chunk to a slot; `full` completes once all bytes have arrived.
  __device__ void load(const PatchFilters& filters, const Tap&, int chunk, char* slot,
                       std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, 2 * kTapBytes);
    for (int block = 0; block < 2; ++block) {
      ptx::tma_load<4>(slot + block * kTapBytes, &weights, full,
                       {chunk * kTensorMapRow, 0, 2 * block, filters.first / kInFours});
    }
  }
};

/// TMA's view of weights that begin at a multiple of 16 bytes.
inline TmaFours tma_fours(const Windows& windows, const float* weights) {
  const std::int64_t words = windows.group_c;
  return {.weights = tensor_map(TiledMap{.rank = 4,
                                         .extents = {words, 8, 4, windows.K / kInFours},
                                         .strides = {1, 4 * words, words, kInFours * words},
                                         .box = {kTensorMapRow, 8, 2, 4}},
                                weights)};
}

/// The same by a warp, of filters of one tap.
struct GatheredFours {
  static constexpr bool kWholeWarp = true;  ///< each lane loads one of a filter's words
  const float* weights;                     ///< [K][group_c]
  int group_c;                              ///< channels of a group

  /// Copies a chunk; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const PatchFilters& filters, const Tap&, int chunk, char* slot,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, first = chunk * kTensorMapRow + lane;
    for (int j = 0; j < 2 * kPatchFilters; ++j) {
      const int f = j % 4, row = j / 32 * 16 + f % 2 * 8 + j % 32 / 4;
      char* const block = slot + f / 2 * kTapBytes;
      reinterpret_cast<std::uint32_t*>(block)[gemm::swizzled(row, lane)] =
          j < filters.count ? word_at(weights, (filters.first + std::int64_t{j}) * group_c + first,
                                      group_c - first)
                            : 0;
    }
    arrive_after_stores(full);
  }
};

/// The output [N][P][Q][K], where the sums go.
struct FloatPixels {
  float* out;             ///< the output
  const float* bias;      ///< [K], or null
  Activation activation;  ///< of the sums with their bias
  int P, Q, K;            ///< of the output
  bool fours;             ///< four filters are stored at once, where a lane has neighbours

  /// Stores a warpgroup's accumulators [filter][column]. Eight lanes of a warp have eight filters
  /// of a pixel.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        const float (&accumulators)[1][kColumns / 2]) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int filter = thread / 32 * 16 + lane / 4;  // and the one 8 below
    float added[2];
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = filter + 8 * below;
      added[below] = bias != nullptr && row < filters.count ? bias[filters.first + row] : 0.0f;
    }
    const bool has[2] = {filter < filters.count, filter + 8 < filters.count};
    for_each_pixel<kColumns>(tiles, tile, filters.first + filter, [&](int i, int odd, float* at) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        if (has[below])
          at[8 * below] =
              activated(activation, accumulators[0][4 * i + 2 * below + odd] + added[below]);
      }
    });
  }

  /// The same of two blocks, whose filters are in the order of filters_in_fours.cuh.
  template <int kColumns>
  __device__ void store(const PatchTiles& tiles, const PatchTile& tile, const PatchFilters& filters,
                        const float (&accumulators)[2][kColumns / 2]) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int filter = thread / 32 * 32 + lane / 4 * 4;  // and three more
    if (filter >= filters.count) return;                 // all four, or none
    float added[4];
#pragma unroll
    for (int f = 0; f < 4; ++f)
      added[f] = bias != nullptr ? bias[filters.first + filter + f] : 0.0f;
    for_each_pixel<kColumns>(tiles, tile, filters.first + filter, [&](int i, int odd, float* at) {
      float four[4];
#pragma unroll
      for (int f = 0; f < 4; ++f)
        four[f] = activated(activation, accumulators[f / 2][4 * i + f % 2 * 2 + odd] + added[f]);
      if (fours) {
        *reinterpret_cast<float4*>(at) = {four[0], four[1], four[2], four[3]};
      } else {
#pragma unroll
        for (int f = 0; f < 4; ++f) at[f] = four[f];
      }
    });
  }

 private:
  /// Calls store(i, odd, where) for those of a lane's pixels, two of each eight columns i, that
  /// are there. @param filter the lane's first one
  template <int kColumns, class Store>
  __device__ void for_each_pixel(const PatchTiles& tiles, const PatchTile& tile, int filter,
                                 const Store& store) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, row_columns = tiles.row_columns();
    const int columns = min(tiles.width, Q - tile.q), rows = min(tiles.rows, P - tile.p);
    // Of a lane's two columns of every eight: where it is in the tile, and where in the output.
    int column[2] = {lane % 4 * 2, lane % 4 * 2 + 1}, row[2] = {};
    std::int64_t at[2];
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      at[odd] = Index4{P, Q, K}(tile.n, tile.p, tile.q + column[odd], filter);
    const std::int64_t next_eight = std::int64_t{8} * K;
    const std::int64_t next_row = std::int64_t{8 + Q - row_columns} * K;  // beyond a row's end
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        if (column[odd] < columns && row[odd] < rows) store(i, odd, out + at[odd]);
        column[odd] += 8;
        const bool wraps = column[odd] >= row_columns;
        column[odd] -= wraps ? row_columns : 0;
        row[odd] += wraps ? 1 : 0;
        at[odd] += wraps ? next_row : next_eight;
      }
    }
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
