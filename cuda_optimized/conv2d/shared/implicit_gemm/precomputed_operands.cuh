/// @file precomputed_operands.cuh
/// @brief Both operands of an implicit GEMM, prepared by kernels of their own: the table of taps,
/// with the offsets of operand B (precomputed_offsets.cu), and packed weights (packed_weights.cu).
#pragma once

#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// One k = (c, r, s): 16 bytes, one load.
struct alignas(16) TapEntry {
  std::int64_t offset;  ///< c * H * W + r * dilation.h * W + s * dilation.w
  std::uint64_t bits;   ///< bit r and bit R + s
};

/// Divisions that split a pixel, counted through all images, into image, row and column.
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

  /// @param j counted through all images; a pixel beyond the last one misses all taps
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

/// table [entries]: entries after the last tap describe taps that no pixel has. Grid <=
/// ceil(entries/256), block 256.
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

/// The reason not to support a problem: the table has too few bits.
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

inline constexpr int kPackTile = 32;  ///< Rows and columns that a block packs at once.
inline constexpr int kPackRows = 8;   ///< Rows of threads of such a block.

/// weights [groups * filters][channels * taps] to packed [groups][k_rows][padded_m], with zeros
/// where there is no weight. Reads and writes are coalesced: the tile is transposed in shared
/// memory. Grid <= groups * ceil(c_rows * taps / 32) * padded_m / 32, block (32, 8).
/// @param c_rows channels, rounded up so that all rows are written
static __global__ void conv2d_pack_weights(GatheredProduct product, int c_rows,
                                           const float* weights, float* packed) {
  __shared__ float tile[kPackTile][kPackTile + 1];  // [m][k]: columns in 32 banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int taps = product.R * product.S;
  const std::int64_t filter = std::int64_t{product.channels} * taps;
  const int tiles_m = ceil_div(product.padded_m, kPackTile);
  const std::int64_t tiles_k = ceil_div<std::int64_t>(std::int64_t{c_rows} * taps, kPackTile);
  for (std::int64_t i = blockIdx.x; i < product.groups * tiles_k * tiles_m; i += gridDim.x) {
    const int m0 = static_cast<int>(i / tiles_k % tiles_m) * kPackTile;
    const std::int64_t group = i / tiles_k / tiles_m, k0 = i % tiles_k * kPackTile;
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const bool exists = m0 + row < product.filters && k0 + tx < filter;
      tile[row][tx] =
          exists ? weights[(group * product.filters + m0 + row) * filter + k0 + tx] : 0.0f;
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

/// Packs the weights of the forward pass for a planned product.
inline void launch_pack(const GatheredProduct& product, const float* weights, float* packed) {
  const int c_rows = packed_channels(product);
  const std::int64_t tiles_k =
      ceil_div<std::int64_t>(std::int64_t{c_rows} * product.R * product.S, kPackTile);
  const std::int64_t tiles = tiles_k * ceil_div(product.padded_m, kPackTile) * product.groups;
  launch(conv2d_pack_weights,
         {dim3(blocks_for(tiles, 1, kMaxGridX - 1)), dim3(kPackTile, kPackRows)}, product, c_rows,
         weights, packed);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
