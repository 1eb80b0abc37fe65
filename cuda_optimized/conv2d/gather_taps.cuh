/// @file gather_taps.cuh
/// @brief The copies of gathered elements into tiles of shared memory, tap by tap: a step along
/// k = (r, s, c) is some channels of one tap; cuda_optimized/conv2d/implicit_gemm_cp_async.cu
/// explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/gathered_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

struct TapOffset;  // an entry of the table that a GatherByTable takes

/// Why a kernel's offsets of 32 bits do not reach all that a block gathers.
inline Declined why_no_gather(const GatheredProduct& product) {
  constexpr int kMostPixels = 512;  // of a tile
  const std::int64_t images = kMostPixels / std::max(1, product.image_pixels()) + 2;
  const std::int64_t plane = std::int64_t{product.in_h} * product.in_w;
  const std::int64_t image = plane * product.groups * product.group_c;
  if (image > 0x3fffffff / images) {
    return text("a block may gather from ", images, " images of ", image,
                " elements, together 2^30 or more");
  }
  return why_no_padded_product(product.group_c, std::int64_t{product.taps_h} * product.taps_w);
}

__device__ inline bool is_inside(int at, int extent) {
  return static_cast<unsigned>(at) < static_cast<unsigned>(extent);
}

/// The windows of the pixels that a thread gathers for, T::kPixels of a tile. Offsets are 32 bits
/// as far as they go (see why_no_gather()).
template <class T>
struct Windows {
  static constexpr int kBytes = sizeof(float);
  static constexpr int kNowhere = -0x40000000;  ///< The row of a pixel that does not exist.

  const char* group;                 ///< the group's first channel in the image of the first pixel
  unsigned plane;                    ///< bytes of a channel of an image
  int pixel, row;                    ///< this thread's first element of a tile
  unsigned corner[T::kPixels];       ///< bytes from `group` to the window's corner, modulo 2^32
  int h[T::kPixels], w[T::kPixels];  ///< that corner

  __device__ Windows(const GatheredProduct& product, const BlockPlace& place, const float* in)
      : plane(static_cast<unsigned>(product.in_h) * static_cast<unsigned>(product.in_w) * kBytes) {
    const int first_image = product.by_image.quotient(place.n);
    const std::int64_t first_channel =
        (std::int64_t{first_image} * product.groups + place.group) * product.group_c;
    group = reinterpret_cast<const char*>(in + first_channel * product.in_h * product.in_w);
    const int thread = static_cast<int>(threadIdx.x);
    pixel = T::kPixels > 1 ? thread : thread % T::kBlockN;
    row = T::kPixels > 1 ? 0 : thread / T::kBlockN;
    const unsigned image_bytes = static_cast<unsigned>(product.groups * product.group_c) * plane;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const int j = place.n + pixel + i * T::kThreads;
      const bool exists = j < product.pixels();
      const int image = exists ? product.by_image.quotient(j) : first_image;
      const int in_image = exists ? product.by_image.remainder(j, image) : 0;
      const int line = product.by_row.quotient(in_image);
      const int down = line * product.step_h + product.start_h;
      h[i] = exists ? down : kNowhere;
      w[i] = product.by_row.remainder(in_image, line) * product.step_w + product.start_w;
      corner[i] = static_cast<unsigned>(image - first_image) * image_bytes +
                  static_cast<unsigned>(down * product.in_w + w[i]) * kBytes;
    }
  }

  /// This thread's first element in a tile [kBlockK][kBlockN].
  __device__ float* first(float* tile) const { return tile + row * T::kBlockN + pixel; }
  /// How far behind it element j of pixel i lies.
  HOST_DEVICE static constexpr int at(int j, int i) {
    return j * T::kRowStep * T::kBlockN + i * T::kThreads;
  }
};

/// What a thread gathers, tap by tap: from a row to the next, an address moves on by a channel.
template <class T>
class GatherTapByTap {
 public:
  static constexpr bool kTable = false;  ///< takes none

  /// @param in [images][groups][group_c][in_h][in_w]
  /// @param first_step where the block begins along k; there must be one
  __device__ GatherTapByTap(const GatheredProduct& product, const BlockPlace& place,
                            const float* in, int first_step, const TapOffset*)
      : windows_(product, place, in) {
    const int tiles_c = product.padded_c / T::kBlockK, tap = first_step / tiles_c;
    c_ = first_step % tiles_c * T::kBlockK;
    r_ = tap / product.taps_w;
    s_ = tap % product.taps_w;
    find_tap(product);
  }

  /// Starts the copies of the next tile [kBlockK][kBlockN].
  __device__ void copy(const GatheredProduct& product, int, float* tile) {
    float* const to = windows_.first(tile);
    if (c_ + T::kBlockK <= product.group_c) {
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          ptx::cp_async<kBytes>(to + windows_.at(j, i), reinterpret_cast<const char*>(from_[i]),
                                inside_[i] ? kBytes : 0);
          from_[i] += T::kRowStep * std::uint64_t{windows_.plane};
        }
      }
    } else {  // Channels behind the last one meet weights of zero, but must be numbers.
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          const bool exists = c_ + windows_.row + j * T::kRowStep < product.group_c;
          const std::uint64_t down = static_cast<std::uint64_t>(j * T::kRowStep) * windows_.plane;
          ptx::cp_async<kBytes>(
              to + windows_.at(j, i),
              exists ? reinterpret_cast<const char*>(from_[i] + down) : windows_.group,
              exists && inside_[i] ? kBytes : 0);
        }
      }
    }
    c_ += T::kBlockK;
    if (c_ >= product.group_c) {  // on to the next tap
      c_ = 0;
      if (++s_ == product.taps_w) {
        s_ = 0;
        ++r_;
      }
      find_tap(product);
    }
  }

 private:
  static constexpr int kBytes = Windows<T>::kBytes;

  /// Finds where tap (r_, s_) of the pixels lies.
  __device__ void find_tap(const GatheredProduct& product) {
    const int down = r_ * product.tap_h, across = s_ * product.tap_w;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const bool inside = is_inside(windows_.h[i] + down, product.in_h) &&
                          is_inside(windows_.w[i] + across, product.in_w);
      inside_[i] = inside;
      // Where the tap lies in the padding, nothing is read.
      const unsigned tap = static_cast<unsigned>(down * product.in_w + across) * kBytes;
      from_[i] = reinterpret_cast<std::uintptr_t>(windows_.group) +
                 static_cast<std::uint64_t>(c_ + windows_.row) * windows_.plane +
                 (inside ? windows_.corner[i] + tap : 0);
    }
  }

  Windows<T> windows_;
  int c_, r_, s_;  ///< the next tile's first channel, and its tap
  /// Address of the thread's first element of that tile. A number, not a pointer: behind the last
  /// channel it lies outside of the array, and is not used.
  std::uintptr_t from_[T::kPixels];
  bool inside_[T::kPixels];  ///< whether the tap is not in the padding
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
