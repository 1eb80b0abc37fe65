/// @file pair_product.cuh
/// @brief What split_k_atomics.cu and split_k.cu work on, and how they cut it.
#pragma once

#include <algorithm>

#include "core/implementation.hpp"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

constexpr int kStepPairs = 16;  ///< Pairs whose rows are in shared memory at a time, in each stage.

/// What a block needs to know.
struct PairProduct {
  int Cin, Cout;                        ///< Channels of features and of dy.
  PairParts parts;                      ///< how pairs are handed out
  const float *features, *dy;           ///< [N][Cin], [M][Cout]
  const std::int32_t *pairs, *offsets;  ///< [P][3], [KV + 1]
};

/// A tile of kStepPairs rows, as they lie.
template <int kTileChannels>
struct PlainRows {
  using Number = float;                                                 ///< See RowGather.
  static constexpr int kPairs = kStepPairs, kChannels = kTileChannels;  ///< See RowGather.
  /// Where channel c of pair i is.
  HOST_DEVICE static int at(int i, int c) { return i * kChannels + c; }
};

constexpr int kLongestPart = 1 << 16;  ///< Pairs of a part, at most.

/// The parts of a problem: as many as blocks run at once, on an H200.
inline PairParts pair_parts_of(const SparseConvProblem& conv) {
  const int channels = tile_channels(conv);
  const std::int64_t tiles =
      std::int64_t{ceil_div(conv.Cin, channels)} * ceil_div(conv.Cout, channels);
  const std::int64_t blocks = 132 * (channels == 128 ? 2 : 8);
  return cut_pairs(conv, std::max<std::int64_t>(blocks / tiles, 1), kStepPairs, kLongestPart);
}

/// The product of a problem.
inline PairProduct pair_product_of(const SparseConvProblem& conv, const SparseWgradArrays& arrays) {
  return {.Cin = conv.Cin,
          .Cout = conv.Cout,
          .parts = pair_parts_of(conv),
          .features = arrays.features,
          .dy = arrays.dy,
          .pairs = arrays.pairs,
          .offsets = arrays.offsets};
}

/// Whether rows begin at multiples of 16 bytes.
inline bool rows_are_aligned(const PairProduct& product) {
  const auto address = reinterpret_cast<std::uintptr_t>(product.features) |
                       reinterpret_cast<std::uintptr_t>(product.dy);
  return (product.Cin | product.Cout) % 4 == 0 && address % 16 == 0;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
