/// @file gathered_product.cuh
/// @brief A convolution as a matrix product that gathers one of its factors: its sizes, its packed
/// weights, and where its sums go. The forward pass and the input gradient share it.
#pragma once

#include "core/fast_division.hpp"
#include "cuda_optimized/conv2d/implicit_gemm.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A convolution as a kernel sees it, forward or backward. For each pixel (i, j) of rows x columns
/// of each image, and for each channel m of each group that is written,
///
///     out[m, i, j] = sum over c, r, s of weight[m, c, r, s]
///                      * in[c, start_h + i * step_h + r * tap_h, start_w + j * step_w + s * tap_w]
///
/// with zeros outside of `in`.
struct GatheredProduct {
  int images, groups;                    ///< of the convolution
  int group_c, in_h, in_w;               ///< of what is read: channels of a group, extents
  int group_m;                           ///< channels of a group of what is written
  int rows, columns;                     ///< pixels of an image that are computed
  int taps_h, taps_w;                    ///< taps that are added up, r and s
  int step_h, step_w, start_h, start_w;  ///< where a pixel's window begins
  int tap_h, tap_w;                      ///< from a tap to the next one; may be negative
  int out_row = 0, out_column = 0;       ///< of pixel (0, 0) in what is written

  // Filled in by planned():
  bool table = false;              ///< steps along k are (c, r, s); otherwise (r, s, c)
  int m_tiles = 0, n_tiles = 0;    ///< blocks along the channels, and along the pixels
  int steps = 0;                   ///< of T::kBlockK products each; 0 where there are no taps
  int k_rows = 0;                  ///< steps * T::kBlockK
  int padded_m = 0, padded_c = 0;  ///< group_m and group_c, rounded up to whole tiles
  FastDivision by_image = {};      ///< by rows * columns
  FastDivision by_row = {};        ///< by columns

  /// Pixels of an image.
  HOST_DEVICE int image_pixels() const { return rows * columns; }
  /// Pixels of all images.
  HOST_DEVICE int pixels() const { return images * rows * columns; }
  /// Channels of all groups that are written.
  HOST_DEVICE int channels() const { return groups * group_m; }
  /// Floats of the packed weights.
  std::int64_t packed_floats() const { return std::int64_t{groups} * k_rows * padded_m; }
};

/// The forward pass as a gathered product.
inline GatheredProduct forward_product(const Conv2dProblem& conv) {
  return {.images = conv.N,
          .groups = conv.groups,
          .group_c = conv.C / conv.groups,
          .in_h = conv.H,
          .in_w = conv.W,
          .group_m = conv.K / conv.groups,
          .rows = conv.P,
          .columns = conv.Q,
          .taps_h = conv.R,
          .taps_w = conv.S,
          .step_h = conv.stride.h,
          .step_w = conv.stride.w,
          .start_h = -conv.pad.top,
          .start_w = -conv.pad.left,
          .tap_h = conv.dilation.h,
          .tap_w = conv.dilation.w};
}

/// Why a problem whose rows of k are rounded up to whole tiles does not fit 31 bits.
inline Declined why_no_padded_product(std::int64_t group_c, std::int64_t taps) {
  if ((group_c + 31) * taps > 0x7fffffff) {
    return "a filter, its channels rounded up to 32, has 2^31 weights or more";
  }
  return {};
}

/// The product with its tiles, for blocks of T::kBlockM x T::kBlockN sums.
/// @param table whether steps along k are (c, r, s)
template <class T>
GatheredProduct planned(GatheredProduct product, bool table) {
  const int taps = product.taps_h * product.taps_w;
  product.table = table;
  product.m_tiles = ceil_div(product.group_m, T::kBlockM);
  product.n_tiles = ceil_div(product.pixels(), T::kBlockN);
  product.padded_m = product.m_tiles * T::kBlockM;
  product.padded_c = ceil_div(product.group_c, T::kBlockK) * T::kBlockK;
  product.steps =
      table ? ceil_div(product.group_c * taps, T::kBlockK) : product.padded_c / T::kBlockK * taps;
  product.k_rows = product.steps * T::kBlockK;
  product.by_image = FastDivision(std::max(1, product.image_pixels()));
  product.by_row = FastDivision(std::max(1, product.columns));
  return product;
}

inline constexpr int kPackTile = 32;  ///< Rows and columns that a block packs at once.
inline constexpr int kPackRows = 8;   ///< Rows of threads of such a block.

/// The row of k where weight (c, tap) lies.
__device__ inline std::int64_t packed_row(const GatheredProduct& product, int c, int tap) {
  return product.table ? std::int64_t{c} * (product.taps_h * product.taps_w) + tap
                       : std::int64_t{tap} * product.padded_c + c;
}

/// weights [groups * group_m][group_c * taps] to packed [groups][k_rows][padded_m], with zeros
/// where there is no weight. Both are read and written along memory: the tile turns in shared
/// memory. Grid <= groups * ceil(c_rows * taps / 32) * padded_m / 32, block (32, 8).
/// @param c_rows channels, with so many behind the last one that all rows are written
static __global__ void pack_weights(GatheredProduct product, int c_rows, const float* weights,
                                    float* packed) {
  __shared__ float tile[kPackTile][kPackTile + 1];  // [m][k]: columns in 32 banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int taps = product.taps_h * product.taps_w;
  const std::int64_t filter = std::int64_t{product.group_c} * taps;
  const int tiles_m = ceil_div(product.padded_m, kPackTile);
  const std::int64_t tiles_k = ceil_div<std::int64_t>(std::int64_t{c_rows} * taps, kPackTile);
  for (std::int64_t i = blockIdx.x; i < product.groups * tiles_k * tiles_m; i += gridDim.x) {
    const int m0 = static_cast<int>(i / tiles_k % tiles_m) * kPackTile;
    const std::int64_t group = i / tiles_k / tiles_m, k0 = i % tiles_k * kPackTile;
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const bool exists = m0 + row < product.group_m && k0 + tx < filter;
      tile[row][tx] =
          exists ? weights[(group * product.group_m + m0 + row) * filter + k0 + tx] : 0.0f;
    }
    __syncthreads();  // separates these stores from the loads below
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const auto c = static_cast<int>((k0 + row) / taps), tap = static_cast<int>((k0 + row) % taps);
      const std::int64_t to = packed_row(product, c, tap);
      if (c < c_rows && to < product.k_rows && m0 + tx < product.padded_m) {
        packed[(group * product.k_rows + to) * product.padded_m + m0 + tx] = tile[tx][row];
      }
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Channels whose weights, or zeros, fill all rows of k.
inline int packed_channels(const GatheredProduct& product) {
  return product.table ? ceil_div(product.k_rows, product.taps_h * product.taps_w)
                       : product.padded_c;
}

/// Packs the weights of the forward pass for a planned product.
inline void launch_pack(const GatheredProduct& product, const float* weights, float* packed) {
  const int c_rows = packed_channels(product);
  const std::int64_t tiles_k =
      ceil_div<std::int64_t>(std::int64_t{c_rows} * product.taps_h * product.taps_w, kPackTile);
  const std::int64_t tiles = tiles_k * ceil_div(product.padded_m, kPackTile) * product.groups;
  launch(pack_weights, {dim3(blocks_for(tiles, 1, kMaxGridX - 1)), dim3(kPackTile, kPackRows)},
         product, c_rows, weights, packed);
}

/// Calls body(m, n, sum) for all sums of a warp so that its 32 lanes have 32 neighbours of a row of
/// the block's tile: the sums change hands through shared memory. A lane's n are the same for every
/// row.
/// @param shared a row of every thread: kThreads * kThreadN floats, for this alone
template <class T, class Body>
__device__ void for_each_in_order(const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                                  float* shared, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int lane_m = tile.m % T::kWarpM / 4, lane_n = tile.n % T::kWarpN;
  const int warp_m = tile.m - lane_m * 4, warp_n = tile.n - lane_n;
  float* const rows = shared + warp * (T::kLanesM * T::kWarpN);  // this warp's own
#pragma unroll
  for (int i = 0; i < T::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < T::kThreadN; j += 4) {
      *reinterpret_cast<float4*>(rows + lane_m * T::kWarpN + lane_n + T::column(j)) =
          float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
    }
    __syncwarp();  // separates these stores from the loads below
#pragma unroll
    for (int row = 0; row < T::kLanesM; ++row) {
#pragma unroll
      for (int n = 0; n < T::kWarpN; n += 32) {
        body(warp_m + row * 4 + T::row(i), warp_n + n + lane, rows[row * T::kWarpN + n + lane]);
      }
    }
    __syncwarp();  // separates these loads from the stores of the threads' next rows
  }
}

/// Where the sums of a block belong.
struct BlockPlace {
  int m, n;   ///< the first channel, counted within the group, and the first pixel
  int group;  ///< which group of channels
  int split;  ///< which part of the steps along k
};

/// Whether four pixels of a tile are four neighbours, and aligned if the output is.
inline bool pixels_in_fours(const GatheredProduct& product) {
  return product.image_pixels() % 4 == 0;
}

/// Writes the sums to out [images][channels][rows][columns], with a bias, and activated: while they
/// are still in registers, which costs no pass over out.
struct StoreImages {
  float* out;             ///< [images][channels][rows][columns]
  const float* bias;      ///< [channels] or null
  Activation activation;  ///< of the sums with their bias
  bool fours;  ///< whether four pixels of a tile are four neighbours, aligned to 16 bytes

  /// To out_, plus bias_ unless that is null.
  StoreImages(const GatheredProduct& product, float* out_, const float* bias_,
              Activation activation_ = Activation::none)
      : out(out_), bias(bias_), activation(activation_),
        fours(pixels_in_fours(product) &&
              reinterpret_cast<std::uintptr_t>(out_) % sizeof(float4) == 0) {}

  /// Writes a block's sums, without those of the tile behind the last channel or pixel.
  /// @param shared kThreads * kThreadN floats of shared memory, used unless `fours`
  template <class T>
  __device__ void store(const GatheredProduct& product, const BlockPlace& place, const T& tile,
                        const float (&sums)[T::kThreadM][T::kThreadN], float* shared) const {
    const int image_pixels = product.image_pixels();
    const std::int64_t image_floats = std::int64_t{product.channels()} * image_pixels;
    if (fours) {
#pragma unroll
      for (int j = 0; j < T::kThreadN; j += 4) {
        const int pixel = place.n + tile.n + T::column(j);
        if (pixel >= product.pixels()) continue;
        const int image = product.by_image.quotient(pixel);
        float* const to = out + image * image_floats + product.by_image.remainder(pixel, image);
#pragma unroll
        for (int i = 0; i < T::kThreadM; ++i) {
          const int m = place.m + tile.m + T::row(i);
          if (m >= product.group_m) continue;
          const int channel = place.group * product.group_m + m;
          const float start = bias ? bias[channel] : 0.0f;
          const auto result = [&](int e) { return activated(activation, start + sums[i][j + e]); };
          *reinterpret_cast<float4*>(to + std::int64_t{channel} * image_pixels) =
              float4{result(0), result(1), result(2), result(3)};
        }
      }
      return;
    }
    for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
      m += place.m;
      const int pixel = place.n + n;
      if (m >= product.group_m || pixel >= product.pixels()) return;
      const int channel = place.group * product.group_m + m;
      const int image = product.by_image.quotient(pixel);
      out[image * image_floats + std::int64_t{channel} * image_pixels +
          product.by_image.remainder(pixel, image)] =
          activated(activation, (bias ? bias[channel] : 0.0f) + sum);
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
