/// @file tile_map.cpp
/// @brief Which block computes which tile.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "core/tile_map_problem.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

std::vector<TestProblem> tile_map_problems() {
  std::vector<TestProblem> list;
  const auto add = [&](const std::string& name, TileMapProblem problem, Size size = Size::small) {
    list.push_back({0, name, validated(problem), size});
  };
  for (const TileMapName& map : kTileMaps) {
    for (const auto& [m, n] : {std::array{1, 1},
                               {1, 9},
                               {9, 1},
                               {10, 6},
                               {6, 10},
                               {5, 9},
                               {9, 5},
                               {17, 17},
                               {7, 13},
                               {32, 32},
                               {3, 40},
                               {33, 2},
                               {40, 40}}) {
      TileMapProblem problem{.map = map.map, .tiles_m = m, .tiles_n = n};
      const Size size = m * n <= 200 ? Size::small : Size::full;
      add("one k-step", problem, size);
      problem.k_steps = 7;
      problem.batch = 1 + (m + n) % 3;
      if (map.map == TileMap::split_k) {
        for (const int splits : {1, 3, 7}) {
          problem.splits = splits;
          add("split", problem, size);
        }
      } else if (map.map == TileMap::stream_k) {
        for (const int blocks : {1, 2, 7, 132, 5000}) {
          problem.blocks = blocks;
          add("shared", problem, size);
        }
      } else if (map.map == TileMap::grouped) {
        for (const int rows : {1, 3, 8, 50}) {
          problem.group_rows = rows;
          add("grouped", problem, size);
        }
      } else {
        add("batch", problem, size);
      }
    }
  }
  // A batch counts along grid.z, which ends at 65535: CUTLASS launches batch % 65536 blocks.
  for (const int batch : {65535, 65536, 70000}) {
    add("more products than grid.z", {.map = TileMap::batched, .batch = batch}, Size::full);
  }
  add("more products than grid.z", {.map = TileMap::row_major, .tiles_n = 2, .batch = 65536},
      Size::full);
  add("many splits", {.map = TileMap::split_k, .tiles_m = 2, .k_steps = 1000, .splits = 999});
  add("splits that do not divide",
      {.map = TileMap::split_k, .tiles_m = 3, .k_steps = 10, .splits = 4});
  add("more products than grid.z, split",
      {.map = TileMap::split_k, .k_steps = 5, .splits = 3, .batch = 22000}, Size::full);
  add("tall", {.map = TileMap::row_major, .tiles_m = 70000}, Size::full);
  add("wide", {.map = TileMap::row_major, .tiles_n = 70000}, Size::full);
  add("tall", {.map = TileMap::identity1, .tiles_m = 70000}, Size::full);
  add("wide", {.map = TileMap::horizontal, .tiles_n = 70000}, Size::full);
  // group_rows * tiles_n is beyond an int.
  add("a super-row far taller than the product",
      {.map = TileMap::grouped, .tiles_m = 3, .tiles_n = 4, .group_rows = 1 << 30});
  add("as wide as grid.y", {.map = TileMap::identity2, .tiles_n = 2 * 65535}, Size::full);
  return list;
}

std::vector<Problem> tile_map_limits() {
  std::vector<Problem> list;
  for (const TileMapName& map : kTileMaps)
    list.emplace_back(validated(TileMapProblem{.map = map.map, .tiles_m = 60'000, .tiles_n = 4}));
  return list;
}

TileMapProblem random_tile_map(Dice& dice) {
  TileMapProblem p{.map = kTileMaps[static_cast<std::size_t>(dice(0, 10))].map,
                   .tiles_m = dice(1, 70),
                   .tiles_n = dice(1, 70),
                   .k_steps = dice(1, 20)};
  if (p.map == TileMap::split_k) p.splits = dice(1, p.k_steps);
  if (p.map == TileMap::grouped) p.group_rows = dice(1, 20);
  if (dice(0, 1) == 0) p.batch = dice(1, 5);
  if (p.map == TileMap::stream_k) p.blocks = dice(1, 300);
  return validated(p);
}

/// Every (batch, m, n, k-step) lies in exactly one unit, and the units are sorted by block.
void expect_exact_cover(const TileMapProblem& p, const Array& units) {
  const auto rows = units.as<std::int32_t>();
  std::vector<int> visits(at(std::int64_t{p.batch} * p.tiles_m * p.tiles_n * p.k_steps));
  int last_block = -1;
  for (std::int64_t unit = 0; unit < units.shape()[0]; ++unit) {
    const auto row = rows.subspan(at(unit * kUnitColumns), kUnitColumns);
    const int block = row[0], batch = row[1], m = row[2], n = row[3], first = row[4], last = row[5];
    const auto broken = [&](const std::string& what) {
      return Broken{text("unit ", unit, " (", joined(row, ", "), "): ", what)};
    };
    if (block < last_block) throw broken("not sorted by block");
    last_block = block;
    if (!(batch >= 0 && batch < p.batch && m >= 0 && m < p.tiles_m && n >= 0 && n < p.tiles_n &&
          first >= 0 && first < last && last <= p.k_steps)) {
      throw broken("out of range or empty");
    }
    for (int k = first; k < last; ++k) {
      const Index4 place{p.tiles_m, p.tiles_n, p.k_steps};
      if (++visits[at(place(batch, m, n, k))] > 1) {
        throw broken(text("k-step ", k, " is in another unit too"));
      }
    }
  }
  const auto left_out = std::count(visits.begin(), visits.end(), 0);
  if (left_out != 0) {
    throw Broken{text(left_out, " of ", visits.size(), " k-steps of tiles are in no unit")};
  }
}

/// Every map on all tile counts up to 40 x 40; the maps that divide k-steps also in several ways.
std::vector<TileMapProblem> tile_map_bases(const CheckOptions& options) {
  std::vector<int> counts(40);
  std::iota(counts.begin(), counts.end(), 1);
  if (options.largest == Size::small) counts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 40};
  std::vector<TileMapProblem> problems;
  for (const TileMapName& map : kTileMaps) {
    for (const int m : counts) {
      for (const int n : counts) {
        TileMapProblem p{.map = map.map, .tiles_m = m, .tiles_n = n};
        if (map.map == TileMap::split_k) {
          p.k_steps = 2 + (m + n) % 9;
          p.splits = 1 + (m * 3 + n) % p.k_steps;
        } else if (map.map == TileMap::stream_k) {
          p.k_steps = 1 + (m + 2 * n) % 7;
          p.blocks = 1 + (m * 40 + n) % 150;
        } else if (map.map == TileMap::grouped) {
          p.group_rows = 1 + (m + n) % 11;
        }
        if (map.map == TileMap::batched || (m * n) % 5 == 0) p.batch = 1 + (m + n) % 3;
        problems.push_back(validated(p));
      }
    }
  }
  return problems;
}

void check_tile_map_identities(const Subject& subject, const CheckOptions& options,
                               CheckReport& report) {
  const std::vector<Identity<TileMapProblem>> cover = {
      {"each k-step of each tile in one unit", {}, [&](const TileMapProblem& p) {
         expect_exact_cover(p, subject(p, {}).at("units"));
       }}};
  check_all(cover, tile_map_bases(options), options, report);
}

}  // namespace

LadderTests tile_map_tests() {
  return {tile_map_problems,
          [](int count, std::uint64_t seed) {
            return drawn(
                count, seed, [](Dice& dice, int) { return random_tile_map(dice); }, false);
          },
          {},
          check_tile_map_identities,
          tile_map_limits};
}

}  // namespace convladder::testing
