/// @file voxelize.cpp
/// @brief Points to sites with mean features.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/voxelize_problem.hpp"
#include "oracle/lidar_sweep.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

/// Made-up numbers are from -8 to 8, or from -1 to 1.
constexpr float kMost = 8;

/// A cube from -8 to `high` along each axis.
VoxelizeProblem in_cube(int points, float voxel, int columns = 4, float high = kMost) {
  return validated(
      VoxelizeProblem{.grid = voxel_grid({-kMost, -kMost, -kMost, high, high, high}, voxel),
                      .points = points,
                      .columns = columns});
}

/// One point in each of count voxels of side 1, from the last one down, in a grid of 16 x 16 x 16.
Array spread_points(int count) {
  Array points(DType::f32, {count, 4});
  auto to = points.as<float>().begin();
  for (int i = 0; i < count; ++i) {
    const int key = 16 * 16 * 16 - 1 - i * 5 % (16 * 16 * 16);
    for (const int number : {key % 16 - 8, key / 16 % 16 - 8, key / 256 - 8, i % 9})
      *to++ = static_cast<float>(number);
  }
  return points;
}

/// A sector of a simulated sweep, in eighths of a metre, whose sums are exact.
Array sector_points() {
  Array points = lidar_points(300, 1);
  for (float& number : points.as<float>()) number = std::round(number * 8) / 8;
  return points;
}

/// Points of a wall that a scanner sees 206 km from the origin: many in each voxel, all with nearly
/// the same coordinates.
Array far_points() {
  Array points(DType::f32, {101 * 41, 4});
  auto to = points.as<float>().begin();
  for (int x = 0; x <= 100; ++x) {
    for (int y = 0; y <= 40; ++y) {
      for (const double number : {206494.75 + 0.05 * x, -3 + 0.05 * y, 5.0, 250 + 0.7 * x})
        *to++ = static_cast<float>(number);
    }
  }
  return points;
}

/// Numbers of sixty binades in one voxel, and the same with the other sign: no order adds them up
/// without rounding in double, and what is left of the sum shows which order it was.
Array points_of_sixty_binades() {
  constexpr std::size_t kHalf = 250;
  Array points(DType::f32, {2 * kHalf, 4});
  const auto numbers = points.as<float>();
  std::ranges::fill(numbers, 0.5f);
  Dice dice(3);
  for (std::size_t row = 0; row < kHalf; ++row) {
    const float number = std::ldexp(static_cast<float>(dice(-1000, 1000)) / 7, dice(-60, 0));
    numbers[4 * row + 3] = number;
    numbers[4 * (row + kHalf) + 3] = -number;
  }
  return points;
}

/// Three voxels whose intensities are not finite, or have a sum that no float holds.
Array extreme_points() {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> rows = {
      {0.5, 0, 0, 3e38f}, {0.5, 0, 0, 3e38f}, {1.5, 0, 0, kNan}, {1.5, 0, 0, 2},
      {2.5, 0, 0, kInf},  {2.5, 0, 0, 2},     {3.5, 0, 0, kInf}, {3.5, 0, 0, -kInf},
      {kNan, 0, 0, 1},    {1, kInf, 0, 1},    {1, 0, -kInf, 1},  {4.5, 0, 0, 7}};
  Array points(DType::f32, {static_cast<std::int64_t>(rows.size()), 4});
  auto to = points.as<float>().begin();
  for (const std::vector<float>& row : rows) to = std::ranges::copy(row, to).out;
  return points;
}

/// Each shows one kind of mistake, and its name says which.
std::vector<TestProblem> voxelize_problems() {
  std::vector<TestProblem> list;
  const auto add = [&](const std::string& name, const VoxelizeProblem& problem,
                       Size size = Size::small, std::size_t misalignment = 0) {
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  const auto add_given = [&](const std::string& name, VoxelizeProblem problem, Array points) {
    problem.points = static_cast<int>(points.shape()[0]);
    problem.columns = static_cast<int>(points.shape()[1]);
    add(name, problem);
    list.back().given.emplace("points", std::move(points));
  };
  add("no points", in_cube(0, 1));
  add("one point", in_cube(1, 4, 4, 9));
  add("one point, x, y and z alone", in_cube(1, 4, 3, 9));
  add("no point in the range",
      {.grid = voxel_grid({100, 100, 100, 101, 101, 101}, 1), .points = 40});
  add("one voxel", in_cube(300, 17, 4, 9));
  add("one voxel, three columns", in_cube(257, 17, 3, 9));
  add("the upper corner lies outside", in_cube(500, 1));
  add("past the last voxel by rounding", in_cube(400, 2, 4, 1e-8f));
  add("another side along each axis",
      {.grid = voxel_grid({-8, -8, -8, 9, 9, 9}, {1, 0.5, 3}), .points = 600});
  for (const int columns : {5, 8, 9}) add("more than four columns", in_cube(300, 4, columns, 9));
  VoxelGrid shifted = voxel_grid({-8, -8, -8, 9, 9, 9}, 3);
  shifted.origin[0] = 500000, shifted.origin[2] = 4649776;
  add("means have an origin added", {.grid = shifted, .points = 300});
  add("another extent along each axis",
      {.grid = voxel_grid({-8, -3, -1, 2, 4, 2}, 1), .points = 700});
  for (const float voxel : {0.3f, 0.6f})
    add("a quotient is not the product with a reciprocal", in_cube(900, voxel, 4, 9));
  add("many points a voxel", in_cube(1500, 6, 4, 9));
  for (const int n : {255, 256, 257}) add("around a block of 256 points", in_cube(n, 2, 3));
  for (const std::size_t offset : {4u, 8u, 12u})
    add(text("arrays at 16 n + ", offset, " bytes"), in_cube(120, 1), Size::small, offset);
  add("more than a tile of 32768 voxels", in_cube(500, 0.25f));
  add("keys beyond 32 bits", in_cube(200, 1 / 256.0f));
  add("voxels in three thousand tiles", in_cube(60, 1 / 29.0f), Size::full);
  list.back().once = true;
  add("a heap of points", in_cube(9000, 16, 4, 9), Size::full);
  add_given("each point has a voxel, from the last one down", in_cube(0, 1), spread_points(700));
  add_given("a sector of a sweep", {.grid = voxel_grid(kLidarRange, 0.5f)}, sector_points());
  add_given("not finite, or with a sum beyond float", in_cube(0, 1), extreme_points());
  const auto add_rounded = [&](const std::string& name, const VoxelizeProblem& problem,
                               Array points) {
    add_given(name, problem, std::move(points));
    list.back().equal_sums = true;  // they are compared within the bound on rounding
  };
  add_rounded("far from the origin", {.grid = voxel_grid({206490, -10, 0, 206510, 10, 10}, 1)},
              far_points());
  add_rounded("numbers of sixty binades in a voxel", in_cube(0, 1), points_of_sixty_binades());
  return list;
}

VoxelizeProblem random_voxelize(Dice& dice) {
  const float high = static_cast<float>(dice(1, 9));
  VoxelizeProblem p{.points = dice(0, 3000), .columns = dice(1, 3) == 1 ? dice(5, 9) : dice(3, 4)};
  const auto side = [&dice] { return dice(1, 40) / 8.0; };
  const double first = side();
  const bool cubes = dice(0, 1) == 0;
  p.grid = voxel_grid({-high, -kMost, -1, kMost, high, high},
                      {first, cubes ? first : side(), cubes ? first : side()});
  return validated(p);
}

std::vector<VoxelizeProblem> voxelize_bases() {
  return {in_cube(1, 1), in_cube(100, 3, 3), in_cube(700, 2, 4, 9)};
}

/// The points in another order.
Array shuffled(const Array& points, std::uint64_t seed) {
  const auto columns = static_cast<std::size_t>(points.shape()[1]);
  Array result = points;
  std::size_t to = 0;
  for (const int from : permutation(static_cast<int>(points.shape()[0]), seed)) {
    std::copy_n(floats(points).begin() + static_cast<std::ptrdiff_t>(at(from) * columns), columns,
                result.as<float>().begin() + static_cast<std::ptrdiff_t>(to));
    to += columns;
  }
  return result;
}

/// The points, and once more.
Array twice(const Array& points) {
  Array result(DType::f32, {2 * points.shape()[0], points.shape()[1]});
  const auto end = std::ranges::copy(floats(points), result.as<float>().begin()).out;
  std::ranges::copy(floats(points), end);
  return result;
}

void expect_same_sites(const Arrays& found, const Arrays& expected) {
  if (!std::ranges::equal(found.at("out_coords").as<std::int32_t>(),
                          expected.at("out_coords").as<std::int32_t>()))
    throw Broken{"other sites"};
}

/// What holds without a look at the definition.
std::vector<Identity<VoxelizeProblem>> voxelize_identities(const Subject& f, const CheckOptions&) {
  return {
      {"points in another order are the same voxels",
       [](const VoxelizeProblem& p) { return p.points > 1; },
       [&f](const VoxelizeProblem& p) {
         const Array points = f.inputs(p).at("points");
         const Arrays found = f(p, {{"points", shuffled(points, 5)}});
         const Arrays expected = f(p, {{"points", points}});
         expect_same_sites(found, expected);
         expect_same(found.at("features"), expected.at("features"));
       }},
      {"each point twice has the same means",
       {},
       [&f](const VoxelizeProblem& p) {
         VoxelizeProblem more = p;
         more.points *= 2;
         const Array points = f.inputs(p).at("points");
         const Arrays found = f(more, {{"points", twice(points)}});
         const Arrays expected = f(p, {{"points", points}});
         expect_same_sites(found, expected);
         expect_same(found.at("features"), expected.at("features"));
       }},
      {"a range that moves with the points has the same sites",
       {},
       [&f](const VoxelizeProblem& p) {
         constexpr float kBy = 16;
         const Array points = f.inputs(p).at("points");
         VoxelizeProblem moved = p;
         Array there = points;
         for (int axis = 0; axis < 3; ++axis)
           moved.grid.low[axis] += kBy, moved.grid.high[axis] += kBy;
         const auto columns = static_cast<std::size_t>(p.columns);
         for (std::size_t i = 0; i < there.as<float>().size(); ++i)
           if (i % columns < 3) there.as<float>()[i] += kBy;
         expect_same_sites(f(moved, {{"points", there}}), f(p, {{"points", points}}));
       }},
  };
}

/// Nothing runs: a rung's arithmetic with sizes must not overflow.
std::vector<Problem> voxelize_limits() {
  std::vector<Problem> list;
  for (const float voxel : {16.0f, 1 / 128.0f, 1 / 65536.0f})
    list.emplace_back(in_cube(kLargestInt, voxel));
  return list;
}

std::vector<TestProblem> small_voxelize() {
  std::vector<TestProblem> list;
  for (const int columns : {3, 4})
    list.push_back({.name = "", .problem = in_cube(40, 5, columns, 9)});
  return list;
}

}  // namespace

LadderTests voxelize_tests() {
  return {voxelize_problems,
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_voxelize(dice); });
          },
          {},
          checked<VoxelizeProblem>(voxelize_identities, voxelize_bases),
          voxelize_limits,
          small_voxelize};
}

}  // namespace convladder::testing
