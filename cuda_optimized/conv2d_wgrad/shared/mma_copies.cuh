/// @file mma_copies.cuh
/// @brief What a block of the weight gradient on tensor cores copies: where a pixel's window lies,
/// and which pieces of a tile a thread copies.
#pragma once

#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/split_k.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kChunk = 32;  ///< Neighbouring columns that are copied at a time: 128 bytes.

/// One pixel, decoded once for all threads of the block.
struct alignas(16) MmaPixel {
  /// Address of its window's first tap, in channel 0: a number, as that may lie outside of x.
  std::uintptr_t x;
  unsigned outside;  ///< The taps of its window that are not in x: bits_outside().
};

/// Number `pixel` of all, or one beyond the last.
__device__ inline MmaPixel pixel_at(const MmaProduct& product, const float* x, int pixel, int end) {
  const Conv2dProblem& conv = product.conv;
  const auto begin = reinterpret_cast<std::uintptr_t>(x);
  if (pixel >= end) return {begin, ~0u};
  const int row = product.by_columns.quotient(pixel), q = product.by_columns.remainder(pixel, row);
  const int n = product.by_rows.quotient(row), p = product.by_rows.remainder(row, n);
  const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
  return {begin + sizeof(float) * (((std::int64_t{n} * conv.H + h) * conv.W + w) * conv.C),
          bits_outside(conv, product.by_dilation_h, product.by_dilation_w, h, w)};
}

/// How the threads copy a tile of kLength columns, kWidth floats at a time: a row's chunk by
/// neighbouring threads, and several rows at a time.
template <int kLength, int kWidth>
struct Copies {
  static constexpr int kPieces = (kLength < kChunk ? kLength : kChunk) / kWidth;  ///< of a chunk
  static constexpr int kRows = kMmaThreads / kPieces;                             ///< at a time
  static constexpr int kChunks = kLength < kChunk ? 1 : kLength / kChunk;         ///< of a row
  static constexpr int kCount = kMmaStep / kRows * kChunks;  ///< of a thread in a step
  static_assert(kMmaStep % kRows == 0 && kLength % kWidth == 0);
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
