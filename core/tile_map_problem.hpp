/// @file tile_map_problem.hpp
/// @brief Tile maps: which part of a tiled product each thread block computes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/array.hpp"

namespace convladder {

/// The tile maps. Where a map has one, CUTLASS's name for it stands beside.
enum class TileMap {
  row_major,   ///< tile row by tile row
  identity1,   ///< GemmIdentityThreadblockSwizzle<1>: tile column by tile column
  identity2,   ///< ...<2>: super-columns up to 2 tiles wide, walked row by row
  identity4,   ///< ...<4>
  identity8,   ///< ...<8>
  horizontal,  ///< GemmHorizontalThreadblockSwizzle: grid.x runs over the tile columns
  grouped,     ///< Triton's GROUP_SIZE_M: super-rows, walked column by column
  hilbert,     ///< along a Hilbert curve
  split_k,     ///< GemmSplitKIdentityThreadblockSwizzle: several blocks share a tile's k-steps
  batched,     ///< GemmBatchedIdentityThreadblockSwizzle: grid.z runs over a batch of products
  stream_k     ///< equal shares of all k-steps, which cross tile borders (Osama et al., 2023)
};

struct TileMapName {
  TileMap map;
  std::string_view name;
};

/// Every map with its name, in the order of the enumeration.
inline constexpr std::array<TileMapName, 11> kTileMaps = {{{TileMap::row_major, "row_major"},
                                                           {TileMap::identity1, "identity1"},
                                                           {TileMap::identity2, "identity2"},
                                                           {TileMap::identity4, "identity4"},
                                                           {TileMap::identity8, "identity8"},
                                                           {TileMap::horizontal, "horizontal"},
                                                           {TileMap::grouped, "grouped"},
                                                           {TileMap::hilbert, "hilbert"},
                                                           {TileMap::split_k, "split_k"},
                                                           {TileMap::batched, "batched"},
                                                           {TileMap::stream_k, "stream_k"}}};

constexpr std::string_view name_of(TileMap map) {
  return kTileMaps[static_cast<std::size_t>(map)].name;
}

/// True for the maps whose units are whole output tiles of one product.
constexpr bool hands_out_whole_tiles(TileMap map) {
  return map != TileMap::split_k && map != TileMap::batched && map != TileMap::stream_k;
}

/// The tiles of a batch of products, and how they are handed out. Trivially copyable.
struct TileMapProblem {
  TileMap map = TileMap::row_major;
  int tiles_m = 1, tiles_n = 1;  ///< output tiles down and across
  int k_steps = 1;               ///< steps of the main loop along k for one tile
  int splits = 1;                ///< blocks that share a tile (split_k)
  int batch = 1;                 ///< products
  int blocks = 132;              ///< blocks that run at once: stream_k shares all work among them
};

/// Columns of the result: block, batch, tile m, tile n, first k-step, last k-step + 1.
inline constexpr int kUnitColumns = 6;

/// The same problem. @throws BadInput if a count is out of range for the map.
TileMapProblem validated(TileMapProblem problem);

/// One line: "hilbert, 10 x 6 tiles of 4 k-steps".
std::string describe(const TileMapProblem& problem);

/// The arrays: none to `units` [units][6], sorted by block, then by the order in which a block works.
Signature tile_map_signature(const TileMapProblem& problem);

}  // namespace convladder
