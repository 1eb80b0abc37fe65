/// @file tile_map_problem.hpp
/// @brief Tile maps: which part of a tiled GEMM each thread block computes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/arithmetic.hpp"
#include "core/output_creator.hpp"
#include "core/types.hpp"

namespace convladder {

/// A map and its name.
struct TileMapName {
  TileMap map;            ///< The map.
  std::string_view name;  ///< The name on the command line.
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

/// As on the command line: "hilbert".
constexpr std::string_view name_of(TileMap map) {
  return kTileMaps[static_cast<std::size_t>(map)].name;
}

/// True for the maps whose units are whole output tiles of one GEMM.
constexpr bool hands_out_whole_tiles(TileMap map) {
  return map != TileMap::split_k && map != TileMap::batched && map != TileMap::stream_k;
}

/// The default number of blocks that share a tile under split_k (at most the number of k-steps).
inline constexpr int kDefaultSplits = 2;

/// The tiles of a batch of GEMMs, and their assignment to blocks. Trivially copyable.
///
/// Every map supports a batch: grid.z runs over it, outermost; only stream_k, which has a
/// one-dimensional grid, includes it in the k-steps that it divides. grid.z is limited to 65535:
/// with more GEMMs, block z processes z, z + gridDim.z, z + 2 * gridDim.z ... one after the other.
struct TileMapProblem {
  TileMap map = TileMap::row_major;  ///< Which map.
  int tiles_m = 1, tiles_n = 1;      ///< rows and columns of output tiles
  int k_steps = 1;                   ///< steps of the main loop along k for one tile
  int splits = 1;                    ///< blocks that share a tile (split_k)
  int batch = 1;                     ///< number of GEMMs
  int blocks = 132;    ///< blocks that run concurrently: stream_k divides all work among them
  int group_rows = 8;  ///< tile rows of a super-row (grouped); 8 in Triton's tutorial
};

/// The blocks that a map launches along the axes of its grid.
struct BlockGrid {
  std::int64_t x, y, z;  ///< Along each axis.
};

/// log2 of the width, in tiles, of the super-columns of identity<N>; 0 for the other maps. It is as
/// large as N permits, but not larger than useful for the number of tiles (CUTLASS's
/// get_log_tile()).
HOST_DEVICE constexpr int log_tile(TileMap map, int tiles_n) {
  const int N = map == TileMap::identity8   ? 8
                : map == TileMap::identity4 ? 4
                : map == TileMap::identity2 ? 2
                                            : 1;
  if (N >= 8 && tiles_n >= 6) return 3;
  if (N >= 4 && tiles_n >= 3) return 2;
  if (N >= 2 && tiles_n >= 2) return 1;
  return 0;
}

/// log2 of the side of hilbert's squares: the least power of two that spans the smaller of tile
/// rows and tile columns.
HOST_DEVICE constexpr int log_hilbert_side(int tiles_m, int tiles_n) {
  const int fewer = tiles_m < tiles_n ? tiles_m : tiles_n;
  int log_side = 0;
  while (std::int64_t{1} << log_side < fewer) ++log_side;
  return log_side;
}

/// The grid of a map. It may have more blocks than there are tiles: the remaining blocks exit at
/// once.
BlockGrid grid_of(const TileMapProblem& problem);

/// The reason why the map's grid cannot be launched; empty if it can.
std::optional<std::string> why_no_grid(const TileMapProblem& problem);

/// Columns of the result: block, batch, tile m, tile n, first k-step, last k-step + 1.
inline constexpr int kUnitColumns = 6;

/// The same problem. @throws BadInput if a count is out of range for the map, or if its grid is too
/// large.
TileMapProblem validated(TileMapProblem problem);

/// One line: "hilbert, 10 x 6 tiles of 4 k-steps".
std::string describe(const TileMapProblem& problem);

/// A short description of the assignment, for the choice of rungs that use a map.
std::string map_in_words(const TileMapProblem& problem);

/// The arrays: no input; `units` [units][6], sorted by block, then by the block's order of
/// execution. Each (GEMM, tile, k-step) is in exactly one unit; a block that exits at once has
/// none.
Signature tile_map_signature(const TileMapProblem& problem);

/// The array at the place where a rung runs.
struct TileMapArrays {
  using Problem = TileMapProblem;  ///< The problem type of these arrays.
  OutputCreator create = {};       ///< called once, for "units" [units][6]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const TileMapProblem& problem, const TileMapArrays& arrays);

}  // namespace convladder
