/// @file row_tiles.cuh
/// @brief Tiles of the products of rows of pairs: which tile suits a problem, and which tap a tile
/// belongs to.
#pragma once

#include <type_traits>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// Steps whose tiles are in shared memory, or on their way: three of 16 channels, or two of 32.
template <class Tile>
inline constexpr int kStages = Tile::kBlockK > 16 ? 2 : 3;

/// Calls body(std::type_identity<Tile>()) for the gemm::ThreadTile that suits `rows` rows that are
/// multiplied at once: as wide as the output channels, and smaller where there would be few tiles
/// of 128 rows for each SM.
template <class Body>
void with_tile(std::int64_t rows, const SparseConvProblem& conv, const Body& body) {
  using gemm::ThreadTile;
  const std::int64_t tiles = rows / 128 * ceil_div(conv.Cout, 128);
  const bool many = tiles >= enough_blocks(1024);
  const bool some = tiles >= ceil_div<std::int64_t>(enough_blocks(256), 2);
  if (!some) {
    body(std::type_identity<ThreadTile<32, 32, 16, 4, 4, 4>>());
  } else if (conv.Cout <= 32 && conv.Cin <= 16) {
    body(std::type_identity<ThreadTile<128, 32, 16, 8, 4, 4>>());
  } else if (conv.Cout <= 32) {
    body(std::type_identity<ThreadTile<128, 32, 32, 8, 4, 4>>());
  } else if (!many) {
    body(std::type_identity<ThreadTile<64, 64, 16, 4, 8, 4>>());
  } else if (conv.Cout <= 64) {
    body(std::type_identity<ThreadTile<128, 64, 16, 8, 8, 8>>());
  } else {
    body(std::type_identity<ThreadTile<128, 128, 16, 8, 8, 4>>());
  }
}

/// For a rung's choice: the tile that with_tile() takes.
inline std::string tile_in_words(std::int64_t rows, const SparseConvProblem& conv) {
  std::string words;
  with_tile(rows, conv, [&]<class Tile>(std::type_identity<Tile>) {
    words = text(Tile::kBlockM, " x ", Tile::kBlockN, Tile::kBlockK > 16 ? " in deep steps" : "");
  });
  return words;
}

/// Where the slots of tap k begin if all pairs are cut into tiles of `tile` rows, none across two
/// taps. Rounding down and one slot more for each tap are enough, at most one of them stays empty,
/// and no thread has to add up the tiles of the taps before:
///
///     offsets     0           10     13                    tile = 4
///     tap 0       [....][....][..]                         slots 0, 1, 2
///     tap 1                   [...]                        slot  10 / 4 + 1 = 3
///     tap 2                          [....]...             slots 13 / 4 + 2 = 5, ...; 4 is empty
HOST_DEVICE constexpr std::int64_t first_slot(std::int64_t offset, int k, int tile) {
  return offset / tile + k;
}

/// A tile's rows.
struct PairTile {
  int k;               ///< Their tap.
  std::int64_t first;  ///< The first of the pairs.
  int count;           ///< How many; 0 or less: the slot is empty.
};

/// The tile in that slot, for slot < first_slot(pairs, KV, tile). Whole warps call it: each lane
/// looks at another tap's offset, [KV + 1].
__device__ inline PairTile tile_in_slot(std::int64_t slot, const std::int32_t* offsets, int KV,
                                        int tile) {
  int begun = 0;  // taps whose slots begin here or before
  for (int k0 = 0; k0 < KV; k0 += 32) {
    const int k = k0 + static_cast<int>(threadIdx.x) % 32;
    const bool has_begun = k < KV && first_slot(offsets[k], k, tile) <= slot;
    begun += __popc(__ballot_sync(0xFFFFFFFF, has_begun));
  }
  const int k = begun - 1;
  const std::int64_t begin = offsets[k], end = offsets[k + 1];
  const std::int64_t first = begin + (slot - first_slot(begin, k, tile)) * tile;
  return {k, first, static_cast<int>(end - first < tile ? end - first : tile)};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
