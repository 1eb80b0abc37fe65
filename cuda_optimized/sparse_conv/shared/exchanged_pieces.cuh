/// @file exchanged_pieces.cuh
/// @brief Stores what wgmma leaves: threads exchange sums until each has whole pieces.
#pragma once

#include <cstring>

#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/stage_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// What a sum becomes in the result; of a channel that does not exist, anything.
template <class T>
__device__ T finished(const GatheredRows<T>& conv, int channel, float sum) {
  const bool biased = conv.bias != nullptr && channel < conv.channels;
  const float bias = biased ? conv.bias[channel] : 0.0f;
  return rounded_to<T>(activated(conv.activation, sum + bias));
}

/// Stores a warp's 16 rows. wgmma leaves four lanes two neighbours each of the 8 sums that a
/// fragment has of a row; so they exchange pairs, until each has neighbours of one fragment:
///
///                fragment 0   1   2   3                              0 ... 3
///       lane 0           a0  b0  c0  d0     with lane ^ 1, and       a0 a1 a2 a3
///       lane 1           a1  b1  c1  d1     with lane ^ 2 :          b0 b1 b2 b3
///       lane 2           a2  b2  c2  d2                              c0 c1 c2 c3
///       lane 3           a3  b3  c3  d3                              d0 d1 d2 d3
///
/// @param rows of this lane, or -1 @param first the tile's first channel
template <class Shape, class Sums>
__device__ void store_pieces(const GatheredRows<typename Shape::Number>& conv, const Sums& sums,
                             const std::int32_t (&rows)[2], int first) {
  using T = typename Shape::Number;
  constexpr int kGroup = kExchanged<Shape>;
  constexpr int kWords = Shape::kSize / 2;  // of a pair
  struct alignas(2 * kGroup * Shape::kSize) Piece {
    std::uint32_t words[kGroup][kWords];
  };
  const int place = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j0 = 0; j0 < Shape::N / 8; j0 += kGroup) {
      Piece piece;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const int channel = first + 8 * (j0 + j) + 2 * place;
        T pair[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          pair[e] = finished(conv, channel + e, sums.of[4 * (j0 + j) + 2 * half + e]);
        }
        std::memcpy(piece.words[j], pair, sizeof pair);
      }
#pragma unroll
      for (int apart = 1; apart < kGroup; apart *= 2) {
        const bool upper = (place & apart) != 0;
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          if ((j & apart) != 0) continue;
#pragma unroll
          for (int w = 0; w < kWords; ++w) {
            std::uint32_t &low = piece.words[j][w], &high = piece.words[j + apart][w];
            const std::uint32_t given = __shfl_xor_sync(0xFFFFFFFF, upper ? low : high, apart);
            (upper ? low : high) = given;
          }
        }
      }
      const int channel = first + 8 * (j0 + place % kGroup) + 2 * (place / kGroup * kGroup);
      if (rows[half] < 0 || channel >= conv.channels) continue;
      T* const to = conv.to + std::int64_t{rows[half]} * conv.channels + channel;
      *reinterpret_cast<Piece*>(to) = piece;
    }
  }
}

/// Stores a tile of sums.
/// @param sums of this warp, kRowTiles of them @param rows of this lane, or -1
/// @param first the tile's first channel
/// @param pieces whether rows of the result consist of them
template <class Shape, class Sums>
__device__ void store_tile(const GatheredRows<typename Shape::Number>& conv,
                           const Sums (&sums)[kRowTiles], const std::int32_t (&rows)[kRowTiles][2],
                           int first, bool pieces) {
  if (pieces) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) store_pieces<Shape>(conv, sums[i], rows[i], first);
    return;
  }
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    sums[i].for_each([&](int row, int column, const auto& values) {
      const std::int32_t to = row < 8 ? rows[i][0] : rows[i][1];
      if (to < 0) return;
      const int channel = first + column;
      for (int e = 0; e < 2 && channel + e < conv.channels; ++e) {
        conv.to[std::int64_t{to} * conv.channels + channel + e] =
            finished(conv, channel + e, values[e]);
      }
    });
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
