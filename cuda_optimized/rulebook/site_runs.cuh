/// @file site_runs.cuh
/// @brief The taps that lead a given site somewhere, and a walk over the found cells they lead to.
#pragma once

#include <algorithm>
#include <numeric>

#include "cuda_optimized/rulebook/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

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
  // At most tap_step taps to ask; without dilation the remainder is the answer.
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

/// How many taps lead a given site, which lies inside, to a found cell. The taps of one axis that
/// do meet all those of the others.
__device__ inline int taps_that_lead(const Lattice& lattice, const LatticeSite& site) {
  const SiteRuns runs(lattice, site);
  int taps = 1;
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const LatticeAxis& along = lattice.axes[axis];
    int of_axis = 0, found = runs.axes[axis].found;
    for (int k = runs.axes[axis].tap; k < along.kernel; k += along.tap_step) {
      if (found >= 0 && found < along.found) ++of_axis;
      found += along.found_step;
    }
    taps *= of_axis;
  }
  return taps;
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

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
