/// @file tile_map.cpp
/// @brief Definition of tile_map: which block computes which tile.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/tile_map_problem.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace tile_map {
namespace {

std::int64_t longest_sum(const TileMapProblem&) { return 1; }

/// The index of a point on a Hilbert curve through a square whose side is a power of two: from the
/// largest quarter to the smallest, each rotated to the curve's initial direction.
std::int64_t distance_along_hilbert(std::int64_t side, std::int64_t x, std::int64_t y) {
  std::int64_t distance = 0;
  for (std::int64_t half = side / 2; half >= 1; half /= 2) {
    const bool right = x >= half, upper = y >= half;
    distance += half * half * (right ? (upper ? 2 : 3) : (upper ? 1 : 0));
    x %= half;
    y %= half;
    if (upper) continue;
    if (right) {
      x = half - 1 - x;
      y = half - 1 - y;
    }
    std::swap(x, y);
  }
  return distance;
}

/// The block, counted within a plane of the grid (one z), that computes this tile.
std::int64_t block_of_tile(const TileMapProblem& p, std::int64_t m, std::int64_t n) {
  switch (p.map) {
    case TileMap::row_major:
    case TileMap::horizontal: return m * p.tiles_n + n;
    case TileMap::split_k:
    case TileMap::batched:
    case TileMap::identity1: return n * p.tiles_m + m;
    case TileMap::identity2:
    case TileMap::identity4:
    case TileMap::identity8: {
      // As wide as requested, unless half of that suffices for (nearly) all tile columns.
      std::int64_t width = p.map == TileMap::identity2 ? 2 : p.map == TileMap::identity4 ? 4 : 8;
      const auto enough_columns = [](std::int64_t w) { return w == 8 ? 6 : w == 4 ? 3 : w; };
      while (p.tiles_n < enough_columns(width)) width /= 2;
      return n / width * (width * p.tiles_m) + m * width + n % width;
    }
    case TileMap::grouped: {
      const std::int64_t group = m / p.group_rows;
      const std::int64_t rows =
          std::min<std::int64_t>(p.group_rows, p.tiles_m - group * p.group_rows);
      return group * p.group_rows * p.tiles_n + n * rows + m % p.group_rows;
    }
    case TileMap::hilbert: {
      const std::int64_t along = p.tiles_m > p.tiles_n ? m : n,
                         across = p.tiles_m > p.tiles_n ? n : m;
      std::int64_t side = 1;
      while (side < std::min(p.tiles_m, p.tiles_n)) side *= 2;
      return along / side * side * side + distance_along_hilbert(side, along % side, across);
    }
    case TileMap::stream_k: break;
  }
  throw std::logic_error("a tile of stream_k may belong to several blocks");
}

/// All units, computed from tiles to blocks, whereas the rungs compute from blocks to tiles. Sorted
/// afterwards.
std::vector<Expected> outputs(const TileMapProblem& p, const Arrays&) {
  std::vector<std::array<std::int32_t, kUnitColumns>> units;
  const auto add = [&](std::int64_t block, std::int64_t batch, std::int64_t m, std::int64_t n,
                       std::int64_t k_begin, std::int64_t k_end) {
    units.push_back({static_cast<std::int32_t>(block), static_cast<std::int32_t>(batch),
                     static_cast<std::int32_t>(m), static_cast<std::int32_t>(n),
                     static_cast<std::int32_t>(k_begin), static_cast<std::int32_t>(k_end)});
  };
  const BlockGrid grid = grid_of(p);
  // stream_k: of all steps, the first `large` blocks have share + 1 each, the others share.
  const std::int64_t steps = std::int64_t{p.batch} * p.tiles_m * p.tiles_n * p.k_steps;
  const std::int64_t share = steps / grid.x, large = steps % grid.x;
  const auto first_step_of = [&](std::int64_t block) {
    return block * share + std::min(block, large);
  };
  const auto owner_of = [&](std::int64_t step) {
    return step < large * (share + 1) ? step / (share + 1)
                                      : large + (step - large * (share + 1)) / share;
  };
  const std::int64_t part = ceil_div(p.k_steps, p.splits);
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t m = 0; m < p.tiles_m; ++m) {
      for (std::int64_t n = 0; n < p.tiles_n; ++n) {
        if (p.map == TileMap::stream_k) {
          const std::int64_t tile = ((batch * p.tiles_m + m) * p.tiles_n + n) * p.k_steps;
          for (std::int64_t block = owner_of(tile); block <= owner_of(tile + p.k_steps - 1);
               ++block) {
            add(block, batch, m, n, std::max(first_step_of(block) - tile, std::int64_t{0}),
                std::min(first_step_of(block + 1) - tile, std::int64_t{p.k_steps}));
          }
          continue;
        }
        for (std::int64_t k = 0; k < p.k_steps; k += part) {
          const std::int64_t z = (batch * p.splits + k / part) % grid.z;
          add(z * grid.x * grid.y + block_of_tile(p, m, n), batch, m, n, k,
              std::min<std::int64_t>(k + part, p.k_steps));
        }
      }
    }
  }
  // Sorted by block; the units of a block, in its order of execution, ascend in their other
  // columns.
  std::sort(units.begin(), units.end());
  Expected expected;
  expected.spec = tile_map_signature(p).outputs[0];
  expected.spec.shape[0] = static_cast<std::int64_t>(units.size());
  for (const auto& unit : units) {
    expected.integers.insert(expected.integers.end(), unit.begin(), unit.end());
  }
  return {expected};
}

}  // namespace
}  // namespace tile_map

Definition tile_map_definition() {
  return define<TileMapProblem>(
      {.longest_sum = tile_map::longest_sum, .outputs = tile_map::outputs});
}

}  // namespace convladder::oracle
