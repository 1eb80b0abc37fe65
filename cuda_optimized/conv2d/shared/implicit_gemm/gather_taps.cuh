/// @file gather_taps.cuh
/// @brief The copies of gathered elements into tiles of shared memory, tap by tap: a step along
/// k = (r, s, c) is some channels of one tap; cuda_optimized/conv2d/implicit_gemm/cp_async.cu
/// explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

struct TapOffset;  // an entry of the table that a GatherByTable takes

/// What a thread gathers, tap by tap: from a row to the next, an address moves on by a channel.
template <class T>
class GatherTapByTap {
 public:
  static constexpr bool kTable = false;  ///< takes none

  /// @param in [images][groups][channels][H][W]
  /// @param first_step where the block begins along k; there must be one
  __device__ GatherTapByTap(const GatheredProduct& product, const BlockPlace& place,
                            const float* in, int first_step, const TapOffset*)
      : windows_(product, place, in) {
    const int tiles_c = product.padded_c / T::kBlockK, tap = first_step / tiles_c;
    c_ = first_step % tiles_c * T::kBlockK;
    r_ = tap / product.S;
    s_ = tap % product.S;
    find_tap(product);
  }

  /// Starts the copies of the next tile [kBlockK][kBlockN].
  __device__ void copy(const GatheredProduct& product, int, float* tile) {
    float* const to = windows_.first(tile);
    if (c_ + T::kBlockK <= product.channels) {
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
          const bool exists = c_ + windows_.row + j * T::kRowStep < product.channels;
          const std::uint64_t down = static_cast<std::uint64_t>(j * T::kRowStep) * windows_.plane;
          ptx::cp_async<kBytes>(
              to + windows_.at(j, i),
              exists ? reinterpret_cast<const char*>(from_[i] + down) : windows_.group,
              exists && inside_[i] ? kBytes : 0);
        }
      }
    }
    c_ += T::kBlockK;
    if (c_ >= product.channels) {  // on to the next tap
      c_ = 0;
      if (++s_ == product.S) {
        s_ = 0;
        ++r_;
      }
      find_tap(product);
    }
  }

 private:
  static constexpr int kBytes = GatheredWindows<T>::kBytes;

  /// Finds where tap (r_, s_) of the pixels lies.
  __device__ void find_tap(const GatheredProduct& product) {
    const int down = r_ * product.tap.h, across = s_ * product.tap.w;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const bool inside = is_inside(windows_.h[i] + down, product.H) &&
                          is_inside(windows_.w[i] + across, product.W);
      inside_[i] = inside;
      // Where the tap lies in the padding, nothing is read.
      const unsigned tap = static_cast<unsigned>(down * product.W + across) * kBytes;
      from_[i] = reinterpret_cast<std::uintptr_t>(windows_.group) +
                 static_cast<std::uint64_t>(c_ + windows_.row) * windows_.plane +
                 (inside ? windows_.corner[i] + tap : 0);
    }
  }

  GatheredWindows<T> windows_;
  int c_, r_, s_;  ///< the next tile's first channel, and its tap
  /// Address of the thread's first element of that tile. A number, not a pointer: behind the last
  /// channel it lies outside of the array, and is not used.
  std::uintptr_t from_[T::kPixels];
  bool inside_[T::kPixels];  ///< whether the tap is not in the padding
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
