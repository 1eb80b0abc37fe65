/// @file register_tile.hpp
/// @brief A block of a GEMM on the CPU: operands are packed to stay in the caches, and a tile of
/// accumulators stays in vector registers. See gemm/blocked.cpp.
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
inline constexpr int kWideTile = 32;      ///< Columns of a tile if that many remain.
inline constexpr int kBlockRows = 192;    ///< Rows of c per block.
inline constexpr int kBlockColumns = 96;  ///< Columns of c per block.
inline constexpr int kBlockDepth = 256;   ///< Rows of b that are packed at a time: 96 KB.
inline constexpr double kNanoseconds =
    0.015;  ///< Cost of a multiply-add on one core, for parallel_for().

/// The smallest multiple of the step that is at least `count`. @param count at least 0
template <class Integer>
constexpr Integer rounded_up(Integer count, int multiple) {
  return ceil_div<Integer>(count, multiple) * multiple;
}

/// Multiplies kTileRows rows of a by `columns` columns of a block of b, [depth][kBlockColumns], and
/// adds the result to a tile of `sums`, whose rows are kBlockColumns apart.
/// @param a its first element; consecutive rows are `row_step` floats apart
/// @param rows number of rows of a; the remaining rows of the tile are copies of the last
/// @param columns kTileColumns or kWideTile
void add_tile_product(const float* a, std::int64_t row_step, int rows, const float* b, int columns,
                      std::int64_t depth, float* sums);

/// Rows per block of a GEMM with M rows: kBlockRows, or fewer if there would be less than two
/// blocks per core, but enough rows that packing b takes less time than the multiplication.
/// @param others number of blocks with the same rows
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

/// The elements of an operand as floats: the operand itself, or a converted copy in `floats`, made
/// on all cores.
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
/// @param pack called with (k, depth, b); writes rows k ... k + depth - 1 of the block's columns of
/// b to b [depth][kBlockColumns], followed by zeros up to a multiple of kTileColumns
/// @param store called with (m, sums) when row m of the block is complete
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
