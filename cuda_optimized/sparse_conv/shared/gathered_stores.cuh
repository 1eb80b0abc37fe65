/// @file gathered_stores.cuh
/// @brief Stores a tile's sums, finished and rounded, to the rows where they belong.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/permuted_pieces.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

template <class Shape>
class TapList;

/// Stores sums of the tile's rows.
/// @param sums those of this warp, as WarpSums or WarpgroupSums spreads them
/// @param n0 the tile's first channel
/// @param first_row of the sums, in the tile @param first_channel of the sums, in the tile
template <class Shape, class Sums>
__device__ void store_rows(const GatheredRows<typename Shape::Number>& conv,
                           const TapList<Shape>& list, const Sums& sums, int n0, int first_row,
                           int first_channel) {
  using T = typename Shape::Number;
  const bool whole = Shape::kPieces && n0 + Shape::N <= conv.channels;
  sums.for_each([&](int row, int channel, const auto& values) {
    constexpr int kCount = Sums::kTogether;
    row += first_row;
    if (!list.has_row(row)) return;
    channel += n0 + first_channel;
    T results[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool exists = whole || channel + i < conv.channels;
      const float bias = conv.bias != nullptr && exists ? conv.bias[channel + i] : 0.0f;
      results[i] = rounded_to<T>(activated(conv.activation, values[i] + bias));
    }
    T* const to = conv.to + std::int64_t{list.row(row)} * conv.channels + channel;
    if (whole) {
      using Together =
          std::conditional_t<sizeof results == 16, float4,
                             std::conditional_t<sizeof results == 8, float2, std::uint32_t>>;
      Together together;
      std::memcpy(&together, results, sizeof together);
      *reinterpret_cast<Together*>(to) = together;
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (channel + i < conv.channels) to[i] = results[i];
      }
    }
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
