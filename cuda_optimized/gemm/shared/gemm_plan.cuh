/// @file gemm_plan.cuh
/// @brief fp32 GEMMs in tiles: the matrices, the shape of the tiles, what is supported, and access
/// to four neighbours of a row at once (float4).
#pragma once

#include <algorithm>
#include <array>

#include "core/cuda/device_attribute.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// What a kernel works on: c[M][N] = a[M][K] * b[K][N].
struct Product {
  int M, N, K;     ///< c is M x N, the sums are K long.
  const float* a;  ///< [M][K], row-major, as are all three.
  const float* b;  ///< [K][N]
  float* c;        ///< [M][N]
};

/// The problem's arrays and extents.
inline Product product_of(const GemmProblem& gemm, const GemmArrays& arrays) {
  return {gemm.M, gemm.N, gemm.K, arrays.a, arrays.b, arrays.c};
}

/// The shapes of a block's tile of c. A large tile loads less for each multiply-add, but a small
/// product has few large tiles, and most of a machine would have none.
enum class TileShape { large, wide, medium, small };
/// From the largest to the smallest.
inline constexpr std::array<TileShape, 4> kTileShapes = {TileShape::large, TileShape::wide,
                                                         TileShape::medium, TileShape::small};

/// Rows and columns of a shape.
constexpr OutputTile extents_of(TileShape shape) {
  switch (shape) {
    case TileShape::large: return {128, 128};
    case TileShape::wide: return {64, 128};
    case TileShape::medium: return {64, 64};
    case TileShape::small: return {32, 32};
  }
  return {};
}

/// Tiles that keep a large GPU busy: an H200 has 132 SMs. A few fewer will do.
inline constexpr std::int64_t kEnoughTiles = 120;

/// The number of tiles of that shape.
inline std::int64_t count_tiles(const GemmProblem& gemm, OutputTile tile) {
  return std::int64_t{ceil_div(gemm.M, tile.rows)} * ceil_div(gemm.N, tile.columns);
}

/// The largest shape of which there are enough tiles.
inline TileShape shape_for(const GemmProblem& gemm) {
  const std::int64_t enough = enough_blocks(kEnoughTiles);
  for (const TileShape shape : kTileShapes) {
    if (count_tiles(gemm, extents_of(shape)) >= enough) return shape;
  }
  return TileShape::small;
}

/// Its extents: as in Implementation::tile.
inline OutputTile tile_for(const GemmProblem& gemm) { return extents_of(shape_for(gemm)); }

/// A problem's tiles for a map.
inline TileMapProblem tiles_of(const GemmProblem& gemm, OutputTile tile, int block_k, TileMap map) {
  return {.map = map,
          .tiles_m = ceil_div(gemm.M, tile.rows),
          .tiles_n = ceil_div(gemm.N, tile.columns),
          .k_steps = ceil_div(gemm.K, block_k)};
}

/// Why a float rung does not support a problem of another type.
inline Declined why_no_floats(const GemmProblem& gemm) {
  if (gemm.dtype == DType::f32) return {};
  return "float32 only";
}

/// Why a rung whose blocks compute one whole tile each, of the shape tile_for(), declines a
/// problem, if it does.
inline Declined supports_whole_tiles(const GemmProblem& gemm) {
  if (const Declined why = why_no_floats(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  return tile_map::why_no_whole_tiles(tiles_of(gemm, tile_for(gemm), 1, gemm.map));
}

/// Whether rows of a, b and c can be read and written as float4: they all are aligned to 16 bytes,
/// and the matrices' rows are multiples of 4 long.
inline bool rows_are_aligned(const Product& product) {
  const auto aligned = [](const float* matrix) {
    return reinterpret_cast<std::uintptr_t>(matrix) % sizeof(float4) == 0;
  };
  return product.K % 4 == 0 && product.N % 4 == 0 && aligned(product.a) && aligned(product.b) &&
         aligned(product.c);
}

/// For a rung's choice: what holds if the matrices are aligned to 16 bytes, as null does.
inline const char* rows_in_words(const GemmProblem& gemm) {
  return rows_are_aligned({gemm.M, gemm.N, gemm.K, nullptr, nullptr, nullptr})
             ? "rows in fours"
             : "rows of any length";
}

/// Columns `column` ... `column` + 3 of row `row` of a row-major matrix; zeros outside of it.
/// `row` and `column` are not negative, and `column` is a multiple of 4.
/// @tparam kAligned the matrix is aligned to 16 bytes, and `columns` is a multiple of 4: then the
/// four are one load, and all of them are inside, or none
template <bool kAligned>
__device__ inline float4 load_four(const float* matrix, int rows, int columns, std::int64_t row,
                                   std::int64_t column) {
  float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
  if (row >= rows || column >= columns) return four;
  const float* from = matrix + row * columns + column;
  if constexpr (kAligned) {
    four = *reinterpret_cast<const float4*>(from);
  } else {
    four.x = from[0];
    if (column + 1 < columns) four.y = from[1];
    if (column + 2 < columns) four.z = from[2];
    if (column + 3 < columns) four.w = from[3];
  }
  return four;
}

/// to[0 ... 3] = from[0 ... 3] in one load; `from` is a multiple of 16 bytes.
__device__ inline void read_four(const float* from, float* to) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}

/// Stores what of the four lies inside of the matrix; otherwise as load_four().
template <bool kAligned>
__device__ inline void store_four(float* matrix, int rows, int columns, std::int64_t row,
                                  std::int64_t column, float4 four) {
  if (row >= rows || column >= columns) return;
  float* to = matrix + row * columns + column;
  if constexpr (kAligned) {
    *reinterpret_cast<float4*>(to) = four;
  } else {
    to[0] = four.x;
    if (column + 1 < columns) to[1] = four.y;
    if (column + 2 < columns) to[2] = four.z;
    if (column + 3 < columns) to[3] = four.w;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
