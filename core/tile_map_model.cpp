#include "core/tile_map_model.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/array.hpp"

namespace convladder {
namespace {

/// A range of a row panel of a, or of a column panel of b: batch, tile m or n, k_begin, k_end.
using Panel = std::array<std::int32_t, 4>;

struct PanelCount {
  std::int64_t panels = 0;   ///< distinct ones
  std::int64_t k_steps = 0;  ///< of all panels together; overlapping parts count once
};

PanelCount count(std::vector<Panel>& panels) {
  std::sort(panels.begin(), panels.end());
  panels.erase(std::unique(panels.begin(), panels.end()), panels.end());
  PanelCount result;
  std::int32_t covered_to = 0;  // along k, covered by the panels of this row so far
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const auto& [batch, row, k_begin, k_end] = panels[i];
    const bool new_row = i == 0 || panels[i - 1][0] != batch || panels[i - 1][1] != row;
    if (new_row) covered_to = 0;
    result.k_steps += std::max(0, k_end - std::max(k_begin, covered_to));
    covered_to = std::max(covered_to, k_end);
  }
  result.panels = static_cast<std::int64_t>(panels.size());
  return result;
}

int checked_int(const char* name, std::int64_t value) {
  require(value >= 1, name, value, "there is nothing to compute");
  require(value <= std::numeric_limits<int>::max(), name, value, "must be less than 2^31");
  return static_cast<int>(value);
}

}  // namespace

GemmExtents gemm_extents(const GemmProblem& gemm) { return {gemm.M, gemm.N, gemm.K}; }

GemmExtents gemm_extents(const Conv2dProblem& conv, ConvolutionPass pass) {
  return gemm_extents(columns_of(conv), conv.K, conv.groups, pass);
}

GemmExtents gemm_extents(const Im2colProblem& input, int K, int groups, ConvolutionPass pass) {
  require(groups >= 1, "groups", groups, "must be at least 1");
  require(input.C % groups == 0, "groups", groups, text("must divide c = ", input.C));
  require(K % groups == 0, "groups", groups, text("must divide k = ", K));
  const std::int64_t outputs = checked_product({input.N, input.columns()}, "outputs");
  const std::int64_t inputs = checked_product({input.N, input.channel_size()}, "inputs");
  const std::int64_t taps = input.kernel_volume(), group_c = input.C / groups, group_k = K / groups;
  switch (pass) {
    case ConvolutionPass::forward:
      return {outputs, group_k, checked_product({group_c, taps}, "c * taps"), groups};
    case ConvolutionPass::dgrad:
      return {inputs, group_c, checked_product({group_k, taps}, "k * taps"), groups};
    case ConvolutionPass::wgrad:
      return {group_k, checked_product({group_c, taps}, "c * taps"), outputs, groups};
  }
  return {};
}

TileMapProblem tiles_of(const GemmExtents& products, const TileSize& tile, TileMap map,
                        int splits) {
  for (const auto& [name, extent] :
       {std::pair{"tile m", tile.m}, {"tile n", tile.n}, {"tile k", tile.k}}) {
    require(extent >= 1, name, extent, "must be at least 1");
  }
  return validated(
      TileMapProblem{.map = map,
                     .tiles_m = checked_int("tiles_m", ceil_div<std::int64_t>(products.M, tile.m)),
                     .tiles_n = checked_int("tiles_n", ceil_div<std::int64_t>(products.N, tile.n)),
                     .k_steps = checked_int("k_steps", ceil_div<std::int64_t>(products.K, tile.k)),
                     .splits = splits,
                     .batch = checked_int("batch", products.batch)});
}

std::vector<Wave> simulate_waves(std::span<const std::int32_t> units, int concurrent_blocks,
                                 const TileSize& tile, int element_bytes) {
  require(concurrent_blocks >= 1, "concurrent blocks", concurrent_blocks, "must be at least 1");
  const std::size_t rows = units.size() / kUnitColumns;
  const auto row = [&](std::size_t i) { return units.subspan(i * kUnitColumns, kUnitColumns); };

  std::vector<Wave> waves;
  std::vector<std::size_t> next,
      end;  // for each concurrent block: its next unit, and one past its last
  std::vector<Panel> a, b;
  for (std::size_t i = 0; i < rows;) {
    next.clear();
    end.clear();
    while (i < rows && next.size() < static_cast<std::size_t>(concurrent_blocks)) {
      next.push_back(i);
      for (const std::int32_t block = row(i)[0]; i < rows && row(i)[0] == block;) ++i;
      end.push_back(i);
    }
    for (;;) {
      a.clear();
      b.clear();
      for (std::size_t block = 0; block < next.size(); ++block) {
        if (next[block] == end[block]) continue;  // this block has finished
        const auto unit = row(next[block]++);
        a.push_back({unit[1], unit[2], unit[4], unit[5]});
        b.push_back({unit[1], unit[3], unit[4], unit[5]});
      }
      if (a.empty()) break;
      Wave wave{.units = static_cast<std::int64_t>(a.size())};
      const PanelCount of_a = count(a), of_b = count(b);
      wave.a_panels = of_a.panels;
      wave.b_panels = of_b.panels;
      wave.bytes = (of_a.k_steps * tile.m + of_b.k_steps * tile.n) * tile.k * element_bytes;
      waves.push_back(wave);
    }
  }
  return waves;
}

}  // namespace convladder
