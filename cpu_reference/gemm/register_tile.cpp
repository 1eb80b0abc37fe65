/// @file register_tile.cpp
/// @brief The innermost loop of gemm/blocked.cpp: a tile of accumulators in vector registers.
#include "cpu_reference/gemm/register_tile.hpp"

#include <cstring>

namespace convladder::cpu_reference::gemm {
namespace {

/// As add_tile_product(), for 2 * kLanes columns: 12 registers hold the accumulators, two a row of
/// b, and one a number of a in all lanes. That is 15 of the 16 registers of SSE and AVX.
/// @tparam kLanes floats of a register
template <int kLanes>
[[gnu::always_inline]] inline void add_product(const float* strip, const float* b,
                                               std::int64_t depth, float* sums) {
  using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  Vector tile[kTileRows][2];
  for (int m = 0; m < kTileRows; ++m)
    std::memcpy(tile[m], sums + m * kBlockColumns, sizeof tile[m]);
  for (std::int64_t k = 0; k < depth; ++k, strip += kTileRows, b += kBlockColumns) {
    Vector left, right;
    std::memcpy(&left, b, sizeof left);
    std::memcpy(&right, b + kLanes, sizeof right);
    for (int m = 0; m < kTileRows; ++m) {
      tile[m][0] += strip[m] * left;
      tile[m][1] += strip[m] * right;
    }
  }
  for (int m = 0; m < kTileRows; ++m)
    std::memcpy(sums + m * kBlockColumns, tile[m], sizeof tile[m]);
}

/// What every CPU has that the program is compiled for: on x86-64 SSE2, on AArch64 NEON.
void with_four_lanes(const float* strip, const float* b, std::int64_t depth, float* sums) {
  add_product<4>(strip, b, depth, sums);
  add_product<4>(strip, b + 8, depth, sums + 8);
}

#ifdef __x86_64__
[[gnu::target("fma")]] void with_eight_lanes(const float* strip, const float* b, std::int64_t depth,
                                             float* sums) {
  add_product<8>(strip, b, depth, sums);
}
#endif

}  // namespace

void add_tile_product(const float* strip, const float* b, std::int64_t depth, float* sums) {
#ifdef __x86_64__
  // Of 2013 or newer: registers of eight floats, and a multiplication and an addition at once. The
  // program asks once and not the compiler, so that one program runs on every CPU.
  static const bool has_fma = __builtin_cpu_supports("fma") != 0;
  if (has_fma) return with_eight_lanes(strip, b, depth, sums);
#endif
  with_four_lanes(strip, b, depth, sums);
}

}  // namespace convladder::cpu_reference::gemm
