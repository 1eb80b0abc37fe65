/// @file run_cells.cuh
/// @brief Runs of 32 cells along the innermost axis, and sites as cells of them.
///
/// Shared by the rungs with a word of bits for each run: rows of coords are read, copied, checked,
/// and grouped by runs. runs.cuh has the look-ups. submanifold/occupancy_bits.cu explains runs.
#pragma once

#include <vector>

#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/site_errors.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

inline constexpr int kCells = 32;  ///< Of a run: the bits of a word, and the threads of a warp.
inline constexpr int kOuterAxes = kMaxAxes - 1;     ///< All axes but x.
inline constexpr unsigned kWholeWarp = 0xffffffff;  ///< Mask of all lanes.

/// A problem with a grid of four axes: missing axes are prepended, with one cell each.
struct Problem {
  int ndim, batch, sites, KV;       ///< As the problem's.
  PerAxis shape, kernel, dilation;  ///< Outermost first.
  int line_runs;                    ///< Runs of a line along the innermost axis.
  int tap_lines;                    ///< Lines of the kernel along it.

  /// Of a rulebook.
  explicit Problem(const RulebookProblem& book)
      : ndim(book.ndim), batch(book.batch), sites(book.sites), KV(book.KV), shape(every_axis(1)),
        kernel(every_axis(1)), dilation(every_axis(1)) {
    for (int axis = 0; axis < ndim; ++axis) {
      const int padded = kMaxAxes - ndim + axis;
      shape[padded] = book.shape[axis];
      kernel[padded] = book.kernel[axis];
      dilation[padded] = book.dilation[axis];
    }
    line_runs = ceil_div(shape[kOuterAxes], kCells);
    tap_lines = KV / kernel[kOuterAxes];
  }
};

/// The number of all runs of the problem, including empty ones.
inline std::int64_t run_count(const RulebookProblem& book) {
  const std::int64_t cells = book.shape[book.ndim - 1];
  return key_count(book, book.shape) / cells * ceil_div<std::int64_t>(cells, kCells);
}

/// The reason why the table does not support the problem, or none.
inline Declined declined(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only";
  if (run_count(book) > std::int64_t{1} << 32)
    return "grids of at most 2^32 runs of 32 cells (some 2^37 cells) only";
  return {};
}

/// A cell of the grid, or a row of coords outside of it.
struct Cell {
  int batch;   ///< The sample.
  PerAxis at;  ///< The coordinates.

  /// Whether it is inside of the batch and the grid.
  __device__ bool is_inside(const Problem& grid) const {
    bool inside = batch >= 0 && batch < grid.batch;
#pragma unroll
    for (int axis = 0; axis < kMaxAxes; ++axis)
      inside = inside && at[axis] >= 0 && at[axis] < grid.shape[axis];
    return inside;
  }
  /// The number of the cell's run. @pre is_inside()
  __device__ std::uint32_t run(const Problem& grid) const {
    auto line = static_cast<std::uint32_t>(batch);
#pragma unroll
    for (int axis = 0; axis < kOuterAxes; ++axis)
      line = line * static_cast<std::uint32_t>(grid.shape[axis]) +
             static_cast<std::uint32_t>(at[axis]);
    return line * static_cast<std::uint32_t>(grid.line_runs) +
           static_cast<std::uint32_t>(at[kOuterAxes] / kCells);
  }
  /// Its bit in the run; below kCells even for a cell outside of the grid.
  __device__ int bit() const {
    return static_cast<int>(static_cast<unsigned>(at[kOuterAxes]) % kCells);
  }
};

/// Row `row` of coords [sites][1 + ndim]. @tparam kRowsOfFour ndim is 3, and coords is aligned to
/// 16 bytes: one load
template <bool kRowsOfFour>
__device__ Cell cell_of(const Problem& grid, const std::int32_t* coords, std::int64_t row) {
  if constexpr (kRowsOfFour) {
    const int4 from = reinterpret_cast<const int4*>(coords)[row];
    return {from.x, {{0, from.y, from.z, from.w}}};
  }
  const std::int32_t* from = coords + row * (1 + grid.ndim);
  Cell cell{from[0], {}};
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const int own = axis - (kMaxAxes - grid.ndim);
    cell.at[axis] = own >= 0 ? from[1 + own] : 0;
  }
  return cell;
}

/// Whether b's site is after a's: the order of their keys, without 64-bit arithmetic.
__device__ inline bool is_behind(const Cell& a, const Cell& b) {
  if (a.batch != b.batch) return b.batch > a.batch;
  bool behind = false, decided = false;
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    behind = behind || (!decided && b.at[axis] > a.at[axis]);
    decided = decided || b.at[axis] != a.at[axis];
  }
  return behind;
}

/// Copies the sites to out_coords. `thread` of `threads` does its share. Returns whether this
/// thread's share is inside of the grid, and each site is after its predecessor. If that holds for
/// all threads, there is no bad row.
template <bool kRowsOfFour>
__device__ bool copy_sites(const Problem& grid, const std::int32_t* coords, std::int64_t thread,
                           std::int64_t threads, std::int32_t* out_coords) {
  bool in_order = true;
  for (std::int64_t row = thread; row < grid.sites; row += threads) {
    const Cell cell = cell_of<kRowsOfFour>(grid, coords, row);
    in_order = in_order && cell.is_inside(grid) &&
               (row == 0 || is_behind(cell_of<kRowsOfFour>(grid, coords, row - 1), cell));
    if constexpr (kRowsOfFour) {
      reinterpret_cast<int4*>(out_coords)[row] =
          make_int4(cell.batch, cell.at[1], cell.at[2], cell.at[3]);
    } else {
      for (int i = 0; i <= grid.ndim; ++i)
        out_coords[row * (1 + grid.ndim) + i] = coords[row * (1 + grid.ndim) + i];
    }
  }
  return in_order;
}

/// Neighbouring lanes of a warp with cells of one run: their first lane inserts them all with one
/// atomic.
struct Group {
  bool leads;          ///< This lane is the first.
  int leader;          ///< The first lane.
  int lanes;           ///< From this one to the group's end.
  std::uint32_t bits;  ///< Of the first lane: the cells of all. A cell that two have is one bit.

  /// For whole warps. A lane with a cell outside of the grid is a group of its own.
  __device__ Group(bool inside, std::uint32_t run, int bit) : bits(inside ? 1u << bit : 0) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t run_before = __shfl_up_sync(kWholeWarp, run, 1);
    const bool inside_before = __shfl_up_sync(kWholeWarp, inside ? 1 : 0, 1) != 0;
    leads = lane == 0 || !inside || !inside_before || run != run_before;
    const unsigned leaders = __ballot_sync(kWholeWarp, leads);
    leader = 31 - __clz(static_cast<int>(leaders & kWholeWarp >> (31 - lane)));
    const unsigned later = lane == 31 ? 0 : leaders >> (lane + 1) << (lane + 1);
    lanes = (later == 0 ? 32 : __ffs(static_cast<int>(later)) - 1) - lane;
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t of_later = __shfl_down_sync(kWholeWarp, bits, distance);
      if (distance < lanes) bits |= of_later;
    }
  }
};

/// What the kernels of a rung share with one another and the host.
struct State {
  std::int32_t bad;       ///< Rows outside of the grid, and rows that repeat a site.
  std::int32_t unsorted;  ///< Not 0: the rows are not in the order of their sites.
};

/// A site as a cell of a run.
struct Site {
  bool inside;        ///< Of the batch and the grid.
  std::uint32_t run;  ///< The number of its run; 0 outside.
  int bit;            ///< Its bit in the run; below kCells even outside.
};

/// Calls visit(row, site) for all rows, and for as many beyond as make whole warps, with
/// Site::inside false, so that the trip count is uniform in a warp. Any one-dimensional grid of
/// whole warps.
template <bool kRowsOfFour, class Visit>
__device__ void visit_sites(const Problem& grid, const std::int32_t* coords, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t warp_row = thread_of_grid() - lane; warp_row < grid.sites;
       warp_row += threads_of_grid()) {
    const std::int64_t row = warp_row + lane;
    Cell cell{-1, {}};
    if (row < grid.sites) cell = cell_of<kRowsOfFour>(grid, coords, row);
    const bool inside = cell.is_inside(grid);
    visit(row, Site{inside, inside ? cell.run(grid) : 0, cell.bit()});
  }
}

/// Reads back `bad`, once the device is done: few inputs have bad rows, so the kernels only count
/// them, and the host identifies them. @throws BadInput if there are any
inline void require_no_bad_rows(const RulebookProblem& book, const std::int32_t* coords,
                                const std::int32_t* bad) {
  if (book.sites == 0 || downloaded(bad) == 0) return;
  std::vector<std::int32_t> rows(static_cast<std::size_t>(book.sites) *
                                 static_cast<std::size_t>(1 + book.ndim));
  download(coords, rows.size(), rows.data());
  require_no_errors(book, find_site_errors(book, rows), rows);
}

/// Whether rows are 16 bytes and begin at multiples of that: see cell_of().
inline bool has_rows_of_four(const RulebookProblem& book, const void* coords,
                             const void* out_coords) {
  return book.ndim == 3 && reinterpret_cast<std::uintptr_t>(coords) % sizeof(int4) == 0 &&
         reinterpret_cast<std::uintptr_t>(out_coords) % sizeof(int4) == 0;
}

/// Whether look_up_plane() may be used: rows of 16 bytes, and 27 contiguous taps.
inline bool is_cube_of_3(const RulebookProblem& book, const void* coords, const void* out_coords) {
  if (!has_rows_of_four(book, coords, out_coords)) return false;
  for (int axis = 0; axis < 3; ++axis) {
    if (book.kernel[axis] != 3 || book.dilation[axis] != 1) return false;
  }
  return true;
}

/// For the description of a rung's choice: what holds if arrays begin at multiples of 16 bytes, as
/// null does.
inline const char* kernel_in_words(const RulebookProblem& book) {
  return is_cube_of_3(book, nullptr, nullptr) ? "27 taps" : "any taps";
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
