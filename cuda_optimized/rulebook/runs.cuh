/// @file runs.cuh
/// @brief Runs of 32 cells along the innermost axis, and the neighbours of sites in them.
///
/// What rungs share that keep a word of bits for each run, wherever they keep it: an index that
/// look_up() asks. hash_of_runs.cu explains it. Mode subm only: the sites to look up are the
/// outputs' sites, too.
#pragma once

#include <vector>

#include "core/cuda/device_array.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "core/site_errors.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook::runs {

inline constexpr int kCells = 32;  ///< Of a run: the bits of a word, and the threads of a warp.
inline constexpr int kOuterAxes = kMaxAxes - 1;     ///< All axes but x.
inline constexpr unsigned kWholeWarp = 0xffffffff;  ///< All lanes take part.

/// A problem whose grid has four axes, whatever it had: axes of one cell stand before its own.
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

/// All runs of the problem, empty ones too: their numbers are less.
inline std::int64_t run_count(const RulebookProblem& book) {
  const std::int64_t cells = book.shape[book.ndim - 1];
  return key_count(book, book.shape) / cells * ceil_div<std::int64_t>(cells, kCells);
}

/// Why the table cannot take the problem; nothing when it can.
inline Declined declined(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm) return "mode subm only";
  if (run_count(book) > std::int64_t{1} << 32)
    return "grids of at most 2^32 runs of 32 cells (some 2^37 cells) only";
  return {};
}

/// A cell of the grid, or a row of coords that is none.
struct Cell {
  int batch;   ///< The sample.
  PerAxis at;  ///< The coordinates.

  /// Whether it lies in the batch and the grid.
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
  /// Its place in the run; of a cell outside of the grid, too, some number below kCells.
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

/// Whether b's site comes behind a's: the order of their keys, without a key of 64 bits.
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
/// thread's share is inside of the grid, and each site behind the one before. If that is so for
/// all, there is no bad row.
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

/// Neighbouring lanes of a warp with cells of one run: their first lane enters them all at once.
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

/// Looks up a site's neighbours for any kernel, at the taps of the first `lines` lines along the
/// innermost axis: column `row` of nbr [KV][sites], and row `row` of mask, or null. @tparam Index
/// has these members:
///
/// - `Answer ask(run)`: what one load says about a run; `Answer{}` says that there is none
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

/// Whether rows are 16 bytes and begin at multiples of that: see cell_of().
inline bool has_rows_of_four(const RulebookProblem& book, const void* coords,
                             const void* out_coords) {
  return book.ndim == 3 && reinterpret_cast<std::uintptr_t>(coords) % sizeof(int4) == 0 &&
         reinterpret_cast<std::uintptr_t>(out_coords) % sizeof(int4) == 0;
}

/// Whether look_up_cube() may be asked: rows of 16 bytes, and 27 taps side by side.
inline bool is_cube_of_3(const RulebookProblem& book, const void* coords, const void* out_coords) {
  if (!has_rows_of_four(book, coords, out_coords)) return false;
  for (int axis = 0; axis < 3; ++axis) {
    if (book.kernel[axis] != 3 || book.dilation[axis] != 1) return false;
  }
  return true;
}

/// For a rung's choice: what holds if arrays begin at multiples of 16 bytes, as null does.
inline const char* kernel_in_words(const RulebookProblem& book) {
  return is_cube_of_3(book, nullptr, nullptr) ? "27 taps" : "any taps";
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
  // As unsigned numbers: what lies below 0 is beyond every extent, and nothing overflows.
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
      // Sites of a line have rows side by side, across the border of two runs, too.
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

/// Looks up 3 x 3 x 3 taps of all sites, by blocks of kPlanes * kRows threads.
/// @param bits shared memory of the block: what each plane has of a row's mask
template <int kRows, class Index>
__device__ void look_up_cube(const Problem& grid, const std::int32_t* coords, const Index& index,
                             bool sorted, std::uint32_t (&bits)[kPlanes][kRows], std::int32_t* nbr,
                             std::int32_t* mask) {
  const int row_of_tile = static_cast<int>(threadIdx.x) % kRows;
  const int plane = static_cast<int>(threadIdx.x) / kRows;
  const auto sites = static_cast<unsigned>(grid.sites);
  for (unsigned first_row = blockIdx.x * kRows; first_row < sites; first_row += gridDim.x * kRows) {
    const unsigned row = first_row + static_cast<unsigned>(row_of_tile);
    if (row < sites) {
      bits[plane][row_of_tile] =
          look_up_plane(grid, cell_of<true>(grid, coords, row), index, sorted, plane, row, nbr);
    }
    __syncthreads();  // the bits of all planes are there before one thread a row joins them
    if (plane == 0 && row < sites) {
      mask[row] = static_cast<std::int32_t>(bits[0][row_of_tile] | bits[1][row_of_tile] |
                                            bits[2][row_of_tile]);
    }
    __syncthreads();  // they are joined before the next tile's bits overwrite them
  }
}

/// Reads back `bad`, once the device is done: few inputs have bad rows, so the kernels only count
/// them, and the host finds out which they are. @throws BadInput that says so
inline void require_no_bad_rows(const RulebookProblem& book, const std::int32_t* coords,
                                const std::int32_t* bad) {
  if (book.sites == 0 || downloaded(bad) == 0) return;
  std::vector<std::int32_t> rows(static_cast<std::size_t>(book.sites) *
                                 static_cast<std::size_t>(1 + book.ndim));
  check(cudaMemcpy(rows.data(), coords, rows.size() * sizeof rows[0], cudaMemcpyDeviceToHost));
  require_no_errors(book, find_site_errors(book, rows), rows);
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::runs
