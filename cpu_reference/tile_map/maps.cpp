/// @file maps.cpp
/// @brief Definition of tile_map: every map is enumerated by a loop over the tiles.
///
/// - After: cuda_naive/tile_map/row_major.cu
/// - On the GPU: cuda_optimized/tile_map/maps.cu (the same maps as closed formulas)
///
/// **The idea.** A GPU starts a grid's blocks in the order of their index (x fastest; this is
/// observed, not guaranteed), and as many blocks run concurrently as fit. A map from blocks to
/// tiles is thus an order of the tiles. In a good order, the tiles of concurrent blocks are close
/// together, so that they read the same rows of a and columns of b. Each map below is a set of
/// nested loops with the next block of the grid in the innermost.
///
///     row_major         identity2          grouped, 2 rows    hilbert
///     0  1  2  3        0  1  8  9         0  2  4  6         0  1 14 15
///     4  5  6  7        2  3 10 11         1  3  5  7         3  2 13 12
///     8  9 10 11        4  5 12 13         8 10 12 14         4  7  8 11
///    12 13 14 15        6  7 14 15         9 11 13 15         5  6  9 10
///
/// If the tiles do not fill a map's shape, some blocks have no tile and exit at once. split_k,
/// batched and stream_k assign more than the tiles of one GEMM.
///
/// **Expect.** The order changes the traffic, not the result: see simulate_waves() in
/// core/tile_map_model.hpp.
#include <algorithm>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/implementation.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::cpu_reference::tile_map {
namespace {

constexpr std::int64_t kMaxGridZ = 65535;  ///< Blocks along grid.z: CUDA's limit.

/// The rows of the result: block, batch, tile m, tile n, first k-step, last k-step + 1.
class Units {
 public:
  void add(std::int64_t block, std::int64_t batch, int m, int n, int k_begin, int k_end) {
    rows_.insert(rows_.end(), {static_cast<std::int32_t>(block), static_cast<std::int32_t>(batch),
                               m, n, k_begin, k_end});
  }
  const std::vector<std::int32_t>& rows() const { return rows_; }

 private:
  std::vector<std::int32_t> rows_;
};

/// A position in the tile matrix, or a step between positions.
struct Point {
  int x, y;
  Point operator+(Point b) const { return {x + b.x, y + b.y}; }
  Point operator-() const { return {-x, -y}; }
};
Point operator*(int a, Point b) { return {a * b.x, a * b.y}; }

/// A Hilbert curve through a square of side x side points that starts at `corner` and ends at
/// corner + (side - 1) * ahead, with the square on the side of `beside`. It visits the quarters in
/// this order, the first and the last one with `ahead` and `beside` exchanged (Hilbert, 1891):
///
///     beside ^   1 -> 2
///            |   ^    v
///                0    3    -> ahead
template <class Visit>
void walk_hilbert(int side, Point corner, Point ahead, Point beside, const Visit& visit) {
  if (side == 1) {
    visit(corner.y, corner.x);
    return;
  }
  const int half = side / 2;
  walk_hilbert(half, corner, beside, ahead, visit);
  walk_hilbert(half, corner + half * beside, ahead, beside, visit);
  walk_hilbert(half, corner + half * ahead + half * beside, ahead, beside, visit);
  walk_hilbert(half, corner + (side - 1) * ahead + (half - 1) * beside, -beside, -ahead, visit);
}

/// Calls visit(m, n) for each block of a plane of the grid (one z), in launch order; tile (m, n)
/// may not exist.
template <class Visit>
void walk_plane(const TileMapProblem& map, const Visit& visit) {
  const int tiles_m = map.tiles_m, tiles_n = map.tiles_n;
  switch (map.map) {
    case TileMap::row_major:
    case TileMap::horizontal:  // the same order; only the grid has two axes, (tiles_n, tiles_m)
      for (int m = 0; m < tiles_m; ++m) {
        for (int n = 0; n < tiles_n; ++n) visit(m, n);
      }
      break;
    case TileMap::identity1:
    case TileMap::identity2:
    case TileMap::identity4:
    case TileMap::identity8:
    case TileMap::split_k:    // like identity1 within a plane
    case TileMap::batched: {  // likewise
      // Super-columns of `width` tile columns; the last one may extend beyond the tiles.
      const std::int64_t width = std::int64_t{1} << log_tile(map.map, tiles_n);
      for (std::int64_t n0 = 0; n0 < tiles_n; n0 += width) {
        for (int m = 0; m < tiles_m; ++m) {
          for (std::int64_t n = n0; n < n0 + width; ++n) visit(m, n);
        }
      }
      break;
    }
    case TileMap::grouped:
      // Super-rows of group_rows tile rows; the last one has the remainder.
      for (std::int64_t m0 = 0; m0 < tiles_m; m0 += map.group_rows) {
        const std::int64_t m1 = std::min<std::int64_t>(m0 + map.group_rows, tiles_m);
        for (int n = 0; n < tiles_n; ++n) {
          for (std::int64_t m = m0; m < m1; ++m) visit(m, n);
        }
      }
      break;
    case TileMap::hilbert: {
      // The curve fills squares whose side is a power of two. One square around all tiles may be
      // many times too large if the tile matrix is far from square. Therefore the side is the
      // smallest that spans the shorter axis, and several squares cover the longer one. A curve
      // ends next to the start of the following one.
      const int side = 1 << log_hilbert_side(tiles_m, tiles_n);
      const Point right{1, 0}, down{0, 1};
      const bool tall = tiles_m > tiles_n;
      const Point ahead = tall ? down : right, beside = tall ? right : down;
      for (int square = 0; square < ceil_div(std::max(tiles_m, tiles_n), side); ++square) {
        walk_hilbert(side, square * side * ahead, ahead, beside, visit);
      }
      break;
    }
    case TileMap::stream_k: break;  // has no planes: see share_out()
  }
}

/// Every map except stream_k: planes of blocks along grid.z, each for a GEMM and, with split_k, a
/// part of the k-steps. If there are more planes than grid.z allows, a block processes several, one
/// after the other.
void walk(const TileMapProblem& map, Units& units) {
  const std::int64_t planes = std::int64_t{map.batch} * map.splits;
  const std::int64_t grid_z = std::min(planes, kMaxGridZ);
  const std::int64_t part = ceil_div(map.k_steps, map.splits);  // k-steps per split
  std::int64_t block = 0;
  for (std::int64_t z = 0; z < grid_z; ++z) {
    walk_plane(map, [&](std::int64_t m, std::int64_t n) {
      if (m < map.tiles_m && n < map.tiles_n) {
        for (std::int64_t plane = z; plane < planes; plane += grid_z) {
          const std::int64_t k_begin = plane % map.splits * part;
          const std::int64_t k_end = std::min<std::int64_t>(k_begin + part, map.k_steps);
          // The parts are rounded up, so the last ones may be empty.
          if (k_begin >= k_end) continue;
          units.add(block, plane / map.splits, static_cast<int>(m), static_cast<int>(n),
                    static_cast<int>(k_begin), static_cast<int>(k_end));
        }
      }
      ++block;
    });
  }
}

/// stream_k: the k-steps of all tiles of all GEMMs, concatenated, are divided equally among the
/// blocks; the first blocks get one more of the remainder. A block's share may begin and end within
/// a tile, whose partial results are then summed (Osama et al., "Stream-K: work-centric parallel
/// decomposition for dense matrix-matrix multiplication on the GPU", 2023). There are at most as
/// many blocks as k-steps.
///
/// CUTLASS differs: it divides only the tiles of the last, partially filled wave (or of the last
/// two) and computes the other tiles completely, determines the number of blocks with a cost model,
/// and processes a share in reverse order.
void share_out(const TileMapProblem& map, Units& units) {
  const std::int64_t steps = std::int64_t{map.batch} * map.tiles_m * map.tiles_n * map.k_steps;
  const std::int64_t blocks = std::min<std::int64_t>(map.blocks, steps);
  const auto share_of = [&](std::int64_t block) {
    return steps / blocks + (block < steps % blocks ? 1 : 0);
  };
  std::int64_t block = 0, left = share_of(0);
  for (int batch = 0; batch < map.batch; ++batch) {
    for (int m = 0; m < map.tiles_m; ++m) {
      for (int n = 0; n < map.tiles_n; ++n) {
        for (int k = 0; k < map.k_steps;) {
          if (left == 0) left = share_of(++block);
          const auto taken = static_cast<int>(std::min<std::int64_t>(left, map.k_steps - k));
          units.add(block, batch, m, n, k, k + taken);
          k += taken;
          left -= taken;
        }
      }
    }
  }
}

void run(const TileMapProblem& map, const TileMapArrays& arrays, const Context&) {
  Units units;
  if (map.map == TileMap::stream_k) {
    share_out(map, units);
  } else {
    walk(map, units);
  }
  const std::vector<std::int32_t>& rows = units.rows();
  const auto count = static_cast<std::int64_t>(rows.size()) / kUnitColumns;
  std::copy(rows.begin(), rows.end(), arrays.create("units", {count, kUnitColumns}));
}

std::string choice_in_words(const TileMapProblem& map) { return map_in_words(map); }

}  // namespace

extern const Implementation<TileMapArrays> maps = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::tile_map
