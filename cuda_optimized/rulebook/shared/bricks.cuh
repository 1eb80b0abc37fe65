/// @file bricks.cuh
/// @brief Sites in bricks of 2 x 8 x 8 cells, in any order: a page for each brick that has sites,
/// allocated and filled in one step, and the look-up of a site's neighbours, at 27 contiguous taps
/// or at any taps. submanifold/paged_bricks.cu explains them. Mode subm only.
#pragma once

#include "core/cuda/workspace_cutter.hpp"
#include "cuda_optimized/rulebook/shared/run_cells.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::bricks {

using runs::Cell, runs::Problem;

inline constexpr int kDepth = 2;              ///< Boards of a brick, one above the other.
inline constexpr int kSide = 8;               ///< Cells of a board along y and along x.
inline constexpr int kBoardCells = 64;        ///< Of a board: the bits of a word.
inline constexpr int kZ = 1, kY = 2, kX = 3;  ///< The last three of a cell's axes.

/// 64 MB of page numbers, which each call clears.
inline constexpr std::int64_t kMaxBricks = std::int64_t{1} << 24;

/// With this many sites there are 2^32 entries for rows.
inline constexpr std::int64_t kMaxSites = std::int64_t{1} << 25;

/// The position of a cell: its brick, and the board and bit within it.
struct Place {
  std::uint32_t brick;  ///< The number of the brick.
  unsigned board, bit;  ///< Which of its boards, and which of that one's cells.
};

/// An index of sites. A page holds what is known of a brick: its boards, and their rows. There is
/// one for each row of coords, and a brick takes that of the row that came first.
struct Index {
  std::int32_t* pages;    ///< [bricks, by fours]: one more than the brick's page; 0: no site
  std::uint32_t* boards;  ///< [sites][kDepth][2]: by page; bit 8 y + x: whether the cell is a site
  std::int32_t* rows;     ///< [sites][kDepth][kBoardCells]: by page; only sites have theirs
  int bricks[kMaxAxes];   ///< Along each axis.
  std::int64_t groups;    ///< Of four bricks.

  /// Where a cell of the grid is.
  __device__ Place place_of(int batch, const PerAxis& at) const {
    auto brick = static_cast<std::uint32_t>(batch);
    brick = brick * static_cast<std::uint32_t>(bricks[0]) + static_cast<std::uint32_t>(at[0]);
    const unsigned z = static_cast<unsigned>(at[kZ]), y = static_cast<unsigned>(at[kY]);
    const unsigned x = static_cast<unsigned>(at[kX]);
    brick = brick * static_cast<std::uint32_t>(bricks[kZ]) + z / kDepth;
    brick = brick * static_cast<std::uint32_t>(bricks[kY]) + y / kSide;
    brick = brick * static_cast<std::uint32_t>(bricks[kX]) + x / kSide;
    return {brick, z % kDepth, y % kSide * kSide + x % kSide};
  }
  /// The number of a board of a page, given as `pages` has it.
  static __device__ std::uint32_t board_of(std::int32_t page, unsigned board) {
    return static_cast<std::uint32_t>(page - 1) * kDepth + board;
  }
  /// A board's cells.
  __device__ std::uint64_t cells_of(std::uint32_t board) const {
    const uint2 halves = reinterpret_cast<const uint2*>(boards)[board];
    return std::uint64_t{halves.y} << 32 | halves.x;
  }
  /// The cells of both boards of a page.
  __device__ void cells_of_page(std::int32_t page, std::uint64_t* upper,
                                std::uint64_t* lower) const {
    const uint4 halves = reinterpret_cast<const uint4*>(boards)[page - 1];
    *upper = std::uint64_t{halves.y} << 32 | halves.x;
    *lower = std::uint64_t{halves.w} << 32 | halves.z;
  }
  /// Where the rows of a page begin in `rows`.
  static __device__ std::uint32_t begin_of(std::int32_t page) {
    return static_cast<std::uint32_t>(page - 1) * (kDepth * kBoardCells);
  }
  /// The address of the row of a site.
  __device__ std::int32_t* row_of(std::uint32_t board, unsigned bit) const {
    return &rows[std::int64_t{board} * kBoardCells + bit];
  }
  /// The address of the row of a cell if it is a site, or null.
  __device__ const std::int32_t* find(const Place& place) const {
    const std::int32_t page = pages[place.brick];
    if (page == 0) return nullptr;
    const std::uint32_t board = board_of(page, place.board);
    return (cells_of(board) >> place.bit & 1) != 0 ? row_of(board, place.bit) : nullptr;
  }
};

/// Row `row` of coords; a cell outside of the grid, if there are fewer.
template <bool kRowsOfFour>
__device__ Cell cell_or_none(const Problem& grid, const std::int32_t* coords, std::int64_t row) {
  return row < grid.sites ? runs::cell_of<kRowsOfFour>(grid, coords, row) : Cell{-1, {}};
}

/// The first step: clears the index, and copies coords [N][1 + ndim]. `thread` of `threads` does
/// its share.
template <bool kRowsOfFour>
__device__ void begin(const Problem& grid, const std::int32_t* coords, const Index& index,
                      std::int64_t thread, std::int64_t threads, std::int32_t* out_coords) {
  for (std::int64_t row = thread; row < grid.sites; row += threads) {
    reinterpret_cast<uint4*>(index.boards)[row] = make_uint4(0, 0, 0, 0);  // a page's
    if constexpr (kRowsOfFour) {
      reinterpret_cast<int4*>(out_coords)[row] = reinterpret_cast<const int4*>(coords)[row];
    } else {
      for (int i = 0; i <= grid.ndim; ++i)
        out_coords[row * (1 + grid.ndim) + i] = coords[row * (1 + grid.ndim) + i];
    }
  }
  auto* const pages = reinterpret_cast<int4*>(index.pages);
  for (std::int64_t i = thread; i < index.groups; i += threads) pages[i] = make_int4(0, 0, 0, 0);
}

/// The second step: inserts all sites. Whole warps, a multiple of 32 threads; `bad` [1] counts rows
/// that are outside of the grid, which are left out, and rows of a site that another row had
/// entered before.
/// @param first the thread's first row of coords, number `thread`
/// @returns the page of that one's brick, as Index::pages has it
template <bool kRowsOfFour>
__device__ std::int32_t enter(const Problem& grid, const std::int32_t* coords, const Index& index,
                              std::int64_t thread, std::int64_t threads, const Cell& first,
                              std::int32_t* bad) {
  const int lane = static_cast<int>(thread % 32);
  std::int32_t first_page = 0;
  // The trip count is uniform in a warp.
  for (std::int64_t warp_row = thread - lane; warp_row < grid.sites; warp_row += threads) {
    const std::int64_t row = warp_row + lane;
    Cell cell = first;
    if (row != thread) cell = cell_or_none<kRowsOfFour>(grid, coords, row);
    const bool inside = cell.is_inside(grid);
    Place place{};
    if (inside) place = index.place_of(cell.batch, cell.at);
    // Neighbouring lanes whose sites are on the same half of a board insert them with one atomic.
    const std::uint32_t half = (place.brick * kDepth + place.board) * 2 + place.bit / 32;
    const runs::Group group(inside, half, static_cast<int>(place.bit % 32));
    std::int32_t page = static_cast<std::int32_t>(row + 1);
    if (inside && group.leads) {
      const std::int32_t taken = atomicCAS(&index.pages[place.brick], 0, page);
      if (taken != 0) page = taken;
    }
    page = __shfl_sync(runs::kWholeWarp, page, group.leader);
    int repeated = row < grid.sites && !inside ? 1 : 0;
    if (inside) {
      const std::uint32_t board = index.board_of(page, place.board);
      // Duplicate sites race here: the result is then not used.
      *index.row_of(board, place.bit) = static_cast<std::int32_t>(row);
      if (group.leads) {
        const std::uint32_t old = atomicOr(&index.boards[board * 2 + place.bit / 32], group.bits);
        repeated = group.lanes - __popc(group.bits) + __popc(old & group.bits);
      }
    }
    if (repeated != 0) atomicAdd(bad, repeated);
    if (row == thread) first_page = page;
  }
  return first_page;
}

/// Bricks of a problem along an axis, which has one at least.
inline std::int64_t bricks_along(const Problem& grid, int axis) {
  return ceil_div(grid.shape[axis], axis == 0 ? 1 : axis == kZ ? kDepth : kSide);
}

/// All bricks of the problem, empty ones too.
inline std::int64_t brick_count(const RulebookProblem& book) {
  const Problem grid(book);
  std::int64_t count = book.batch;
  for (int axis = 0; axis < kMaxAxes; ++axis) count *= bricks_along(grid, axis);
  return count;
}

/// The reason why the index does not support the problem, or none.
inline Declined declined(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only";
  if (brick_count(book) > kMaxBricks || book.sites > kMaxSites)
    return "grids of at most 2^24 bricks of 2 x 8 x 8 cells, and at most 2^25 sites, only";
  return {};
}

/// Cuts an index from a workspace.
inline Index cut_index(const RulebookProblem& book, WorkspaceCutter* cutter) {
  const Problem grid(book);
  Index index{};
  index.groups = ceil_div<std::int64_t>(brick_count(book), 4);
  for (int axis = 0; axis < kMaxAxes; ++axis)
    index.bricks[axis] = static_cast<int>(bricks_along(grid, axis));
  index.pages = cutter->take<std::int32_t>(index.groups * 4);
  index.boards = cutter->take<std::uint32_t>(std::int64_t{book.sites} * kDepth * 2);
  index.rows = cutter->take<std::int32_t>(std::int64_t{book.sites} * kDepth * kBoardCells);
  return index;
}

/// The neighbours of a site at the first kCount of 27 contiguous taps. They lie in two to eight
/// bricks: the site's own, one above it or below, and at an edge those aside along x, along y, and
/// along both. Each is loaded once, and all loads of a step are in flight together.
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
  /// together, since no store is between them.
  template <int kRows>
  __device__ void load_rows(const Index& index, int first, std::int32_t (&rows)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int k = first + i;
      const int plane = k / 9, y = y_ + k / 3 % 3 - 1, x = x_ + k % 3 - 1;
      const bool is_beyond = plane == (board_ == 0 ? 0 : 2);
      // Compile-time indices of pages, so that they stay in registers.
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
  /// The address of the row of the neighbour at tap k, or null.
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

  const std::int32_t* row_[kTaps] = {};  ///< Addresses of the rows of neighbours.
  std::uint32_t found_ = 0;              ///< See found().
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::bricks
