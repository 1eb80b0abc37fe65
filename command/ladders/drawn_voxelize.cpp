#include <algorithm>

#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

/// Points are integers from -8 to 8, or reals from -1 to 1: the range contains some of them or all.
DrawnProblem draw_voxelize(Drawer& drawer, double work) {
  DrawnProblem problem;
  const int most = drawer.one_in(6) ? 60'000 : 3000;
  set(problem, "n",
      {drawer.one_in(30)
           ? 0
           : drawer.edge(1, std::min(most, static_cast<int>(std::min(work, 1e6)) + 1))});
  if (drawer.one_in(2)) set(problem, "c", {drawer.one_of({3, 3, 5, 9})});
  const int reach = drawer.one_of({1, 2, 8, 8, 8, 100});
  std::vector<int> range;
  for (int axis = 0; axis < 3; ++axis) range.push_back(-drawer.between(0, reach));
  for (int axis = 0; axis < 3; ++axis) range.push_back(drawer.between(1, reach + 1));
  set(problem, "range", range);
  return problem;
}

double voxelize_work(const VoxelizeProblem& p) {
  return 32.0 * p.points + static_cast<double>(voxel_count(p.grid)) / 256;
}

}  // namespace

DrawnLadder drawn_voxelize() {
  return {.draw = draw_voxelize,
          .work = work_in<VoxelizeProblem>(voxelize_work),
          .words = {{"voxel", {"2", "1", "0.3", "0.7", "0.1", "5", "0.3,1,2"}}}};
}

}  // namespace convladder::command
