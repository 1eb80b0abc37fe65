#include "benchmarks/sites.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "core/text.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/made_up_sites.hpp"
#include "oracle/rulebook.hpp"
#include "oracle/voxels.hpp"

namespace convladder::benchmarks {
namespace {

constexpr std::uint64_t kSeed = 1;  // of simulated and random sites

/// The outermost layer of the cells of a ball in a cube, one cell thick.
Array shell_sites(int side) {
  std::vector<std::int32_t> rows;
  const double radius = side / 2.0;
  const auto offset = [&](int i) { return i + 0.5 - radius; };
  for (int z = 0; z < side; ++z) {
    for (int y = 0; y < side; ++y) {
      const double rest = offset(z) * offset(z) + offset(y) * offset(y);
      if (rest >= radius * radius) continue;
      for (int x = 0; x < side; ++x) {
        const double square = rest + offset(x) * offset(x);
        if (square >= (radius - 1) * (radius - 1) && square < radius * radius)
          rows.insert(rows.end(), {0, z, y, x});
      }
    }
  }
  Array coords(DType::i32, {static_cast<std::int64_t>(rows.size() / 4), 4});
  std::copy(rows.begin(), rows.end(), coords.as<std::int32_t>().begin());
  return coords;
}

Array cube_sites(int side) {
  Array coords(DType::i32, {std::int64_t{side} * side * side, 4});
  auto to = coords.as<std::int32_t>().begin();
  for (int z = 0; z < side; ++z) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) to = std::ranges::copy(std::array{0, z, y, x}, to).out;
    }
  }
  return coords;
}

/// The rows of sites or points, four numbers of 32 bits each, in another order.
Array reordered(const Array& sites, const std::string& name) {
  using Row = std::array<std::byte, 16>;
  std::vector<Row> rows(static_cast<std::size_t>(sites.shape()[0]));
  std::memcpy(rows.data(), sites.data(), rows.size() * sizeof(Row));
  if (name == "reversed") {
    std::ranges::reverse(rows);
  } else {
    std::mt19937_64 engine(kSeed);
    for (std::size_t last = rows.size(); last > 1; --last)  // Fisher and Yates
      std::swap(rows[last - 1], rows[engine() % last]);
  }
  Array result(sites.dtype(), sites.shape());
  std::memcpy(result.data(), rows.data(), rows.size() * sizeof(Row));
  return result;
}

Array make_sites(const std::string& name) {
  const SiteSource& source = site_sources().at(name);
  const int side = source.shape[0];
  if (name == "sweep" || name == "large") return lidar_sweep(source.count, kSeed);
  if (name == "scanned") return lidar_sweep(source.count, kSeed, SweepOrder::scanned);
  if (name == "reversed" || name == "shuffled") return reordered(sites_named("sweep"), name);
  if (name.starts_with("shell-")) return shell_sites(side);
  if (name.starts_with("cube-")) return cube_sites(side);
  const auto strided = [](const std::string& from, const Window& window) {
    return make_rulebook(book_over(from, window, RulebookForm::pairs), sites_named(from))
        .out_coords;
  };
  if (name == "half") return strided("sweep", kK3s2);
  if (name == "quarter") return strided("half", kK3s2);
  if (name == "eighth") return strided("quarter", kFlat);
  const RulebookProblem grid{.sites = static_cast<int>(source.count), .shape = source.shape};
  return random_sites(validated(grid), source.count, kSeed);
}

}  // namespace

// The counts are those of the generators; sites_named() compares.
const std::map<std::string, SiteSource>& site_sources() {
  static const std::map<std::string, SiteSource> all = {
      {"sweep", {125562, kLidarShape, "a LiDAR sweep"}},
      {"scanned", {125562, kLidarShape, "the sweep beam by beam, as a scanner's file has it"}},
      {"reversed", {125562, kLidarShape, "the sweep in descending order"}},
      {"shuffled", {125562, kLidarShape, "the sweep in no order"}},
      {"large", {913903, kLidarShape, "a long LiDAR sweep"}},
      {"half", {113971, {{40, 800, 800, 0}}, "the sweep at half its resolution"}},
      {"quarter", {44678, {{20, 400, 400, 0}}, "the sweep at a quarter of its resolution"}},
      {"eighth", {14780, {{9, 200, 200, 0}}, "the sweep at an eighth of its resolution"}},
      {"shell-64", {12576, every_axis(64), "a sphere's surface"}},
      {"shell-256", {202400, every_axis(256), "a sphere's surface"}},
      {"shell-1024", {3292736, every_axis(1024), "a sphere's surface"}},
      {"random-100k", {100'000, kLidarShape, "sites that hardly ever meet"}},
      {"cube-10", {1'000, every_axis(10), "every cell: few sites"}},
      {"cube-46", {97'336, every_axis(46), "every cell: as many sites as in a sweep"}},
      {"cube-100", {1'000'000, every_axis(100), "every cell: all look-ups find"}},
      {"cube-215", {9'938'375, every_axis(215), "every cell: as many sites as it gets"}},
  };
  return all;
}

const std::map<std::string, SiteSource>& point_sources() {
  static const std::map<std::string, SiteSource> all = {
      {"sweep", {263413, kLidarShape, "the points of a LiDAR sweep, as a scanner's file has them"}},
      {"large", {6058246, kLidarShape, "the points of a long LiDAR sweep: many in each voxel"}},
      {"shuffled", {263413, kLidarShape, "the points of a LiDAR sweep in no order"}},
  };
  return all;
}

namespace {

/// Those of a name, by make(), which must be as many as the table says.
template <class Make>
const Array& made_once(std::map<std::string, Array>& made,
                       const std::map<std::string, SiteSource>& sources, const std::string& name,
                       const Make& make) {
  auto rows = made.find(name);
  if (rows == made.end()) {
    rows = made.emplace(name, make()).first;
    const std::int64_t count = rows->second.shape()[0];
    if (count != sources.at(name).count)
      throw std::logic_error(text("the rows of ", name, " are ", count, ": correct their table"));
  }
  return rows->second;
}

}  // namespace

const Array& sites_named(const std::string& name) {
  static std::map<std::string, Array> made;
  return made_once(made, site_sources(), name, [&] { return make_sites(name); });
}

const Array& points_named(const std::string& name) {
  static std::map<std::string, Array> made;
  return made_once(made, point_sources(), name, [&] {
    return name == "shuffled" ? reordered(points_named("sweep"), name)
                              : lidar_points(site_sources().at(name).count, kSeed);
  });
}

RulebookProblem book_over(const std::string& sites, const Window& window, RulebookForm form) {
  const SiteSource& source = site_sources().at(sites);
  return validated(RulebookProblem{.mode = window.mode,
                                   .sites = static_cast<int>(source.count),
                                   .shape = source.shape,
                                   .kernel = window.kernel,
                                   .stride = window.stride,
                                   .pad = window.pad,
                                   .form = form});
}

}  // namespace convladder::benchmarks
