/// @file register_tile.cpp
/// @brief The innermost loop of gemm/blocked.cpp: a tile of accumulators in vector registers.
#include "cpu_reference/gemm/register_tile.hpp"

#include <array>
#include <cstring>

namespace convladder::cpu_reference::gemm {
namespace {

/// The address of each row of the tile's part of a.
using Rows = std::array<const float*, kTileRows>;

/// Like add_tile_product(), for kVectors * kLanes columns. With two vectors per row, 12 registers
/// hold the accumulators, two a row of b, and one an element of a in all lanes: 15 of the 16
/// registers of SSE and AVX.
/// @tparam kLanes floats per register
/// @tparam kVectors registers per row of the tile
template <int kLanes, int kVectors>
[[gnu::always_inline]] inline void add_product(const Rows& a, const float* b, std::int64_t depth,
                                               float* sums) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  Vector tile[kTileRows][kVectors];
  for (int m = 0; m < kTileRows; ++m) {
    for (int v = 0; v < kVectors; ++v)
      std::memcpy(&tile[m][v], sums + m * kBlockColumns + v * kLanes, sizeof(Vector));
  }
  for (std::int64_t k = 0; k < depth; ++k, b += kBlockColumns) {
    Vector row[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&row[v], b + v * kLanes, sizeof(Vector));
    for (std::size_t m = 0; m < kTileRows; ++m) {
      for (int v = 0; v < kVectors; ++v) tile[m][v] += a[m][k] * row[v];
    }
  }
  for (int m = 0; m < kTileRows; ++m) {
    for (int v = 0; v < kVectors; ++v)
      std::memcpy(sums + m * kBlockColumns + v * kLanes, &tile[m][v], sizeof(Vector));
  }
}

/// The baseline instruction set of the build: SSE2 on x86-64, NEON on AArch64.
void with_four_lanes(const Rows& a, const float* b, int columns, std::int64_t depth, float* sums) {
  for (int n = 0; n < columns; n += 8) add_product<4, 2>(a, b + n, depth, sums + n);
}

#ifdef __x86_64__
[[gnu::target("fma")]] void with_eight_lanes(const Rows& a, const float* b, int columns,
                                             std::int64_t depth, float* sums) {
  for (int n = 0; n < columns; n += 16) add_product<8, 2>(a, b + n, depth, sums + n);
}

[[gnu::target("avx512f")]] void with_sixteen_lanes(const Rows& a, const float* b, int columns,
                                                   std::int64_t depth, float* sums) {
  if (columns == kWideTile) return add_product<16, 2>(a, b, depth, sums);
  add_product<16, 1>(a, b, depth, sums);
}
#endif

}  // namespace

void add_tile_product(const float* a, std::int64_t row_step, int rows, const float* b, int columns,
                      std::int64_t depth, float* sums) {
  Rows row;
  for (int m = 0; m < kTileRows; ++m)
    row.at(static_cast<std::size_t>(m)) = a + std::min(m, rows - 1) * row_step;
#ifdef __x86_64__
  // Fused multiply-add: with registers of 8 floats since 2013, of 16 floats on servers since 2017.
  // The instruction set is detected once at run time, not chosen by the compiler, so that one
  // program runs on every CPU.
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool has_fma = __builtin_cpu_supports("fma") != 0;
  if (has_avx512) return with_sixteen_lanes(row, b, columns, depth, sums);
  if (has_fma) return with_eight_lanes(row, b, columns, depth, sums);
#endif
  with_four_lanes(row, b, columns, depth, sums);
}

}  // namespace convladder::cpu_reference::gemm
