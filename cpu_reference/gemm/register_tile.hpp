/// @file register_tile.hpp
/// @brief A block of a matrix product on the CPU: operands packed to stay in the caches, and a tile
/// of accumulators in vector registers. gemm/blocked.cpp explains it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "core/half.hpp"
#include "core/parallel.hpp"
#include "core/types.hpp"

namespace convladder::cpu_reference::gemm {

inline constexpr int kTileRows = 6;       ///< Rows of the tile of accumulators.
inline constexpr int kTileColumns = 16;   ///< Columns are padded to a multiple of it.
inline constexpr int kWideTile = 32;      ///< Columns of a tile where as many are left.
inline constexpr int kBlockRows = 192;    ///< Rows of c that a block computes.
inline constexpr int kBlockColumns = 96;  ///< Columns of c that a block computes.
inline constexpr int kBlockDepth = 256;   ///< Rows of b that a block packs at a time: 96 KB.
inline constexpr double kNanoseconds =
    0.015;  ///< Of a multiply-add on one core, for parallel_for().

/// The smallest multiple that is not less. @param count at least 0
template <class Integer>
constexpr Integer rounded_up(Integer count, int multiple) {
  return ceil_div<Integer>(count, multiple) * multiple;
}

/// Adds the product of kTileRows rows of a and of `columns` columns of a block of b,
/// [depth][kBlockColumns], to a tile of `sums`, whose rows are kBlockColumns apart.
/// @param a its first element; neighbouring rows are `row_step` floats apart
/// @param rows how many rows of a there are; the others of the tile become copies of the last
/// @param columns kTileColumns or kWideTile
void add_tile_product(const float* a, std::int64_t row_step, int rows, const float* b, int columns,
                      std::int64_t depth, float* sums);

/// Rows of a block of a product with M rows: kBlockRows, or fewer where that would leave less than
/// two blocks for each core, but not so few that packing b takes longer than the products.
/// @param others blocks that have the same rows
inline int block_rows(std::int64_t M, std::int64_t others) {
  constexpr std::int64_t kLeastRows = 8 * kTileRows;
  const std::int64_t wanted =
      ceil_div<std::int64_t>(2 * cores(), std::max<std::int64_t>(others, 1));
  const std::int64_t down =
      std::clamp(wanted, ceil_div<std::int64_t>(M, kBlockRows), ceil_div(M, kLeastRows));
  return static_cast<int>(rounded_up(ceil_div(M, down), kTileRows));
}

/// Bytes that as_floats() needs. @param count elements
inline std::size_t bytes_as_floats(DType dtype, std::int64_t count) {
  if (dtype == DType::f32) return 0;
  return static_cast<std::size_t>(checked_product({count, sizeof(float)}, "bytes of operand A"));
}

/// The elements of an operand as floats: itself, or a copy in `floats`, made on all cores.
template <class T>
const float* as_floats(const T* elements, std::int64_t count, float* floats) {
  if constexpr (std::is_same_v<T, float>) {
    return elements;
  } else {
    constexpr std::int64_t kTogether = 4096;
    parallel_for(ceil_div(count, kTogether), [&](std::int64_t part) {
      const std::int64_t end = std::min(count, (part + 1) * kTogether);
      for (std::int64_t i = part * kTogether; i < end; ++i) floats[i] = to_float(elements[i]);
    });
    return floats;
  }
}

/// Computes a block of c: up to kBlockRows rows and kBlockColumns columns of a * b.
/// @param a the block's rows of a, [rows][K]
/// @param pack called with (k, depth, b), writes rows k ... k + depth - 1 of b, those columns of it
/// that the block computes, to b [depth][kBlockColumns]; behind them zeros, up to a multiple of
/// kTileColumns
/// @param store called with (m, sums), takes row m of the block, once it is complete
template <class Pack, class Store>
void multiply_block(const float* a, int rows, int columns, std::int64_t K, const Pack& pack,
                    const Store& store) {
  alignas(64) float b[kBlockDepth * kBlockColumns];
  alignas(64) float sums[kBlockRows * kBlockColumns];
  const int row_end = rounded_up(rows, kTileRows), column_end = rounded_up(columns, kTileColumns);
  for (int m = 0; m < row_end; ++m) std::fill_n(sums + m * kBlockColumns, column_end, 0.0f);
  for (std::int64_t k = 0; k < K; k += kBlockDepth) {
    const std::int64_t depth = std::min<std::int64_t>(K - k, kBlockDepth);
    pack(k, depth, b);
    for (int n = 0; n < column_end; n += kWideTile) {
      const int width = std::min(column_end - n, kWideTile);
      for (int m = 0; m < row_end; m += kTileRows) {
        add_tile_product(a + m * K + k, K, std::min(rows - m, kTileRows), b + n, width, depth,
                         sums + m * kBlockColumns + n);
      }
    }
  }
  for (int m = 0; m < rows; ++m) store(m, sums + m * kBlockColumns);
}

}  // namespace convladder::cpu_reference::gemm
