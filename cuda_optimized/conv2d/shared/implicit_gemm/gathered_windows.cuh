/// @file gathered_windows.cuh
/// @brief Where the windows of the pixels begin for which a thread gathers. T is a PipelineTile.
#pragma once

#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Why a kernel's offsets of 32 bits do not reach all that a block gathers.
inline Declined why_no_gather(const WindowProduct& product) {
  constexpr int kMostPixels = 512;  // of a tile
  const std::int64_t images = kMostPixels / std::max(1, product.image_pixels()) + 2;
  const std::int64_t plane = std::int64_t{product.H} * product.W;
  const std::int64_t image = plane * product.groups * product.channels;
  if (image > 0x3fffffff / images) {
    return text("a block may gather from ", images, " images of ", image,
                " elements, together 2^30 or more");
  }
  return why_no_padded_product(product.filters, product.channels,
                               std::int64_t{product.R} * product.S);
}

/// Whether a coordinate lies inside of its extent.
__device__ inline bool is_inside(int at, int extent) {
  return static_cast<unsigned>(at) < static_cast<unsigned>(extent);
}

/// The windows of the pixels that a thread gathers for, T::kPixels of a tile. Offsets are 32 bits
/// as far as they go (see why_no_gather()).
template <class T>
struct GatheredWindows {
  static constexpr int kBytes = sizeof(float);  ///< of an element
  static constexpr int kNowhere = -0x40000000;  ///< The row of a pixel that does not exist.

  const char* group;                 ///< the group's first channel in the image of the first pixel
  unsigned plane;                    ///< bytes of a channel of an image
  int pixel, row;                    ///< this thread's first element of a tile
  unsigned corner[T::kPixels];       ///< bytes from `group` to the window's corner, modulo 2^32
  int h[T::kPixels], w[T::kPixels];  ///< that corner

  /// The windows of this thread, in a block that begins at `place`.
  __device__ GatheredWindows(const GatheredProduct& product, const BlockPlace& place,
                             const float* in)
      : plane(static_cast<unsigned>(product.H) * static_cast<unsigned>(product.W) * kBytes) {
    const int first_image = product.by_image.quotient(place.n);
    const std::int64_t first_channel =
        (std::int64_t{first_image} * product.groups + place.group) * product.channels;
    group = reinterpret_cast<const char*>(in + first_channel * product.H * product.W);
    const int thread = static_cast<int>(threadIdx.x);
    pixel = T::kPixels > 1 ? thread : thread % T::kBlockN;
    row = T::kPixels > 1 ? 0 : thread / T::kBlockN;
    const unsigned image_bytes = static_cast<unsigned>(product.groups * product.channels) * plane;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const int j = place.n + pixel + i * T::kThreads;
      const bool exists = j < product.pixels();
      const int image = exists ? product.by_image.quotient(j) : first_image;
      const int in_image = exists ? product.by_image.remainder(j, image) : 0;
      const int line = product.by_row.quotient(in_image);
      const int down = line * product.stride.h + product.first.h;
      h[i] = exists ? down : kNowhere;
      w[i] = product.by_row.remainder(in_image, line) * product.stride.w + product.first.w;
      corner[i] = static_cast<unsigned>(image - first_image) * image_bytes +
                  static_cast<unsigned>(down * product.W + w[i]) * kBytes;
    }
  }

  /// This thread's first element in a tile [kBlockK][kBlockN].
  __device__ float* first(float* tile) const { return tile + row * T::kBlockN + pixel; }
  /// How far behind it element j of pixel i lies.
  HOST_DEVICE static constexpr int at(int j, int i) {
    return j * T::kRowStep * T::kBlockN + i * T::kThreads;
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
