/// @file register_tile.hpp
/// @brief A block of a matrix product on the CPU: operands packed to stay in the caches, and a tile
/// of accumulators in vector registers. gemm/blocked.cpp explains it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "core/half.hpp"

namespace convladder::cpu_reference::gemm {

inline constexpr int kTileRows = 6;       ///< Rows of the tile of accumulators.
inline constexpr int kTileColumns = 16;   ///< Columns of it: 12 registers of 8 floats in all.
inline constexpr int kBlockRows = 192;    ///< Rows of c that a block computes.
inline constexpr int kBlockColumns = 80;  ///< Columns of c that a block computes.
inline constexpr int kBlockDepth = 256;   ///< Rows of b that a block packs at a time: 80 KB.

/// The smallest multiple that is not less. @param count at least 0
template <class Integer>
constexpr Integer rounded_up(Integer count, int multiple) {
  return ceil_div<Integer>(count, multiple) * multiple;
}

/// Adds the product of a strip of a, [depth][kTileRows], and of kTileColumns columns of a block of
/// b, [depth][kBlockColumns], to a tile of `sums`, whose rows are kBlockColumns apart.
void add_tile_product(const float* strip, const float* b, std::int64_t depth, float* sums);

/// Floats of a matrix of M rows in strips, see pack_strips().
inline std::int64_t strip_floats(std::int64_t M, std::int64_t K) {
  return checked_product({rounded_up(M, kTileRows), K}, "floats of packed rows");
}

/// Packs a [M][K] into strips of kTileRows rows, [M / kTileRows][K][kTileRows]: in the order in
/// which add_tile_product() loads them. Rows beyond M are zeros.
template <class T>
void pack_strips(const T* a, std::int64_t M, std::int64_t K, float* strips) {
  for (std::int64_t m0 = 0; m0 < M; m0 += kTileRows) {
    for (std::int64_t k = 0; k < K; ++k) {
      for (std::int64_t m = m0; m < m0 + kTileRows; ++m) {
        *strips++ = m < M ? to_float(a[m * K + k]) : 0.0f;
      }
    }
  }
}

/// Computes a block of c: up to kBlockRows rows and kBlockColumns columns of a * b.
/// @param strips of the block's rows, by pack_strips()
/// @param pack called with (k, depth, b), writes rows k ... k + depth - 1 of b, those columns of it
/// that the block computes, to b [depth][kBlockColumns]; behind them zeros, up to a multiple of
/// kTileColumns
/// @param store called with (m, sums), takes row m of the block, once it is complete
template <class Pack, class Store>
void multiply_block(const float* strips, int rows, int columns, std::int64_t K, const Pack& pack,
                    const Store& store) {
  alignas(64) float b[kBlockDepth * kBlockColumns];
  alignas(64) float sums[kBlockRows * kBlockColumns];
  const int row_end = rounded_up(rows, kTileRows), column_end = rounded_up(columns, kTileColumns);
  for (int m = 0; m < row_end; ++m) std::fill_n(sums + m * kBlockColumns, column_end, 0.0f);
  for (std::int64_t k = 0; k < K; k += kBlockDepth) {
    const std::int64_t depth = std::min<std::int64_t>(K - k, kBlockDepth);
    pack(k, depth, b);
    for (int n = 0; n < column_end; n += kTileColumns) {
      for (int m = 0; m < row_end; m += kTileRows) {
        add_tile_product(strips + m * K + k * kTileRows, b + n, depth,
                         sums + m * kBlockColumns + n);
      }
    }
  }
  for (int m = 0; m < rows; ++m) store(m, sums + m * kBlockColumns);
}

}  // namespace convladder::cpu_reference::gemm
