/// @file tap_table.cuh
/// @brief Where the elements of im2col's columns lie in x: an offset of the pixel, and one of k;
/// cuda_optimized/conv2d/implicit_gemm/precomputed_offsets.cu explains it.
#pragma once

#include "core/fast_division.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gemm_sizes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// One k = (c, r, s): 16 bytes, one load.
struct alignas(16) TapEntry {
  std::int64_t offset;  ///< c * H * W + r * dilation.h * W + s * dilation.w
  std::uint64_t bits;   ///< bit r and bit R + s
};

/// Divisions that take a pixel, counted through all images, apart.
struct PixelDivisions {
  FastDivision image;  ///< by P * Q
  FastDivision row;    ///< by Q

  /// For the pixels of that problem's output.
  explicit PixelDivisions(const Conv2dProblem& conv) : image(conv.P * conv.Q), row(conv.Q) {}
};

/// The pixel that a thread gathers for.
struct GatheredPixel {
  std::int64_t offset = 0;  ///< of the window's corner in x, negative in the padding
  std::uint64_t missing = ~std::uint64_t{0};  ///< bit r: row r of taps is not in x; bit R + s

  /// @param j counted through all images; a pixel behind the last one misses all taps
  __device__ GatheredPixel(const Conv2dProblem& conv, const PixelDivisions& divide, int j) {
    if (j >= conv.N * conv.P * conv.Q) return;
    const int n = divide.image.quotient(j), in_image = divide.image.remainder(j, n);
    const int p = divide.row.quotient(in_image), q = divide.row.remainder(in_image, p);
    const int h0 = p * conv.stride.h - conv.pad.top, w0 = q * conv.stride.w - conv.pad.left;
    offset = (std::int64_t{n} * conv.C * conv.H + h0) * conv.W + w0;
    for (int r = 0; r < conv.R; ++r) {
      const int h = h0 + r * conv.dilation.h;
      if (h >= 0 && h < conv.H) missing &= ~(std::uint64_t{1} << r);
    }
    for (int s = 0; s < conv.S; ++s) {
      const int w = w0 + s * conv.dilation.w;
      if (w >= 0 && w < conv.W) missing &= ~(std::uint64_t{1} << (conv.R + s));
    }
  }

  /// Whether that tap of the pixel's window lies in x.
  __device__ bool has(const TapEntry& tap) const { return (tap.bits & missing) == 0; }
};

inline constexpr int kTableStep = 16;  ///< Steps of k a tile, at most.

/// Entries of the table: depth, rounded up to whole tiles.
inline int table_entries(const Conv2dProblem& conv) {
  return ceil_div(ProductSizes(conv).depth, kTableStep) * kTableStep;
}

/// table [entries]: those behind the last tap are of taps that no pixel has.
/// Grid <= ceil(entries/256), block 256.
static __global__ void conv2d_make_tap_table(Conv2dProblem conv, int entries, FastDivision by_s,
                                             FastDivision by_r, TapEntry* table) {
  const ProductSizes sizes(conv);
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < entries;
       i += std::int64_t{gridDim.x} * 256) {
    const int k = static_cast<int>(i);
    if (k >= sizes.depth) {
      table[k] = {0, ~std::uint64_t{0}};  // R + S < 64: there is a bit that all pixels miss
      continue;
    }
    const int rows = by_s.quotient(k), s = by_s.remainder(k, rows);  // c * R + r
    const int c = by_r.quotient(rows), r = by_r.remainder(rows, c);
    table[k] = {(std::int64_t{c} * conv.H + r * conv.dilation.h) * conv.W + s * conv.dilation.w,
                std::uint64_t{1} << r | std::uint64_t{1} << (conv.R + s)};
  }
}

/// Why there is no table for this problem.
inline Declined why_no_tap_table(const Conv2dProblem& conv) {
  if (conv.R + conv.S > 63) return "R + S is over 63, more than the bits of a pixel hold";
  return {};
}

/// Bytes of the table.
inline std::size_t tap_table_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(table_entries(conv)) * sizeof(TapEntry);
}

/// Fills the table.
inline void launch_tap_table(const Conv2dProblem& conv, TapEntry* table) {
  const int entries = table_entries(conv);
  launch(conv2d_make_tap_table, {dim3(blocks_for(entries, 256)), dim3(256)}, conv, entries,
         FastDivision(conv.S), FastDivision(conv.R), table);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
