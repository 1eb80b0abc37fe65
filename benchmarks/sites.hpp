/// @file sites.hpp
/// @brief The sites that sparse problems are timed on, and the windows of their rulebooks.
#pragma once

#include <map>
#include <string>

#include "core/array.hpp"
#include "core/problem.hpp"

namespace convladder::benchmarks {

/// Where sites come from.
struct SiteSource {
  std::int64_t count;
  PerAxis shape;
  const char* words;
};

/// By name:
/// - `sweep`, `large`: a simulated LiDAR sweep of 125,562 and of 913,903 voxels (lidar_sweep());
/// - `scanned`, `reversed`, `shuffled`: the voxels of `sweep`, beam by beam as a scanner's file has
///   them, in descending order, and in no order. The other sweeps are in ascending order;
/// - `half`, `quarter`, `eighth`: what one, two and three strided convolutions leave of `sweep`, as
///   in the VoxelBackBone8x of OpenPCDet;
/// - `shell-64` ...: a sphere's surface in a cube of so many cells along each axis;
/// - `random-100k` ...: so many sites anywhere in the sweep's grid, which hardly ever meet;
/// - `cube-100` ...: every cell of a cube.
const std::map<std::string, SiteSource>& site_sources();

/// Those of a name, made when they are first asked for.
const Array& sites_named(const std::string& name);

/// Where points come from; `shape` is the grid's.
/// - `sweep`, `large`: those of the sites of that name, in a scanner's order (lidar_points());
/// - `shuffled`: those of `sweep` in no order.
const std::map<std::string, SiteSource>& point_sources();

/// Those of a name, float [count][4], made when they are first asked for.
const Array& points_named(const std::string& name);

/// A rulebook's mode and window.
struct Window {
  const char* id;
  SparseMode mode;
  PerAxis kernel, stride, pad;
};

inline const Window kSubm3 = {"subm3", SparseMode::subm, every_axis(3), every_axis(1),
                              every_axis(0)};
inline const Window kK3s2 = {"k3s2", SparseMode::strided, every_axis(3), every_axis(2),
                             every_axis(1)};
inline const Window kK3s1 = {"k3s1", SparseMode::strided, every_axis(3), every_axis(1),
                             every_axis(1)};
inline const Window kK2s2 = {"k2s2", SparseMode::strided, every_axis(2), every_axis(2),
                             every_axis(0)};
inline const Window kBack = {"back", SparseMode::inverse, every_axis(3), every_axis(2),
                             every_axis(1)};
/// The backbone's last two strided layers, which do not pad along z.
inline const Window kFlat = {
    "k3s2", SparseMode::strided, every_axis(3), every_axis(2), {{0, 1, 1, 0}}};
inline const Window kTop = {
    "k311s211", SparseMode::strided, {{3, 1, 1, 0}}, {{2, 1, 1, 0}}, every_axis(0)};

/// The rulebook of a window over sites of a name.
RulebookProblem book_over(const std::string& sites, const Window& window, RulebookForm form);

}  // namespace convladder::benchmarks
