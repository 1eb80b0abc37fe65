/// @file runs.cuh
/// @brief The neighbours of sites, looked up in runs of 32 cells.
///
/// An index for look_up() and look_up_plane() has a word of bits for each run.
/// submanifold/occupancy_bits.cu explains runs. Mode subm only: the sites to look up are the
/// outputs' sites, too.
#pragma once

#include "cuda_optimized/rulebook/shared/run_cells.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

/// Looks up a site's neighbours for any kernel, at the taps of the first `lines` lines along the
/// innermost axis: column `row` of nbr [KV][sites], and row `row` of mask, or null. @tparam Index
/// has these members:
///
/// - `Answer ask(run)`: the result of one load for a run; `Answer{}` if there is none
/// - `Found settle(run, answer)`: the rest of the search; Found::word has a bit for each cell
/// - `rank_at(found, bit)`: if the sites are sorted, the row of a site
/// - `row_at(found, bit, sorted)`: the row of a cell, or -1
template <class Index>
__device__ void look_up(const Problem& grid, const Cell& cell, const Index& index, bool sorted,
                        std::int64_t row, int lines, std::int32_t* nbr, std::int32_t* mask) {
  const bool inside = cell.is_inside(grid);
  const int taps = grid.kernel[kOuterAxes];  // of a line
  std::uint32_t word = 0;
  int k = 0;
  for (int line = 0; line < lines; ++line) {
    Cell at = cell;
    bool line_inside = inside;
    int tap = line;
#pragma unroll
    for (int axis = kOuterAxes - 1; axis >= 0; --axis) {
      const int taps_here = grid.kernel[axis];
      const std::int64_t to =
          at.at[axis] + std::int64_t{tap % taps_here - taps_here / 2} * grid.dilation[axis];
      line_inside = line_inside && to >= 0 && to < grid.shape[axis];
      at.at[axis] = static_cast<int>(to);
      tap /= taps_here;
    }
    int found_run = -1;  // along the line: the one that was looked up last
    typename Index::Found found{};
    for (int i = 0; i < taps; ++i, ++k) {
      const std::int64_t x =
          cell.at[kOuterAxes] + std::int64_t{i - taps / 2} * grid.dilation[kOuterAxes];
      std::int32_t neighbour = -1;
      if (line_inside && x >= 0 && x < grid.shape[kOuterAxes]) {
        at.at[kOuterAxes] = static_cast<int>(x);
        if (const int run_of_line = at.at[kOuterAxes] / kCells; run_of_line != found_run) {
          const std::uint32_t run = at.run(grid);
          found = index.settle(run, index.ask(run));
          found_run = run_of_line;
        }
        neighbour = index.row_at(found, at.bit(), sorted);
      }
      nbr[std::int64_t{k} * grid.sites + row] = neighbour;
      if (neighbour >= 0) word |= 1u << k % 32;
      if (k % 32 == 31 || k == lines * taps - 1) {
        if (mask != nullptr)
          mask[row * mask_words(grid.KV) + k / 32] = static_cast<std::int32_t>(word);
        word = 0;
      }
    }
  }
}

inline constexpr int kPlanes = 3, kPlaneLines = 3, kPlaneTaps = 9;  ///< Of a 3^3 kernel's row.

/// Looks up 9 of 27 taps: as look_up(), with the loads of three lines in flight together.
/// Returns the taps' bits of the mask.
template <class Index>
__device__ std::uint32_t look_up_plane(const Problem& grid, const Cell& cell, const Index& index,
                                       bool sorted, int plane, std::int64_t row,
                                       std::int32_t* nbr) {
  const bool inside = cell.is_inside(grid);
  const int bit = cell.bit(), run_of_line = cell.at[kOuterAxes] / kCells;
  // The window is 3 cells wide: at most one of its ends is in another run, `aside`.
  int aside = 0;
  if (bit == 0 && run_of_line > 0) aside = -1;
  if (bit == kCells - 1 && run_of_line < grid.line_runs - 1) aside = 1;
  // As unsigned numbers: values below 0 become greater than every extent, and nothing overflows.
  const unsigned z = static_cast<unsigned>(cell.at[1]) + static_cast<unsigned>(plane) - 1u;
  const bool plane_exists = inside && z < static_cast<unsigned>(grid.shape[1]);
  const std::uint32_t centre_run = inside ? cell.run(grid) : 0;

  const auto run_at = [&](int line) {
    const int lines_on = (plane - 1) * grid.shape[2] + line - 1;
    return centre_run +
           static_cast<std::uint32_t>(lines_on) * static_cast<std::uint32_t>(grid.line_runs);
  };
  typename Index::Answer own_answer[kPlaneLines], aside_answer[kPlaneLines];
#pragma unroll
  for (int line = 0; line < kPlaneLines; ++line) {
    const unsigned y = static_cast<unsigned>(cell.at[2]) + static_cast<unsigned>(line) - 1u;
    const bool exists = plane_exists && y < static_cast<unsigned>(grid.shape[2]);
    const std::uint32_t run = run_at(line), run_aside = run + static_cast<std::uint32_t>(aside);
    own_answer[line] = aside_answer[line] = {};
    if (exists) own_answer[line] = index.ask(run);
    if (exists && aside != 0) aside_answer[line] = index.ask(run_aside);
  }
  std::uint32_t bits = 0;
#pragma unroll
  for (int line = 0; line < kPlaneLines; ++line) {
    const std::uint32_t run = run_at(line), run_aside = run + static_cast<std::uint32_t>(aside);
    const typename Index::Found own = index.settle(run, own_answer[line]);
    // Bit i: whether cell bit + i - 1 is a site.
    auto window = static_cast<std::uint32_t>((std::uint64_t{own.word} << 1) >> bit) & 7;
    typename Index::Found other{};
    if (aside != 0) {
      other = index.settle(run_aside, aside_answer[line]);
      window |= aside < 0 ? other.word >> (kCells - 1) : (other.word & 1) << 2;
    }
    const auto found_at = [&](int at) { return at >= 0 && at < kCells ? own : other; };
    std::int32_t next = 0;
    if (window != 0 && sorted) {
      // Sites of a line have consecutive rows, also across the border of two runs.
      const int first = bit + __ffs(static_cast<int>(window)) - 2;
      next = index.rank_at(found_at(first), first & (kCells - 1));
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int at = bit + i - 1;
      std::int32_t neighbour = -1;
      if ((window >> i & 1) != 0)
        neighbour = sorted ? next++ : index.row_at(found_at(at), at & (kCells - 1), false);
      nbr[std::int64_t{plane * kPlaneTaps + line * 3 + i} * grid.sites + row] = neighbour;
    }
    bits |= window << (plane * kPlaneTaps + line * 3);
  }
  return bits;
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
