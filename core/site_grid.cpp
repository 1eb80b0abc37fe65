#include "core/site_grid.hpp"

#include <vector>

#include "core/text.hpp"

namespace convladder {

RulebookProblem validated_site_grid(RulebookProblem grid) {
  grid.mode = SparseMode::subm;
  grid.kernel = grid.stride = grid.dilation = every_axis(1);
  grid.pad = grid.out_padding = every_axis(0);
  return validated(grid);
}

std::string describe_site_grid(const RulebookProblem& grid) {
  const auto& extents = grid.shape.value;
  std::string line = text(grid.sites, grid.sites == 1 ? " site in " : " sites in ",
                          joined(std::vector<int>(extents, extents + grid.ndim), "x"));
  if (grid.batch != 1) line += text(", batch ", grid.batch);
  return line;
}

}  // namespace convladder
