/// @file lattice.cuh
/// @brief The two grids of a strided rulebook, with four axes, 32-bit arithmetic and no divisions:
/// where taps lead, which problems this takes, and how bad sites are reported.
#pragma once

#include <algorithm>
#include <numeric>

#include "core/cuda/device_array.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/site_check.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// One axis of both grids: that of the *given* sites, which are rows of coords, and that of the
/// *found* ones, to which the taps lead them.
struct LatticeAxis {
  int given = 1, found = 1;                           ///< Extents.
  int kernel = 1, stride = 1, pad = 0, dilation = 1;  ///< As the problem's, along this axis.
  int tap_step = 1, found_step = 1;  ///< Steps from a tap to the next, and of where they lead.
  FastDivision by_stride;            ///< Division by the stride.
  FastDivision by_given, by_found;   ///< Divisions by the extents.

  /// at * stride - pad + tap * dilation, if that is less than `extent` and not negative; else -1.
  __device__ int times_stride(int at, int tap, int extent) const {
    const int to = at * stride - pad + tap * dilation;
    return to >= 0 && to < extent ? to : -1;
  }
  /// The inverse: the `to` that times_stride() leads from to `at`; -1 if there is none.
  __device__ int over_stride(int at, int tap, int extent) const {
    const int from = at + pad - tap * dilation;
    if (from < 0) return -1;
    const int to = by_stride.quotient(from);
    return by_stride.remainder(from, to) == 0 && to < extent ? to : -1;
  }
};

/// A problem with fewer axes is padded in front with axes of one cell and one tap: loops over axes
/// then have constant bounds, and coordinates stay in registers.
struct Lattice {
  LatticeAxis axes[kMaxAxes];  ///< Outermost first; missing axes are in front.
  int ndim, batch, sites, KV;  ///< As the problem's.
  bool transposed;             ///< Given sites are multiplied by the stride, not divided.

  /// The lattice of a problem.
  explicit Lattice(const RulebookProblem& book)
      : ndim(book.ndim), batch(book.batch), sites(book.sites), KV(book.KV),
        transposed(book.mode == SparseMode::transposed) {
    for (int axis = 0; axis < ndim; ++axis) {
      const int common = std::gcd(book.stride[axis], book.dilation[axis]);
      axes[kMaxAxes - ndim + axis] = {
          .given = book.shape[axis],
          .found = book.out_shape[axis],
          .kernel = book.kernel[axis],
          .stride = book.stride[axis],
          .pad = book.pad[axis],
          .dilation = book.dilation[axis],
          .tap_step = transposed ? 1 : book.stride[axis] / common,
          .found_step = transposed ? book.dilation[axis] : -(book.dilation[axis] / common),
          .by_stride = FastDivision(book.stride[axis]),
          .by_given = FastDivision(book.shape[axis]),
          .by_found = FastDivision(book.out_shape[axis])};
    }
  }

  /// The coordinate along an axis of the found site of a given site at a tap; -1 if there is none.
  __device__ int found_from_given(int axis, int at, int tap) const {
    return transposed ? axes[axis].times_stride(at, tap, axes[axis].found)
                      : axes[axis].over_stride(at, tap, axes[axis].found);
  }
  /// The inverse.
  __device__ int given_from_found(int axis, int at, int tap) const {
    return transposed ? axes[axis].over_stride(at, tap, axes[axis].given)
                      : axes[axis].times_stride(at, tap, axes[axis].given);
  }
};

/// A site on the four axes.
struct LatticeSite {
  int batch;         ///< The sample.
  int at[kMaxAxes];  ///< The coordinates.
};

/// Row `row` of coords [rows][1 + ndim].
__device__ inline LatticeSite lattice_site(const Lattice& lattice, const std::int32_t* coords,
                                           std::int64_t row) {
  const std::int32_t* from = coords + row * (1 + lattice.ndim);
  LatticeSite site{from[0], {}};
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const int column = 1 + axis - (kMaxAxes - lattice.ndim);
    site.at[axis] = column > 0 ? from[column] : 0;
  }
  return site;
}

/// Whether a site is inside of the batch and the grid of the given sites.
__device__ inline bool is_inside(const Lattice& lattice, const LatticeSite& site) {
  bool inside = site.batch >= 0 && site.batch < lattice.batch;
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis)
    inside = inside && site.at[axis] >= 0 && site.at[axis] < lattice.axes[axis].given;
  return inside;
}

/// The cell of a given site, which is inside of the grid.
__device__ inline std::uint32_t given_cell(const Lattice& lattice, const LatticeSite& site) {
  auto cell = static_cast<std::uint32_t>(site.batch);
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis)
    cell = cell * static_cast<std::uint32_t>(lattice.axes[axis].given) +
           static_cast<std::uint32_t>(site.at[axis]);
  return cell;
}

/// The site of a cell, in the grid by whose extents kByExtent divides.
template <FastDivision LatticeAxis::*kByExtent>
__device__ LatticeSite site_of_cell(const Lattice& lattice, std::uint32_t cell) {
  LatticeSite site;
  auto rest = static_cast<int>(cell);
#pragma unroll
  for (int axis = kMaxAxes - 1; axis >= 0; --axis) {
    if (axis < kMaxAxes - lattice.ndim) {
      site.at[axis] = 0;
      continue;
    }
    const FastDivision& by_extent = lattice.axes[axis].*kByExtent;
    const int quotient = by_extent.quotient(rest);
    site.at[axis] = by_extent.remainder(rest, quotient);
    rest = quotient;
  }
  site.batch = rest;
  return site;
}

/// The site of a given cell.
__device__ inline LatticeSite given_site(const Lattice& lattice, std::uint32_t cell) {
  return site_of_cell<&LatticeAxis::by_given>(lattice, cell);
}

/// The site of a found cell.
__device__ inline LatticeSite found_site(const Lattice& lattice, std::uint32_t cell) {
  return site_of_cell<&LatticeAxis::by_found>(lattice, cell);
}

/// Writes a site to row `row` of coords [rows][1 + ndim].
__device__ inline void write_lattice_site(const Lattice& lattice, const LatticeSite& site,
                                          std::int32_t* coords, std::int64_t row) {
  std::int32_t* to = coords + row * (1 + lattice.ndim);
  to[0] = site.batch;
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const int column = 1 + axis - (kMaxAxes - lattice.ndim);
    if (column > 0) to[column] = site.at[axis];
  }
}

/// Of the taps along one axis, those that lead a given site somewhere: the first and where it
/// leads. The others follow in steps of tap_step and found_step, so there is one division an axis.
/// A tap may still lead beyond the found sites' grid.
struct TapRun {
  int tap = 0, found = 0;  ///< The tap, and where along the found axis it leads.
};

/// The first tap along an axis that leads the site at `at` somewhere; lattice.axes[axis].kernel if
/// none does.
__device__ inline TapRun tap_run(const Lattice& lattice, int axis, int at) {
  const LatticeAxis& along = lattice.axes[axis];
  if (lattice.transposed) return {0, at * along.stride - along.pad};
  // At most tap_step taps to test; without dilation the remainder is the answer.
  for (int tap = along.dilation == 1 ? along.by_stride.remainder(
                                           at + along.pad, along.by_stride.quotient(at + along.pad))
                                     : 0;
       tap < along.tap_step && tap < along.kernel; ++tap) {
    const int from = at + along.pad - tap * along.dilation;
    if (from < 0) break;
    const int found = along.by_stride.quotient(from);
    if (along.by_stride.remainder(from, found) == 0) return {tap, found};
  }
  return {along.kernel, 0};
}

/// The taps of all axes that lead a given site somewhere.
struct SiteRuns {
  std::uint32_t batch;    ///< The sample.
  TapRun axes[kMaxAxes];  ///< Outermost first.

  /// Of a given site.
  __device__ SiteRuns(const Lattice& lattice, const LatticeSite& site)
      : batch(static_cast<std::uint32_t>(site.batch)) {
#pragma unroll
    for (int axis = 0; axis < kMaxAxes; ++axis) axes[axis] = tap_run(lattice, axis, site.at[axis]);
  }
};

/// Calls visit(tap, cell) for every tap of the axes from kAxis to before kEnd that leads a given
/// site to a found cell, of those axes alone. `tap` and `cell` are those of the axes before: at
/// first 0 and the sample, in as many bits as cells are to have.
template <int kAxis = 0, int kEnd = kMaxAxes, class Cell, class Visit>
__device__ void visit_found(const Lattice& lattice, const SiteRuns& runs, int tap, Cell cell,
                            const Visit& visit) {
  if constexpr (kAxis == kEnd) {
    visit(tap, cell);
  } else {
    const LatticeAxis& axis = lattice.axes[kAxis];
    int found = runs.axes[kAxis].found;
    for (int k = runs.axes[kAxis].tap; k < axis.kernel; k += axis.tap_step) {
      if (found >= 0 && found < axis.found)
        visit_found<kAxis + 1, kEnd>(
            lattice, runs, tap * axis.kernel + k,
            cell * static_cast<Cell>(axis.found) + static_cast<Cell>(found), visit);
      found += axis.found_step;
    }
  }
}

/// The most sites that those of coords can lead to. Of the taps along an axis, those that lead
/// somewhere are stride / gcd(stride, dilation) apart: with stride 2 and dilation 2, all may.
inline std::int64_t most_found(const RulebookProblem& book) {
  std::int64_t most = book.sites;
  for (int axis = 0; axis < book.ndim; ++axis) {
    const int step = book.mode == SparseMode::transposed
                         ? 1
                         : book.stride[axis] / std::gcd(book.stride[axis], book.dilation[axis]);
    most *= ceil_div(book.kernel[axis], step);  // at most KV * sites: no overflow
  }
  return std::min(most, key_count(book, book.out_shape));
}

/// The reason why a Lattice does not support a problem, or none.
inline Declined lattice_supports(const RulebookProblem& book) {
  if (book.mode == SparseMode::subm) return "modes strided, transposed and inverse only";
  for (int axis = 0; axis < book.ndim; ++axis) {
    const std::int64_t extent = std::max(book.shape[axis], book.out_shape[axis]);
    if (extent * book.stride[axis] + book.pad[axis] +
            window_extent(book.kernel[axis], book.dilation[axis]) >=
        std::int64_t{1} << 31)
      return "windows that end before 2^31 only";
  }
  return {};
}

/// The same for kernels that number cells with 32 bits. The found sites' grid counts as well as the
/// given ones': under `transposed` it is the larger one.
inline Declined small_lattice_supports(const RulebookProblem& book) {
  if (const std::int64_t most = std::int64_t{1} << 31;
      key_count(book, book.shape) >= most || key_count(book, book.out_shape) >= most)
    return "grids of fewer than 2^31 cells only";
  return lattice_supports(book);
}

/// Reports the errors in the sites, with row numbers, after a kernel has found that there are some.
/// Slow. @throws BadInput
inline void report_site_errors(const RulebookProblem& book, const std::int32_t* coords) {
  const SiteCheck sites(book, coords);
  const DeviceArray<std::int64_t> keys(book.sites);
  const DeviceArray<std::int32_t> rows(book.sites);
  sort_sites(book, coords, keys.data(), rows.data(), sites.errors());
  sites.require_distinct();
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
