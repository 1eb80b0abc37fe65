// Compares the tile maps that have a model in CUTLASS with CUTLASS's own functors, for all tile
// counts up to 40 x 40: the same grid, and the same tile for every block. README.md describes how
// to run it. It needs CUTLASS's headers, which are not part of this repository.
#include <cuda_runtime.h>

// The variables that CUTLASS's device functions read when they are compiled for the host.
static uint3 blockIdx, threadIdx;
static dim3 blockDim, gridDim;

#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "core/implementation.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::cpu_reference::tile_map {
extern const Implementation<TileMapArrays> maps;
}

namespace {

using convladder::TileMap;
using convladder::TileMapProblem;
using cutlass::gemm::GemmCoord;
namespace threadblock = cutlass::gemm::threadblock;

constexpr int kMostTiles = 40;  // along each axis

/// A block, counted in launch order, and its tile; z is the product or the split.
struct Place {
  int block, m, n, z;
  bool operator==(const Place&) const = default;
};

std::vector<Place> ours(const TileMapProblem& map) {
  std::vector<std::int32_t> rows;
  const auto create = [&](const std::string&, const convladder::Shape& shape) {
    rows.resize(static_cast<std::size_t>(shape[0] * shape[1]));
    return rows.data();
  };
  convladder::cpu_reference::tile_map::maps(map, {create});
  std::vector<Place> places;
  for (std::size_t i = 0; i < rows.size(); i += convladder::kUnitColumns) {
    // With k_steps = splits, a unit's first k-step is its split.
    const int z = map.map == TileMap::split_k ? rows[i + 4] : rows[i + 1];
    places.push_back({rows[i], rows[i + 2], rows[i + 3], z});
  }
  return places;
}

/// Calls offset() for each block of a grid, in launch order, and keeps the tiles inside.
template <class Offset>
std::vector<Place> theirs(dim3 grid, GemmCoord tiles, const Offset& offset) {
  std::vector<Place> places;
  int block = 0;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x, ++block) {
        const GemmCoord tile = offset();
        if (tile.m() >= tiles.m() || tile.n() >= tiles.n()) continue;  // like CUTLASS's kernels
        places.push_back({block, tile.m(), tile.n(), tile.k()});
      }
    }
  }
  return places;
}

/// The offset as computed by CUTLASS's kernels.
template <class Functor>
GemmCoord usual_offset(GemmCoord tiles) {
  if constexpr (requires { Functor::get_tile_offset(0); }) {
    return Functor::get_tile_offset(Functor::get_log_tile(tiles));
  } else {
    return Functor::get_tile_offset(tiles);
  }
}

/// @param depth products (batched) or splits (split_k)
template <class Functor>
bool compare(const char* functor, TileMap map, int depth = 1) {
  int different = 0;
  for (int m = 1; m <= kMostTiles; ++m) {
    for (int n = 1; n <= kMostTiles; ++n) {
      TileMapProblem problem{.map = map, .tiles_m = m, .tiles_n = n};
      if (map == TileMap::split_k) problem.k_steps = problem.splits = depth;
      if (map == TileMap::batched) problem.batch = depth;
      const GemmCoord tiles(m, n, depth);
      const dim3 grid = Functor::get_grid_shape(tiles);
      const convladder::BlockGrid our_grid = convladder::grid_of(problem);
      const bool same_grid = our_grid.x == grid.x && our_grid.y == grid.y && our_grid.z == grid.z;
      const auto offset = [&] { return usual_offset<Functor>(tiles); };
      if (!same_grid || ours(problem) != theirs(grid, tiles, offset)) ++different;
    }
  }
  std::printf("%-40s %-10s %s\n", functor, std::string(name_of(map)).c_str(),
              different == 0 ? "the same in all 1600" : "DIFFERENT");
  return different == 0;
}

/// The tiles that get_tile_offset(GemmCoord) reaches in the grid of get_grid_shape().
template <int N>
void second_overload() {
  using Functor = threadblock::GemmIdentityThreadblockSwizzle<N>;
  int incomplete = 0, twice = 0, of_10_x_6 = 0;
  for (int m = 1; m <= kMostTiles; ++m) {
    for (int n = 1; n <= kMostTiles; ++n) {
      const GemmCoord tiles(m, n, 1);
      const auto places = theirs(Functor::get_grid_shape(tiles), tiles,
                                 [&] { return Functor::get_tile_offset(tiles); });
      std::set<std::pair<int, int>> reached;
      for (const Place& place : places) reached.emplace(place.m, place.n);
      if (static_cast<int>(reached.size()) != m * n) ++incomplete;
      if (reached.size() != places.size()) ++twice;
      if (m == 10 && n == 6) of_10_x_6 = static_cast<int>(reached.size());
    }
  }
  std::printf(
      "get_tile_offset(GemmCoord), N = %d: tiles left out for %d of 1600 counts, computed twice "
      "for "
      "%d; 10 x 6: %d of 60\n",
      N, incomplete, twice, of_10_x_6);
}

}  // namespace

int main() {
  using namespace threadblock;
  bool same = true;
  same &= compare<GemmIdentityThreadblockSwizzle<1>>("GemmIdentityThreadblockSwizzle<1>",
                                                     TileMap::identity1);
  same &= compare<GemmIdentityThreadblockSwizzle<2>>("GemmIdentityThreadblockSwizzle<2>",
                                                     TileMap::identity2);
  same &= compare<GemmIdentityThreadblockSwizzle<4>>("GemmIdentityThreadblockSwizzle<4>",
                                                     TileMap::identity4);
  same &= compare<GemmIdentityThreadblockSwizzle<8>>("GemmIdentityThreadblockSwizzle<8>",
                                                     TileMap::identity8);
  same &= compare<GemmHorizontalThreadblockSwizzle>("GemmHorizontalThreadblockSwizzle",
                                                    TileMap::horizontal);
  same &= compare<GemmBatchedIdentityThreadblockSwizzle>("GemmBatchedIdentityThreadblockSwizzle",
                                                         TileMap::batched, 3);
  same &= compare<GemmSplitKIdentityThreadblockSwizzle<1>>(
      "GemmSplitKIdentityThreadblockSwizzle<1>", TileMap::split_k, 3);
  second_overload<1>();
  second_overload<2>();
  second_overload<4>();
  second_overload<8>();
  return same ? 0 : 1;
}
