/// @file voxel_grid_test.cpp
/// @brief Grids of ranges: how many voxels they have, which points lie in them, and points in
/// float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/points_in_float.hpp"
#include "core/text.hpp"
#include "core/voxelize_problem.hpp"
#include "ladders/ladders.hpp"
#include "oracle/judge.hpp"
#include "oracle/reference.hpp"
#include "oracle/runner.hpp"
#include "tests/check.hpp"
#include "tests/dice.hpp"

namespace convladder::testing {
namespace {

/// Sides of voxels in hundredths, and how many of them a range has: all pairs.
constexpr int kMostHundredths = 120, kMostVoxels = 199;

/// The extent along x, y and z of a grid that is the same along all three.
int extent_of(double low, double high, double side) {
  const VoxelGrid grid = voxel_grid({low, low, low, high, high, high}, side);
  CHECK(grid.shape[0] == grid.shape[1]);
  CHECK(grid.shape[1] == grid.shape[2]);
  return grid.shape[2];
}

/// The voxel along x of a point on a grid's diagonal; -1 if it has none.
std::int64_t place_of(const VoxelGrid& grid, float p) {
  const float point[3] = {p, p, p};
  const std::int64_t key = key_of_point(grid, point);
  return key == kNoVoxel ? -1 : key % grid.shape[2];
}

std::string refusal_of(const std::array<double, 6>& range, const std::array<double, 3>& voxel,
                       CoordinateType type) {
  try {
    voxel_grid(range, voxel, type);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The errors of rounding in float that judge() finds in these means of a voxel's points.
bool accepts(const VoxelizeProblem& problem, const Array& points,
             const std::vector<float>& features) {
  for (const Expected& expected : reference("voxelize", problem, {{"points", points}})) {
    if (expected.spec.name != "features") continue;
    Array found(DType::f32, expected.spec.shape);
    REQUIRE(found.as<float>().size() == features.size());
    std::ranges::copy(features, found.as<float>().begin());
    return judge(expected, found, Data::real, problem, {}).agrees;
  }
  return false;
}

/// Points of two voxels whose columns are hard to add up: numbers of so many binades that cancel
/// but for the last four, which are far smaller than the largest; numbers of one binade whose sum
/// outgrows 64 bits of fixed point; the same with both signs; and infinities, of one sign in the
/// first voxel and of both in the second.
Array points_that_cancel(const VoxelizeProblem& problem, int binades, Dice& dice) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto columns = static_cast<std::size_t>(problem.columns);
  Array points(DType::f32, {problem.points, problem.columns});
  const auto numbers = points.as<float>();
  for (std::size_t n = 0; n < numbers.size() / columns; ++n) {
    const auto point = numbers.subspan(n * columns, columns);
    const bool second = n % 4 >= 2;  // points 2 i and 2 i + 1 share a voxel
    std::ranges::fill(point, second ? 0.5f : -0.5f);
    if (n % 2 == 1) {
      point[3] = -numbers[(n - 1) * columns + 3];
    } else {
      point[3] =
          std::ldexp(static_cast<float>(dice(-1000, 1000)) / 7, dice(-binades / 2, binades / 2));
    }
    if (n * columns + 4 * columns >= numbers.size())
      point[3] = std::ldexp(1 / 3.0f, binades / 2 - 28);
    point[4] = (second ? -1.0f : 1.0f) * static_cast<float>(dice(3500, 3579)) / 7;
    point[5] = point[4] * static_cast<float>(n < 1100 ? 1 : -1);
    if (n % 100 == 2) point[6] = -kInf;
    if (n % 100 == 3 || n % 100 == 4) point[6] = kInf;
  }
  return points;
}

/// Checks that each rung gives the right means, and the same bits in any order of threads.
void check_all_orders(const VoxelizeProblem& problem, const Array& points) {
  const Comparison comparison(ladder("voxelize"), problem, Data::real, {{"points", points}});
  for (const Rung& rung : ladder("voxelize").rungs) {
    CAPTURE(rung.name);
    CHECK(rung.deterministic);
    if (!rung.code_at(Where::emulated)) continue;
    std::vector<float> first;
    for (int order = 0; order < kThreadOrderCount + 2; ++order) {
      CAPTURE(order);
      set_emulated_thread_order(order, settings().seed);
      const Outcome outcome = comparison.run(rung, Where::emulated);
      CAPTURE(outcome.reason);
      REQUIRE(outcome.status == Status::agrees);
      const auto features = outcome.outputs.at("features").as<float>();
      if (order == 0) first.assign(features.begin(), features.end());
      REQUIRE(first.size() == features.size());
      CHECK(std::memcmp(first.data(), features.data(), first.size() * sizeof(float)) == 0);
    }
  }
  set_emulated_thread_order(0, settings().seed);
}

}  // namespace

TEST_SUITE_BEGIN("voxels");

TEST_CASE("a range of whole voxels has as many, in float and in double, wherever it begins") {
  int pairs = 0;
  for (int hundredths = 1; hundredths <= kMostHundredths; ++hundredths) {
    for (int voxels = 1; voxels <= kMostVoxels; ++voxels, ++pairs) {
      const double side = hundredths / 100.0, extent = hundredths * voxels / 100.0;
      const auto side_f = static_cast<float>(side);
      bool right = extent_of(0, extent, side) == voxels;
      right = right && extent_of(-extent / 2, extent / 2, side) == voxels;
      right = right && extent_of(-3, extent - 3, side) == voxels;
      right = right && extent_of(0, double{static_cast<float>(extent)}, double{side_f}) == voxels;
      right = right && extent_of(double{-static_cast<float>(extent / 2)},
                                 double{static_cast<float>(extent / 2)}, double{side_f}) == voxels;
      right = right &&
              extent_of(0, double{side_f * static_cast<float>(voxels)}, double{side_f}) == voxels;
      right = right && extent_of(0, side * voxels, side) == voxels;
      // And what is begun is a voxel more.
      right = right && extent_of(0, side * (voxels + 0.01), side) == voxels + 1;
      right = right && extent_of(0, side * (voxels - 0.01), side) == voxels;
      REQUIRE_MESSAGE(right, text("voxel ", side, ", ", voxels, " of them"));
    }
  }
  CHECK(pairs == 23880);
}

TEST_CASE("no point of a range is lost: the first has the first voxel, the last has the last") {
  for (int hundredths = 1; hundredths <= kMostHundredths; ++hundredths) {
    for (int voxels = 1; voxels <= kMostVoxels; ++voxels) {
      const double extent = hundredths * voxels / 100.0;
      const double low = voxels % 2 == 0 ? 0 : -extent / 2;
      const VoxelGrid grid =
          voxel_grid({low, low, low, low + extent, low + extent, low + extent}, hundredths / 100.0);
      const float last = std::nextafter(grid.high[0], grid.low[0]);
      bool right = place_of(grid, grid.low[0]) == 0 && place_of(grid, last) == voxels - 1;
      right = right && place_of(grid, grid.high[0]) == -1;
      right = right && place_of(grid, std::nextafter(grid.low[0], -1e9f)) == -1;
      REQUIRE_MESSAGE(right, text("voxel ", hundredths, " / 100, ", voxels, " of them"));
    }
  }
}

TEST_CASE("a range as detectors have it: 480 voxels of 0.32, and a side for each axis") {
  CHECK(extent_of(-76.8, 76.8, 0.32) == 480);
  CHECK(extent_of(4649776, 4649786.4, 1) == 11);
  CHECK(extent_of(double{1000.2f}, double{1153.8f}, double{0.32f}) == 480);
  const VoxelGrid grid = voxel_grid({0, -40, -3, 70.4, 40, 1}, {0.05, 0.05, 0.1});
  CHECK(grid.shape[0] == 40);
  CHECK(grid.shape[1] == 1600);
  CHECK(grid.shape[2] == 1408);
  const float point[3] = {0.12f, -39.99f, -2.85f};
  CHECK(key_of_point(grid, point) == (1 * 1600 + 0) * std::int64_t{1408} + 2);
}

TEST_CASE("neighbouring numbers further apart than a voxel are refused, by the type of points") {
  const std::array<double, 6> utm = {500000, 4649776, 0, 500010, 4649786, 10};
  const std::string refusal = refusal_of(utm, {0.05, 0.05, 0.05}, CoordinateType::f32);
  CHECK(contains(refusal, "voxel = 0.05: is less than the 0.5 between neighbouring float32"));
  CHECK(contains(refusal, "y = 4649786"));
  CHECK(refusal_of(utm, {0.5, 0.5, 0.5}, CoordinateType::f32).empty());
  CHECK(refusal_of(utm, {0.05, 0.05, 0.05}, CoordinateType::f64).empty());
  CHECK(contains(refusal_of(utm, {1e-10, 1, 1}, CoordinateType::f64), "voxel = 1e-10"));
  CHECK(contains(refusal_of({0, 0, 0, 100, 100, 100}, {0.05, 0.05, 0.05}, CoordinateType::f16),
                 "float16"));
  // The rule is that of the numbers themselves, at every distance.
  for (int exponent = -20; exponent <= 40; ++exponent) {
    const double far = std::ldexp(1.5, exponent), near = far - std::ldexp(1.0, exponent - 10);
    const auto above = static_cast<float>(far);
    const double spacing = double{above} - double{std::nextafter(above, 0.0f)};
    const std::array<double, 6> range = {near, near, near, far, far, far};
    CHECK(refusal_of(range, {spacing, spacing, spacing}, CoordinateType::f32).empty());
    const double less = spacing * 0.99;
    CHECK(!refusal_of(range, {less, less, less}, CoordinateType::f32).empty());
    CHECK(refusal_of(range, {less, less, less}, CoordinateType::f64).empty());
  }
}

TEST_CASE("points in float64 keep their voxels far from the origin") {
  const std::array<double, 6> range = {500000, 4649776, 0, 500010, 4649786, 10};
  const VoxelGrid grid = voxel_grid(range, 0.05, CoordinateType::f64);
  std::vector<double> numbers;
  for (const double y : {4649776.20, 4649776.35, 4649776.70, 4649776.55})
    numbers.insert(numbers.end(), {500000.03, y, 1.0});
  const Array points = points_in_float(grid, range, numbers, 3);
  std::set<std::int64_t> keys;
  for (std::size_t i = 0; i < 12; i += 3) keys.insert(key_of_point(grid, &points.as<float>()[i]));
  CHECK(keys.size() == 4);
  CHECK(!keys.contains(kNoVoxel));
}

TEST_CASE("a point in float64 keeps its side of every border, and its voxel but at one") {
  Dice dice(5);
  for (int i = 0; i < 20000; ++i) {
    const double far = std::ldexp(dice(-1000, 1000), dice(-5, 15)), side = dice(1, 100) / 100.0;
    const double extent = side * dice(1, 400);
    const std::array<double, 6> range = {far, far, far, far + extent, far + extent, far + extent};
    const VoxelGrid grid = voxel_grid(range, side, CoordinateType::f64);
    const double p = i % 5 == 0   ? far
                     : i % 5 == 1 ? std::nextafter(range[3], far)
                     : i % 5 == 2 ? range[3]
                     : i % 5 == 3 ? std::nextafter(far, far - 1)
                                  : far + extent * dice(0, 1 << 20) / (1 << 20);
    const bool inside = p >= range[0] && p < range[3];
    const Array points = points_in_float(grid, range, std::vector<double>{p, p, p}, 3);
    const std::int64_t place = place_of(grid, points.as<float>()[0]);
    REQUIRE_MESSAGE((place >= 0) == inside, text(p, " in ", range[0], " to ", range[3]));
    if (!inside) continue;
    const double exact = (p - far) / side, whole = std::floor(exact);
    const double beside = std::min(exact - whole, whole + 1 - exact);
    const bool near_border = beside < 1e-3;
    REQUIRE((near_border || static_cast<double>(place) == whole));
    REQUIRE(std::abs(static_cast<double>(place) - exact) < 1.01);
  }
}

TEST_CASE("points in float64: what float32 cannot hold is refused, what is no number stays") {
  const std::array<double, 6> range = {0, 0, 0, 1, 1, 1};
  const VoxelGrid grid = voxel_grid(range, 1, CoordinateType::f64);
  CHECK_THROWS_AS(points_in_float(grid, range, std::vector<double>{0, 0, 0, 1e300}, 4), BadInput);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array points = points_in_float(grid, range, std::vector<double>{1e300, nan, 0, nan}, 4);
  CHECK(key_of_point(grid, points.as<float>().data()) == kNoVoxel);
  CHECK(std::isnan(points.as<float>()[3]));
}

TEST_CASE("a mean of many points, far away and close together, may err by a few ulps, not more") {
  for (const int count : {2, 1000, 100000}) {
    for (const float far : {70.1f, 206494.75f, 285.3f}) {
      Array points(DType::f32, {count, 4});
      long double sum = 0;
      for (int n = 0; n < count; ++n) {
        // Spread over four neighbouring floats.
        float number = far;
        for (int step = 0; step < n % 4; ++step) number = std::nextafter(number, 1e9f);
        for (const std::size_t c : {0u, 1u, 2u, 3u})
          points.as<float>()[static_cast<std::size_t>(n) * 4 + c] = number;
        sum += static_cast<long double>(number);
      }
      const double low = std::floor(double{far}) - 1, high = low + 4;
      const VoxelizeProblem problem = validated(VoxelizeProblem{
          .grid = voxel_grid({low, low, low, high, high, high}, 4), .points = count});
      const auto mean = static_cast<float>(sum / count);
      CHECK(accepts(problem, points, {mean, mean, mean, mean}));
      float off = mean;
      for (int step = 0; step < 8; ++step) off = std::nextafter(off, 1e9f);
      CHECK(!accepts(problem, points, {mean, mean, mean, off}));
    }
  }
}

TEST_CASE("a mean that is NaN or infinite is accepted there alone, and nothing else there") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const VoxelizeProblem problem =
      validated(VoxelizeProblem{.grid = voxel_grid({0, 0, 0, 2, 1, 1}, 1), .points = 2});
  for (const float number : {kNan, kInf, -kInf}) {
    Array points(DType::f32, {2, 4});
    std::ranges::copy(std::vector<float>{0, 0, 0, number, 1, 0, 0, 5}, points.as<float>().begin());
    CHECK(accepts(problem, points, {0, 0, 0, number, 1, 0, 0, 5}));
    CHECK(!accepts(problem, points, {0, 0, 0, 5, 1, 0, 0, 5}));
    CHECK(!accepts(problem, points, {0, 0, 0, number, 1, 0, 0, number}));
    CHECK(!accepts(problem, points, {0, 0, 0, std::isnan(number) ? kInf : -number, 1, 0, 0, 5}));
  }
}

TEST_CASE("voxelize is deterministic: cancelling numbers of many binades, in any thread order" *
          doctest::test_suite("all rungs")) {
  Dice dice(7);
  for (const int binades : {1, 20, 60, 120, 240}) {
    for (const int count : {12, 1500}) {
      CAPTURE(binades);
      CAPTURE(count);
      const VoxelizeProblem problem = validated(VoxelizeProblem{
          .grid = voxel_grid({-1, -1, -1, 1, 1, 1}, {1, 2, 2}), .points = count, .columns = 7});
      check_all_orders(problem, points_that_cancel(problem, binades, dice));
    }
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
