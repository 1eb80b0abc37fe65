/// @file store_class.cuh
/// @brief Where the sums of a residue class go: to every stride-th pixel of dx.
#pragma once

#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_product.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/store_images.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

/// Whether there is a single class, and four pixels of a tile are four neighbours in dx, aligned to
/// 16 bytes if dx is.
inline bool pixels_in_fours(const Conv2dProblem& conv) {
  return conv.stride.h == 1 && conv.stride.w == 1 && std::int64_t{conv.H} * conv.W % 4 == 0;
}

/// Writes the sums to dx [images][channels][height][width], at the pixels of a residue class.
struct StoreClass {
  float* dx;          ///< [images][channels][height][width]
  int height, width;  ///< of an image of dx
  Step stride;        ///< in dx, from a pixel of the class to the next one
  bool fours;         ///< four pixels of a tile are four neighbours in dx, aligned to 16 bytes

  /// To dx_, the input gradient of that problem.
  StoreClass(const Conv2dProblem& conv, float* dx_)
      : dx(dx_), height(conv.H), width(conv.W), stride(conv.stride),
        fours(pixels_in_fours(conv) &&
              reinterpret_cast<std::uintptr_t>(dx_) % sizeof(float4) == 0) {}

  /// Writes a block's sums, without those of the tile behind the last channel or pixel.
  /// @param shared kThreads * kThreadN floats of shared memory, used unless `fours`
  template <class T>
  __device__ void store(const conv2d::GatheredProduct& product, const conv2d::BlockPlace& place,
                        const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                        float* shared) const {
    const std::int64_t plane = std::int64_t{height} * width;
    const std::int64_t first = std::int64_t{place.group} * product.filters + place.m;
    if (fours) {
      tile.for_each_four(sums, [&](int m, int n, float4 four) {
        const int pixel = place.n + n;
        if (place.m + m >= product.filters || pixel >= product.pixels()) return;
        const int image = product.by_image.quotient(pixel);
        float* const to = dx + (std::int64_t{image} * product.out_channels() + first + m) * plane;
        reinterpret_cast<float4*>(to)[product.by_image.remainder(pixel, image) / 4] = four;
      });
      return;
    }
    conv2d::for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
      const int pixel = place.n + n;
      if (place.m + m >= product.filters || pixel >= product.pixels()) return;
      const int image = product.by_image.quotient(pixel);
      const int in_image = product.by_image.remainder(pixel, image);
      const int row = product.by_row.quotient(in_image);
      const int h = product.out_first.h + row * stride.h;
      const int w = product.out_first.w + product.by_row.remainder(in_image, row) * stride.w;
      dx[(std::int64_t{image} * product.out_channels() + first + m) * plane +
         std::int64_t{h} * width + w] = sum;
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
