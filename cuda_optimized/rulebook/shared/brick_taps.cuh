/// @file brick_taps.cuh
/// @brief The neighbours of a site, looked up in bricks: at 27 taps side by side, or at any taps.
///
/// submanifold/paged_bricks.cu explains it. Mode subm only: the sites to look up are the outputs'
/// sites, too.
#pragma once

#include "cuda_optimized/rulebook/shared/bricks.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::bricks {

/// The neighbours of a site at the first kCount of 27 taps side by side. They lie in two to eight
/// bricks: the site's own, one above it or below, and at an edge those aside along x, along y, and
/// along both. Each is asked once, and what a step loads is in flight together.
template <int kCount>
class CubeOfTaps {
 public:
  static constexpr int kTaps = kCount;  ///< That are looked up.
  static constexpr int kCentre = 13;    ///< The tap that leads a site to itself.

  /// Finds which neighbours there are.
  /// @param row of the site @param page of its brick, as Index::pages has it; 0: not known
  __device__ CubeOfTaps(const Problem& grid, const Cell& cell, const Index& index, int /*first*/,
                        std::int32_t row, std::int32_t page)
      : own_row_(row) {
    if (!cell.is_inside(grid)) return;
    const Place own = index.place_of(cell.batch, cell.at);
    x_ = static_cast<int>(own.bit) % kSide, y_ = static_cast<int>(own.bit) / kSide;
    board_ = own.board;
    // A window is 3 cells wide: along an axis, at most one of its ends is in another brick.
    const auto aside = [&](int axis, int at, int last) {
      if (at == 0 && cell.at[axis] > 0) return -1;
      return at == last && cell.at[axis] < grid.shape[axis] - 1 ? 1 : 0;
    };
    const int x = aside(kX, x_, kSide - 1), y = aside(kY, y_, kSide - 1) * index.bricks[kX];
    int z = aside(kZ, static_cast<int>(board_), kDepth - 1) * index.bricks[kY] * index.bricks[kX];
    if (kCount <= kCentre + 1 && z > 0) z = 0;  // no tap leads down
    const std::int32_t* const pages = index.pages + own.brick;
    const int to[4] = {0, x, y, x + y};
    const bool exists[4] = {true, x != 0, y != 0, x != 0 && y != 0};
    std::int32_t near[4] = {page}, far[4] = {};  // pages: beside the site, and beyond along z
    std::uint64_t upper[4] = {}, lower[4] = {}, beyond[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (exists[i] && (i > 0 || page == 0)) near[i] = pages[to[i]];
      if (exists[i] && z != 0) far[i] = pages[to[i] + z];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      near_[i] = index.begin_of(near[i]), far_[i] = index.begin_of(far[i]);
      if (near[i] != 0) index.cells_of_page(near[i], &upper[i], &lower[i]);
      if (far[i] != 0) beyond[i] = index.cells_of(index.board_of(far[i], 1 - board_));
    }
    found_ = board_ == 0 ? window(beyond) | window(upper) << 9 | window(lower) << 18
                         : window(upper) | window(lower) << 9 | window(beyond) << 18;
    found_ &= (1u << kCount) - 1;
  }
  /// Bit i: whether tap i leads to a site.
  __device__ std::uint32_t found() const { return found_; }
  /// The rows of the neighbours at kRows taps from `first` on, or -1: all loads are in flight
  /// together, as none waits for a store.
  template <int kRows>
  __device__ void load_rows(const Index& index, int first, std::int32_t (&rows)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int k = first + i;
      const int plane = k / 9, y = y_ + k / 3 % 3 - 1, x = x_ + k % 3 - 1;
      const bool is_beyond = plane == (board_ == 0 ? 0 : 2);
      // Numbers of pages that the compiler knows, so that they stay in registers.
      const auto begin = [&](int brick) { return is_beyond ? far_[brick] : near_[brick]; };
      const std::uint32_t line =
          (plane == 1 ? board_ : 1 - board_) * kBoardCells + (y & (kSide - 1)) * kSide;
      const std::uint32_t own = (is_aside(y) ? begin(2) : begin(0)) + line;
      const std::uint32_t beside = (is_aside(y) ? begin(3) : begin(1)) + line;
      const std::uint32_t at = (is_aside(x) ? beside : own) + (x & (kSide - 1));
      rows[i] = -1;
      if ((found_ >> k & 1) != 0) rows[i] = k == kCentre ? own_row_ : index.rows[at];
    }
  }

 private:
  /// Whether a line or a column is that of another brick.
  static __device__ bool is_aside(int at) { return at < 0 || at >= kSide; }
  /// The window of the site in a plane: bit 3 * line + i.
  /// @param boards the one in the site's brick, and those aside along x, along y, and along both
  __device__ std::uint32_t window(const std::uint64_t (&boards)[4]) const {
    // Three lines in three bytes.
    const auto lines = [this](std::uint64_t own, std::uint64_t aside) {
      if (y_ == 0) return static_cast<std::uint32_t>(own << kSide | aside >> (7 * kSide));
      const auto from = static_cast<std::uint32_t>(own >> ((y_ - 1) * kSide));
      return y_ == kSide - 1 ? from | static_cast<std::uint32_t>(aside) << 2 * kSide : from;
    };
    const std::uint32_t own = lines(boards[0], boards[2]), beside = lines(boards[1], boards[3]);
    std::uint32_t three;  // bits of each
    if (x_ == 0) {
      three = (own << 1 & 0x060606) | (beside >> 7 & 0x010101);
    } else if (x_ == kSide - 1) {
      three = (own >> 6 & 0x030303) | (beside << 2 & 0x040404);
    } else {
      three = own >> (x_ - 1) & 0x070707;
    }
    return (three & 07) | (three >> 5 & 070) | (three >> 10 & 0700);
  }

  std::int32_t own_row_;     ///< Of the site.
  int x_ = 0, y_ = 0;        ///< The site on its board,
  unsigned board_ = 0;       ///< and which of its brick's that is.
  std::uint32_t near_[4],    ///< Where rows begin: of the pages beside the site,
      far_[4];               ///< and of those beyond; see window().
  std::uint32_t found_ = 0;  ///< See found().
};

/// As CubeOfTaps, of any kernel: kTaps taps, or as many as there are, one by one.
class AnyTaps {
 public:
  static constexpr int kTaps = 9;  ///< That are looked up together.

  /// Finds which neighbours there are.
  __device__ AnyTaps(const Problem& grid, const Cell& cell, const Index& index, int first,
                     std::int32_t /*row*/ = 0, std::int32_t /*page*/ = 0) {
    if (!cell.is_inside(grid)) return;
    for (int i = 0; i < kTaps && first + i < grid.KV; ++i) {
      row_[i] = find(grid, cell, index, first + i);
      if (row_[i] != nullptr) found_ |= 1u << i;
    }
  }
  /// Bit i: whether tap first + i leads to a site.
  __device__ std::uint32_t found() const { return found_; }
  /// As CubeOfTaps::load_rows().
  template <int kRows>
  __device__ void load_rows(const Index& /*index*/, int first, std::int32_t (&rows)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) rows[i] = row_[first + i] != nullptr ? *row_[first + i] : -1;
  }

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

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::bricks
