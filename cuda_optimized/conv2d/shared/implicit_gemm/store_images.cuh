/// @file store_images.cuh
/// @brief Where the sums of a convolution go: to the images of y, with bias and activation, four
/// neighbours a thread or, where those are not aligned, 32 a warp.
#pragma once

#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_product.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

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
      reinterpret_cast<float4*>(rows)[(lane_m * T::kWarpN + lane_n + T::column(j)) / 4] =
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

/// Whether four pixels of a tile are four neighbours, and aligned if the output is.
inline bool pixels_in_fours(const WindowProduct& product) {
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
    const std::int64_t image_floats = std::int64_t{product.out_channels()} * image_pixels;
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
          if (m >= product.filters) continue;
          const int channel = place.group * product.filters + m;
          const float start = bias ? bias[channel] : 0.0f;
          const auto result = [&](int e) { return activated(activation, start + sums[i][j + e]); };
          reinterpret_cast<float4*>(to)[std::int64_t{channel} * (image_pixels / 4)] =
              float4{result(0), result(1), result(2), result(3)};
        }
      }
      return;
    }
    for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
      m += place.m;
      const int pixel = place.n + n;
      if (m >= product.filters || pixel >= product.pixels()) return;
      const int channel = place.group * product.filters + m;
      const int image = product.by_image.quotient(pixel);
      out[image * image_floats + std::int64_t{channel} * image_pixels +
          product.by_image.remainder(pixel, image)] =
          activated(activation, (bias ? bias[channel] : 0.0f) + sum);
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
