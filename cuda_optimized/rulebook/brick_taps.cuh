/// @file brick_taps.cuh
/// @brief The neighbours of a site, looked up in bricks: at nine taps of a plane, or at any taps.
///
/// paged_bricks.cu explains it. Mode subm only: the sites to look up are the outputs' sites, too.
#pragma once

#include "cuda_optimized/rulebook/bricks.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::bricks {

inline constexpr int kTaps = runs::kPlaneTaps;  ///< That are looked up together.

/// The neighbours of a site at one plane of taps of 27: all lie on one board, or on two or four
/// where the site is at its edge. What a step loads is in flight together.
class PlaneOfTaps {
 public:
  /// Finds which neighbours there are. @param first the plane's first tap
  __device__ PlaneOfTaps(const Problem& grid, const Cell& cell, const Index& index, int first) {
    PerAxis at = cell.at;
    at[kZ] += first / kTaps - 1;
    if (!cell.is_inside(grid) || at[kZ] < 0 || at[kZ] >= grid.shape[kZ]) return;
    x_ = at[kX] % kSide, y_ = at[kY] % kSide;
    // The window is 3 cells wide: at most one of its ends is in another brick, aside.
    const int left = x_ == 0 && at[kX] > 0 ? -1 : 0, up = y_ == 0 && at[kY] > 0 ? -1 : 0;
    const bool right = x_ == kSide - 1 && at[kX] / kSide < index.bricks[kX] - 1;
    const bool down = y_ == kSide - 1 && at[kY] / kSide < index.bricks[kY] - 1;
    const int aside_x = right ? 1 : left, aside_y = down ? index.bricks[kX] : up * index.bricks[kX];
    const Place own = index.place_of(cell.batch, at);
    const std::int32_t* const pages = index.pages + own.brick;
    std::int32_t page[4] = {};  // the site's own, the one aside along x, along y, and along both
    page[0] = *pages;
    if (aside_x != 0) page[1] = pages[aside_x];
    if (aside_y != 0) page[2] = pages[aside_y];
    if (aside_x != 0 && aside_y != 0) page[3] = pages[aside_x + aside_y];
    std::uint64_t board[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      board_[i] = index.board_of(page[i], own.board);
      if (page[i] != 0) board[i] = index.cells_of(board_[i]);
    }
#pragma unroll
    for (int line = 0; line < 3; ++line) {
      const int from = line_at(line) * kSide;
      const int of_line = is_aside(y_ + line - 1) ? 2 : 0;
      const auto cells = static_cast<unsigned>((of_line ? board[2] : board[0]) >> from) & 0xff;
      const auto beside = static_cast<unsigned>((of_line ? board[3] : board[1]) >> from) & 0xff;
      // Ten cells: the line, and one more at either end.
      const unsigned all = cells << 1 | (left != 0 ? beside >> (kSide - 1) : beside << (kSide + 1));
      found_ |= (all >> x_ & 7) << line * 3;
    }
  }
  /// Bit i: whether tap i of the plane leads to a site.
  __device__ std::uint32_t found() const { return found_; }
  /// The row of a neighbour that was found.
  __device__ std::int32_t row(const Index& index, int tap) const {
    const int y = y_ + tap / 3 - 1, x = x_ + tap % 3 - 1;
    const std::uint32_t own = is_aside(y) ? board_[2] : board_[0];
    const std::uint32_t beside = is_aside(y) ? board_[3] : board_[1];
    return *index.row_of(is_aside(x) ? beside : own,
                         static_cast<unsigned>(line_at(tap / 3) * kSide + (x & (kSide - 1))));
  }

 private:
  /// Whether a line or a column is that of another brick.
  static __device__ bool is_aside(int at) { return at < 0 || at >= kSide; }
  /// Which line of its board a line of the window is.
  __device__ int line_at(int line) const { return (y_ + line - 1) & (kSide - 1); }

  int x_ = 0, y_ = 0;            ///< The site on its board.
  std::uint32_t board_[4] = {};  ///< Numbers of boards: see above.
  std::uint32_t found_ = 0;      ///< See found().
};

/// As PlaneOfTaps, of any kernel: kTaps taps, or as many as there are, one by one.
class AnyTaps {
 public:
  /// Finds which neighbours there are.
  __device__ AnyTaps(const Problem& grid, const Cell& cell, const Index& index, int first) {
    if (!cell.is_inside(grid)) return;
    for (int i = 0; i < kTaps && first + i < grid.KV; ++i) {
      row_[i] = find(grid, cell, index, first + i);
      if (row_[i] != nullptr) found_ |= 1u << i;
    }
  }
  /// Bit i: whether tap first + i leads to a site.
  __device__ std::uint32_t found() const { return found_; }
  /// The row of a neighbour that was found.
  __device__ std::int32_t row(const Index& /*index*/, int tap) const { return *row_[tap]; }

 private:
  /// Where the row of the neighbour at tap k stands, or null.
  static __device__ const std::int32_t* find(const Problem& grid, const Cell& cell,
                                             const Index& index, int k) {
    PerAxis at{};
#pragma unroll
    for (int axis = kMaxAxes - 1; axis >= 0; --axis) {
      const int taps = grid.kernel[axis];
      const std::int64_t to =
          cell.at[axis] + std::int64_t{k % taps - taps / 2} * grid.dilation[axis];
      if (to < 0 || to >= grid.shape[axis]) return nullptr;
      at[axis] = static_cast<int>(to);
      k /= taps;
    }
    return index.find(index.place_of(cell.batch, at));
  }

  const std::int32_t* row_[kTaps] = {};  ///< Where the rows of neighbours stand.
  std::uint32_t found_ = 0;              ///< See found().
};

/// Up to kTaps taps, from a multiple of kTaps on. @tparam kCube the kernel has 27 taps side by side
template <bool kCube>
using Neighbours = std::conditional_t<kCube, PlaneOfTaps, AnyTaps>;

/// The rows of the neighbours whose bits are set, or -1: all loads are in flight together, as none
/// waits for a store.
template <class Taps>
__device__ void load_rows(const Taps& taps, const Index& index, std::uint32_t found,
                          std::int32_t (&rows)[kTaps]) {
#pragma unroll
  for (int i = 0; i < kTaps; ++i) rows[i] = (found >> i & 1) != 0 ? taps.row(index, i) : -1;
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::bricks
