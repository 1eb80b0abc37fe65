/// @file tile_map_test.cpp
/// @brief The products inside of a convolution, their tiles, and the simulator of waves. That every
/// map covers each tile once is an identity of every tile_map rung (identities.cpp).
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "core/tile_map_model.hpp"
#include "ladders/ladders.hpp"
#include "oracle/reference.hpp"

namespace convladder::testing {
namespace {

std::vector<std::int32_t> units_of(const TileMapProblem& problem) {
  return reference("tile_map", validated(problem), {})[0].integers;
}

std::vector<Wave> waves_of(const TileMapProblem& problem, int concurrent, const TileSize& tile) {
  return simulate_waves(units_of(problem), concurrent, tile);
}

std::int64_t total_bytes(const std::vector<Wave>& waves) {
  return std::accumulate(waves.begin(), waves.end(), std::int64_t{0},
                         [](std::int64_t sum, const Wave& wave) { return sum + wave.bytes; });
}

void check_extents(const GemmExtents& found, const GemmExtents& expected) {
  CHECK(found.M == expected.M);
  CHECK(found.N == expected.N);
  CHECK(found.K == expected.K);
  CHECK(found.batch == expected.batch);
}

}  // namespace

TEST_SUITE_BEGIN("tile_maps");

TEST_CASE("the products of a convolution, forward and backward") {
  const Conv2dProblem conv = validated(Conv2dProblem{
      .N = 5, .C = 6, .H = 11, .W = 13, .K = 8, .R = 3, .S = 2, .stride = {2, 1}, .groups = 2});
  REQUIRE(conv.P == 5);
  REQUIRE(conv.Q == 12);
  check_extents(gemm_extents(conv, ConvolutionPass::forward), {5 * 5 * 12, 4, 3 * 3 * 2, 2});
  check_extents(gemm_extents(conv, ConvolutionPass::dgrad), {5 * 11 * 13, 3, 4 * 3 * 2, 2});
  check_extents(gemm_extents(conv, ConvolutionPass::wgrad), {4, 3 * 3 * 2, 5 * 5 * 12, 2});
  check_extents(gemm_extents(GemmProblem{.M = 2, .N = 3, .K = 5}), {2, 3, 5, 1});
}

TEST_CASE("the products of a convolution in three dimensions") {
  const Im2colProblem input = validated(
      Im2colProblem{.N = 2, .C = 4, .rank = 3, .depth = {5, 3}, .height = {6, 2}, .width = {7, 4}});
  check_extents(gemm_extents(input, 10, 1, ConvolutionPass::forward),
                {2 * 3 * 5 * 4, 10, 4 * 3 * 2 * 4, 1});
  check_extents(gemm_extents(input, 10, 1, ConvolutionPass::dgrad),
                {2 * 5 * 6 * 7, 4, 10 * 3 * 2 * 4, 1});
  check_extents(gemm_extents(input, 10, 2, ConvolutionPass::wgrad), {5, 2 * 24, 2 * 60, 2});
  CHECK_THROWS_AS(gemm_extents(input, 10, 3, ConvolutionPass::forward), BadInput);
  CHECK_THROWS_AS(gemm_extents(input, 9, 2, ConvolutionPass::forward), BadInput);
  CHECK_THROWS_AS(gemm_extents(input, 9, 0, ConvolutionPass::forward), BadInput);
}

TEST_CASE("tiles cover the product, and one more does not") {
  const TileMapProblem tiles = tiles_of({129, 64, 33, 2}, {64, 64, 16}, TileMap::batched);
  CHECK(tiles.tiles_m == 3);
  CHECK(tiles.tiles_n == 1);
  CHECK(tiles.k_steps == 3);
  CHECK(tiles.batch == 2);
  CHECK(tiles.map == TileMap::batched);
  CHECK_THROWS_AS(tiles_of({0, 64, 33, 1}, {64, 64, 16}, TileMap::row_major), BadInput);
  CHECK_THROWS_AS(tiles_of({64, 64, 33, 1}, {64, 0, 16}, TileMap::row_major), BadInput);
}

TEST_CASE("two rows of tiles at a time need no larger grid than one") {
  // A cluster takes two tiles below each other, and blocks alone take one. Which of them it will be
  // depends on where the arrays begin: a rung asks for single tiles, and the answer is for both.
  for (const TileMapName& map : kTileMaps) {
    if (!hands_out_whole_tiles(map.map)) continue;
    CAPTURE(map.name);
    for (int tiles_m = 1; tiles_m <= 40; ++tiles_m) {
      for (int tiles_n = 1; tiles_n <= 40; ++tiles_n) {
        const BlockGrid one = grid_of({.map = map.map, .tiles_m = tiles_m, .tiles_n = tiles_n});
        const BlockGrid two =
            grid_of({.map = map.map, .tiles_m = ceil_div(tiles_m, 2), .tiles_n = tiles_n});
        CAPTURE(tiles_m);
        CAPTURE(tiles_n);
        CHECK(two.x <= one.x);
        CHECK(two.y <= one.y);
        CHECK(two.z <= one.z);
      }
    }
  }
}

TEST_CASE("waves of 4 x 4 tiles, four at a time: a row, a column, a square") {
  const TileSize tile{8, 16, 4};
  struct Case {
    TileMap map;
    int a_panels, b_panels;
  };
  for (const Case& expected : {Case{TileMap::row_major, 1, 4}, Case{TileMap::horizontal, 1, 4},
                               Case{TileMap::identity1, 4, 1}, Case{TileMap::identity2, 2, 2},
                               Case{TileMap::identity4, 1, 4}, Case{TileMap::hilbert, 2, 2}}) {
    CAPTURE(name_of(expected.map));
    const auto waves =
        waves_of({.map = expected.map, .tiles_m = 4, .tiles_n = 4, .k_steps = 3}, 4, tile);
    REQUIRE(waves.size() == 4);
    for (const Wave& wave : waves) {
      CHECK(wave.units == 4);
      CHECK(wave.a_panels == expected.a_panels);
      CHECK(wave.b_panels == expected.b_panels);
      CHECK(wave.bytes == (expected.a_panels * 8 + expected.b_panels * 16) * 3 * 4 * 4);
    }
  }
}

TEST_CASE("waves: the last one is short, and blocks without work take no place") {
  const auto waves =
      waves_of({.map = TileMap::identity8, .tiles_m = 3, .tiles_n = 9}, 4, {1, 1, 1});
  REQUIRE(waves.size() == 7);
  CHECK(waves.back().units == 3);
  std::int64_t units = 0;
  for (const Wave& wave : waves) units += wave.units;
  CHECK(units == 27);
}

TEST_CASE("waves: split tiles read parts of panels, and a batch its own") {
  // Two splits of one tile run together: two panels of a, each of half the k-steps.
  const auto split = waves_of({.map = TileMap::split_k, .k_steps = 8, .splits = 2}, 2, {1, 1, 1});
  REQUIRE(split.size() == 1);
  CHECK(split[0].a_panels == 2);
  CHECK(split[0].bytes == (8 + 8) * 4);
  const auto batch = waves_of({.map = TileMap::batched, .k_steps = 8, .batch = 2}, 2, {1, 1, 1});
  REQUIRE(batch.size() == 1);
  CHECK(batch[0].bytes == 2 * (8 + 8) * 4);
}

TEST_CASE("waves: everything at once reads each panel once, one block at a time reads none twice") {
  for (const TileMapName& map : kTileMaps) {
    if (!hands_out_whole_tiles(map.map)) continue;
    CAPTURE(map.name);
    const TileMapProblem problem{.map = map.map, .tiles_m = 7, .tiles_n = 5, .k_steps = 2};
    const auto all = waves_of(problem, 35, {4, 4, 4});
    REQUIRE(all.size() == 1);
    CHECK(all[0].bytes == (7 + 5) * 4 * 2 * 4 * 4);
    const auto single = waves_of(problem, 1, {4, 4, 4});
    CHECK(single.size() == 35);
    CHECK(total_bytes(single) == 35 * (1 + 1) * 4 * 2 * 4 * 4);
  }
}

TEST_CASE("waves: the traffic of a large product, as the working-set model has it") {
  // 8192^3 in 64 x 64 tiles, 264 at a time: super-columns help only once they are wider than
  // 264 / 64 tiles.
  const auto gigabytes = [](TileMap map, int group_rows) {
    TileMapProblem problem = tiles_of({8192, 8192, 8192, 1}, {128, 128, 16}, map);
    problem.group_rows = group_rows;
    return static_cast<double>(total_bytes(waves_of(problem, 264, {128, 128, 16}))) * 1e-9;
  };
  CHECK(gigabytes(TileMap::identity1, 8) == doctest::Approx(4.65).epsilon(0.02));
  CHECK(gigabytes(TileMap::identity2, 8) == doctest::Approx(4.65).epsilon(0.02));
  CHECK(gigabytes(TileMap::identity4, 8) == doctest::Approx(4.65).epsilon(0.02));
  CHECK(gigabytes(TileMap::identity8, 8) == doctest::Approx(2.9).epsilon(0.02));
  CHECK(gigabytes(TileMap::grouped, 16) == doctest::Approx(2.4).epsilon(0.02));
  CHECK(gigabytes(TileMap::hilbert, 8) == doctest::Approx(2.6).epsilon(0.03));
}

TEST_CASE("waves: a convolution with few tile columns reads a once for each super-column") {
  // VGG's conv4_2 at batch 64: 392 x 4 tiles of 128 x 128.
  const auto gigabytes = [](TileMap map) {
    const Conv2dProblem conv = validated(Conv2dProblem{
        .N = 64, .C = 512, .H = 28, .W = 28, .K = 512, .R = 3, .S = 3, .pad = {1, 1, 1, 1}});
    const TileSize tile{128, 128, 8};
    const TileMapProblem problem =
        tiles_of(gemm_extents(conv, ConvolutionPass::forward), tile, map);
    CHECK(problem.tiles_m == 392);
    CHECK(problem.tiles_n == 4);
    return static_cast<double>(total_bytes(waves_of(problem, 264, tile))) * 1e-9;
  };
  CHECK(gigabytes(TileMap::identity1) == doctest::Approx(3.72).epsilon(0.02));
  CHECK(gigabytes(TileMap::identity2) == doctest::Approx(1.88).epsilon(0.02));
  CHECK(gigabytes(TileMap::identity4) == doctest::Approx(0.98).epsilon(0.02));
}

TEST_CASE("waves: no concurrent blocks, or nothing to run") {
  CHECK(simulate_waves({}, 4, {1, 1, 1}).empty());
  CHECK_THROWS_AS(simulate_waves({}, 0, {1, 1, 1}), BadInput);
}

TEST_CASE("super-columns are as wide as the tiles make use of") {
  const auto width = [](TileMap map, int tiles_n) { return 1 << log_tile(map, tiles_n); };
  CHECK(width(TileMap::identity8, 6) == 8);
  CHECK(width(TileMap::identity8, 5) == 4);
  CHECK(width(TileMap::identity8, 3) == 4);
  CHECK(width(TileMap::identity8, 2) == 2);
  CHECK(width(TileMap::identity8, 1) == 1);
  CHECK(width(TileMap::identity4, 100) == 4);
  CHECK(width(TileMap::identity4, 2) == 2);
  CHECK(width(TileMap::identity2, 100) == 2);
  CHECK(width(TileMap::identity2, 1) == 1);
  CHECK(width(TileMap::identity1, 100) == 1);
}

TEST_CASE("the grid of identity<8> has as many blocks without a tile as the model says") {
  // Of 9 columns the second super-column of 8 uses one: 7 of 16 leave at once.
  struct Case {
    int tiles_n;
    double none;
  };
  for (const Case& expected : {Case{9, 0.44}, Case{10, 0.38}, Case{5, 0.38}, Case{6, 0.25},
                               Case{17, 0.29}, Case{8, 0.0}}) {
    const TileMapProblem problem =
        validated({.map = TileMap::identity8, .tiles_m = 13, .tiles_n = expected.tiles_n});
    const BlockGrid grid = grid_of(problem);
    const auto blocks = static_cast<double>(grid.x * grid.y * grid.z);
    const double used = static_cast<double>(13 * expected.tiles_n) / blocks;
    CHECK(1 - used == doctest::Approx(expected.none).epsilon(0.02));
    std::set<int> with_work;
    const auto units = units_of(problem);
    for (std::size_t i = 0; i < units.size(); i += kUnitColumns) with_work.insert(units[i]);
    CHECK(static_cast<int>(with_work.size()) == 13 * expected.tiles_n);
    CHECK(static_cast<double>(*with_work.rbegin()) < blocks);
  }
}

TEST_CASE("neighbours on the Hilbert curve share an edge") {
  for (const int side : {2, 4, 8, 16, 32}) {
    const auto units = units_of({.map = TileMap::hilbert, .tiles_m = side, .tiles_n = side});
    for (std::size_t i = kUnitColumns; i < units.size(); i += kUnitColumns) {
      const int step = std::abs(units[i + 2] - units[i + 2 - kUnitColumns]) +
                       std::abs(units[i + 3] - units[i + 3 - kUnitColumns]);
      REQUIRE(step == 1);
    }
    CHECK(units.size() == static_cast<std::size_t>(side * side * kUnitColumns));
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
