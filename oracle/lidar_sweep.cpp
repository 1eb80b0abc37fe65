#include "oracle/lidar_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/error.hpp"

namespace convladder {
namespace {

using Length = std::int64_t;  // millimetres

// The sensor.
constexpr std::int64_t kBeams = 64, kDirections = 4200;   // of a rotation
constexpr int kLowestBeam = -17600, kHighestBeam = 2400;  // thousandths of a degree
constexpr Length kSensorHeight = 1900, kReach = 75'000, kNoise = 24;
constexpr int kLost = 40;  // rays of 1000 without an echo
constexpr Length kAheadEachTurn = 1000;
constexpr int kMostTurns = 200;

// The grid. Its corner has the same distance from the first sensor position.
constexpr Length kVoxel = 100, kSide = 80'000, kBelow = 3000;

// The street runs along x; the sensor moves on it.
constexpr Length kStreetEnd = 120'000, kKerb = 7000, kPavement = 150;
constexpr Length kGround = -kSensorHeight, kTreesApart = 4000;

constexpr int kOneBits = 28;
constexpr std::int64_t kOne = std::int64_t{1} << kOneBits;  // 1 in fixed point
constexpr std::int64_t kQuarterTurn = 421'657'428;          // pi / 2 in it

constexpr Length kNever = std::numeric_limits<Length>::max() / 4;

/// Numbers that are the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 1) {}
  /// A number in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto values = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>((engine_() >> 32) * values >> 32);
  }

 private:
  std::mt19937_64 engine_;
};

/// The sine of an angle in [0, pi / 2], by its series: x (1 - x^2/6 (1 - x^2/20 (1 - ...))).
std::int64_t sine_of_quarter(std::int64_t x) {
  const std::int64_t square = x * x >> kOneBits;
  std::int64_t rest = kOne;
  for (std::int64_t k = 12; k >= 2; k -= 2)
    rest = kOne - (square * rest >> kOneBits) / (k * (k + 1));
  return x * rest >> kOneBits;
}

/// The sine of `part` of `whole` rotations, part >= 0.
std::int64_t sine(std::int64_t part, std::int64_t whole) {
  part %= whole;
  const std::int64_t quarter = 4 * part / whole, in_quarter = 4 * part % whole;
  const std::int64_t angle = kQuarterTurn * in_quarter / whole;
  const std::int64_t value = sine_of_quarter(quarter % 2 == 0 ? angle : kQuarterTurn - angle);
  return quarter < 2 ? value : -value;
}

enum class Kind {
  box,    ///< box from the ground to its top
  pole,   ///< cylinder from the ground to its top
  leaves  ///< round, from `bottom` to its top; a ray ends anywhere inside of it, or passes through
};

/// An upright solid.
struct Solid {
  Kind kind = Kind::box;
  Length x = 0, y = 0;            ///< Its centre.
  Length half_x = 0, half_y = 0;  ///< Half of its sides; the radius for round ones.
  Length top = 0, bottom = kGround;
};

std::vector<Solid> make_street(Random& random) {
  std::vector<Solid> solids;
  for (const Length side : {-1, 1}) {
    solids.push_back(
        {Kind::box, 0, side * (kKerb + 30'000), kStreetEnd, 30'000, kGround + kPavement});
    for (Length x = -kStreetEnd; x < kStreetEnd;) {  // buildings, with gaps between them
      const Length half = random.between(5000, 14'000), depth = random.between(4000, 8000);
      const Length front = random.between(12'000, 40'000);
      solids.push_back({Kind::box, x + half, side * (front + depth), half, depth,
                        kGround + random.between(3500, 14'000)});
      x += 2 * half + random.between(4000, 20'000);
    }
    for (Length x = -kStreetEnd + random.between(0, 9000); x < kStreetEnd;
         x += random.between(5400, 16'000)) {  // parked cars
      solids.push_back({Kind::box, x, side * (kKerb - random.between(1100, 1400)),
                        random.between(1950, 2400), random.between(850, 950),
                        kGround + random.between(1400, 1800)});
    }
    for (Length x = -kStreetEnd + random.between(0, 9000); x < kStreetEnd;
         x += random.between(22'000, 50'000)) {  // moving cars, none at the sensor's position
      if (std::abs(x) < 9000) continue;
      solids.push_back({Kind::box, x, side * random.between(1500, 2200), random.between(2100, 4500),
                        random.between(880, 1100), kGround + random.between(1450, 2800)});
    }
    for (Length x = -kStreetEnd + random.between(0, 9000); x < kStreetEnd;
         x += random.between(7000, 18'000)) {  // poles, trunks, signs
      const Length radius = random.between(60, 220);
      solids.push_back({Kind::pole, x, side * (kKerb + random.between(600, 2500)), radius, radius,
                        kGround + random.between(2500, 9000)});
    }
    for (Length x = -kStreetEnd + random.between(0, 9000); x < kStreetEnd;
         x += random.between(kTreesApart / 2, 2 * kTreesApart)) {  // trees and bushes
      const Length y = side * (kKerb + random.between(1500, 30'000));
      const Length radius = random.between(800, 3500);
      const bool tree = random.between(0, 2) != 0;
      const Length bottom = kGround + (tree ? random.between(1500, 3000) : 0);
      if (tree) solids.push_back({Kind::pole, x, y, 150, 150, bottom});
      solids.push_back({Kind::leaves, x, y, radius, radius, bottom + 2 * radius, bottom});
    }
  }
  return solids;
}

/// The interval of distances along the ground in which a ray is above a solid.
struct Crossing {
  Length enter = kNever, leave = -1;
  const Solid* solid = nullptr;
};

/// A direction in the plane, in fixed point.
struct Direction {
  std::int64_t x = 0, y = 0;
};

Crossing cross_box(const Solid& solid, Length from_x, Direction to) {
  Crossing crossing{0, kNever, &solid};
  const auto clip = [&](Length centre, Length half, std::int64_t slope) {
    if (slope == 0) {
      if (std::abs(centre) > half) crossing.leave = -1;
      return;
    }
    const Length a = (centre - half) * kOne / slope, b = (centre + half) * kOne / slope;
    crossing.enter = std::max(crossing.enter, std::min(a, b));
    crossing.leave = std::min(crossing.leave, std::max(a, b));
  };
  clip(solid.x - from_x, solid.half_x, to.x);
  clip(solid.y, solid.half_y, to.y);
  return crossing;
}

Crossing cross_round(const Solid& solid, Length from_x, Direction to) {
  const Length x = solid.x - from_x, y = solid.y;
  const Length along = (x * to.x + y * to.y) / kOne, aside = (x * to.y - y * to.x) / kOne;
  const Length radius = solid.half_x;
  if (std::abs(aside) > radius) return {};
  // The square root of an integer; rounded to float it is the same everywhere.
  const auto half =
      static_cast<Length>(std::sqrt(static_cast<double>(radius * radius - aside * aside)));
  return {along - half, along + half, &solid};
}

/// The distance along the ground that a ray with this slope (height by distance) travels through
/// `crossings`, which are sorted by their start.
Length distance_to_hit(std::int64_t slope, const std::vector<Crossing>& crossings, Random& random) {
  const auto distance_to = [&](Length height) {  // where a falling ray has this height
    return slope < 0 ? height * kOne / slope : kNever;
  };
  Length nearest = distance_to(kGround);
  for (const Crossing& crossing : crossings) {
    if (crossing.enter >= nearest) break;
    const Solid& solid = *crossing.solid;
    if (solid.kind == Kind::leaves) {
      const Length at = random.between(crossing.enter, crossing.leave);
      const Length height = at * slope / kOne;
      if (height >= solid.bottom && height <= solid.top) nearest = std::min(nearest, at);
    } else if (crossing.enter * slope / kOne <= solid.top) {
      nearest = crossing.enter;
    } else if (const Length roof = distance_to(solid.top); roof <= crossing.leave) {
      nearest = std::min(nearest, roof);
    }
  }
  return nearest;
}

/// The voxels hit so far: one bit per voxel of the grid, and a list of them.
class Hits {
 public:
  Hits() : words_(static_cast<std::size_t>(kLidarShape[0]) * kRow * kRow / 64) {}

  /// A point relative to the grid's corner. @param beam counted continuously over the rotations
  void add(std::int64_t beam, Length x, Length y, Length z) {
    if (x < 0 || y < 0 || z < 0) return;
    x /= kVoxel;
    y /= kVoxel;
    z /= kVoxel;
    if (x >= kRow || y >= kRow || z >= kLidarShape[0]) return;
    const auto cell = static_cast<std::uint64_t>((z * kRow + y) * kRow + x);
    std::uint64_t& word = words_[cell / 64];
    const std::uint64_t bit = std::uint64_t{1} << cell % 64;
    if ((word & bit) == 0) hits_.push_back({beam, static_cast<std::int64_t>(cell)});
    word |= bit;
  }

  std::int64_t count() const { return static_cast<std::int64_t>(hits_.size()); }

  Array coords(SweepOrder order) {
    if (order == SweepOrder::ascending) {
      std::ranges::sort(hits_, {}, &Hit::cell);
    } else {
      std::ranges::stable_sort(hits_, {}, &Hit::beam);  // hits of a beam keep their order
    }
    Array coords(DType::i32, {count(), 4});
    auto to = coords.as<std::int32_t>().begin();
    for (const auto& [beam, cell] : hits_) {
      for (const std::int64_t number :
           {std::int64_t{0}, cell / (kRow * kRow), cell / kRow % kRow, cell % kRow}) {
        *to++ = static_cast<std::int32_t>(number);
      }
    }
    return coords;
  }

 private:
  /// The first hit of a voxel.
  struct Hit {
    std::int64_t beam, cell;
  };
  static constexpr std::int64_t kRow = kLidarShape[2];
  static_assert(kLidarShape[1] == kRow && kRow * kRow % 64 == 0);

  std::vector<std::uint64_t> words_;
  std::vector<Hit> hits_;
};

/// The end point of a ray, relative to the grid's corner. Its beam is counted continuously over the
/// rotations.
struct Point {
  std::int64_t beam;
  Length x, y, z, distance;
};

/// Rotates the sensor until it has hit this many voxels, or for one rotation. Calls visit(point)
/// for each point, including those outside of the grid.
template <class Visit>
Hits turn_sensor(std::int64_t voxels, std::uint64_t seed, const Visit& visit) {
  require(voxels == kOneTurn || (voxels >= 1 && voxels <= kMostLidarVoxels), "lidar", voxels,
          text("must be 1 to ", kMostLidarVoxels, " voxels"));
  Random random(seed);
  const std::vector<Solid> street = make_street(random);
  std::vector<std::int64_t> slopes;  // tangents
  for (std::int64_t beam = 0; beam < kBeams; ++beam) {
    // Twice as dense at the top, near the horizon, as in the middle, to resolve the distant ground.
    constexpr std::int64_t kLast = kBeams - 1;
    const std::int64_t angle =
        kHighestBeam + 360'000 -
        (kHighestBeam - kLowestBeam) * beam * (beam + kLast) / (2 * kLast * kLast);
    slopes.push_back(sine(angle, 360'000) * kOne / sine(angle + 90'000, 360'000));
  }

  Hits hits;
  std::vector<Crossing> crossings;
  for (std::int64_t turn = 0; turn < (voxels == kOneTurn ? 1 : kMostTurns); ++turn) {
    const Length from_x = turn * kAheadEachTurn;
    for (std::int64_t step = 0; step < kDirections; ++step) {
      const Direction to{sine(4 * step + kDirections, 4 * kDirections), sine(step, kDirections)};
      crossings.clear();
      for (const Solid& solid : street) {
        const Crossing crossing =
            solid.kind == Kind::box ? cross_box(solid, from_x, to) : cross_round(solid, from_x, to);
        if (crossing.enter < crossing.leave && crossing.enter > 0 && crossing.enter < kReach)
          crossings.push_back(crossing);
      }
      std::sort(crossings.begin(), crossings.end(),
                [](const Crossing& a, const Crossing& b) { return a.enter < b.enter; });
      std::int64_t beam = turn * kBeams;
      for (const std::int64_t slope : slopes) {
        ++beam;
        Length noise = 0;
        for (int i = 0; i < 4; ++i) noise += random.between(-kNoise, kNoise);
        const bool lost = random.between(0, 999) < kLost;
        Length distance = distance_to_hit(slope, crossings, random);
        if (lost || distance > kReach) continue;
        distance += noise;
        const Point point{beam, from_x + kSide + distance * to.x / kOne,
                          kSide + distance * to.y / kOne, kBelow + distance * slope / kOne,
                          distance};
        hits.add(beam, point.x, point.y, point.z);
        visit(point);
        if (hits.count() == voxels) return hits;
      }
    }
  }
  return hits;
}

}  // namespace

Array lidar_sweep(std::int64_t voxels, std::uint64_t seed, SweepOrder order) {
  return turn_sensor(voxels, seed, [](const Point&) {}).coords(order);
}

Array lidar_points(std::int64_t voxels, std::uint64_t seed) {
  std::vector<Point> points;
  turn_sensor(voxels, seed, [&](const Point& point) { points.push_back(point); });
  std::ranges::stable_sort(points, {}, &Point::beam);  // hits of a beam keep their order
  Array array(DType::f32, {static_cast<std::int64_t>(points.size()), 4});
  auto to = array.as<float>().begin();
  const auto metres = [](Length length) { return static_cast<float>(length) / 1000; };
  for (const Point& point : points) {
    for (const float number :
         {metres(point.x - kSide), metres(point.y - kSide), metres(point.z - kBelow),
          static_cast<float>(kReach - point.distance) / static_cast<float>(kReach)})
      *to++ = number;
  }
  return array;
}

}  // namespace convladder
