/// @file site_tiles.cuh
/// @brief Given sites in their order, and where a line of taps leads a tile of them.
#pragma once

#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

inline constexpr int kSitesEach = 4;  ///< Of a lane: their loads are in flight together.
inline constexpr int kTileSites = 32 * kSitesEach;  ///< Of a warp.
inline constexpr int kLast = kMaxAxes - 1;          ///< The innermost axis.

/// The number of taps that lead a given site, which is inside of the grid, to a found cell: the
/// product over the axes.
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

/// Tiles of given sites: a warp takes one at a time.
inline std::int64_t site_tiles(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(book.sites, kTileSites);
}

/// The given sites in the order of the lists.
struct GivenSites {
  Lattice lattice;                ///< Their grid.
  const std::int32_t* coords;     ///< [N][1 + ndim]
  const std::uint32_t* numbered;  ///< Number of numbered sites, at most N; null under `inverse`.
  const std::uint32_t* cells;     ///< [*numbered] in order; null under `inverse`: as in coords.
  const std::int32_t* rows;       ///< [*numbered] by index; null under `inverse`.

  /// The number of indices; with invalid input it may be less than N.
  __device__ std::int64_t count() const { return cells != nullptr ? *numbered : lattice.sites; }
  /// The site at an index. The sample of one outside of the grid is -1.
  __device__ LatticeSite site(std::int64_t place) const {
    if (cells != nullptr) return given_site(lattice, cells[place]);
    LatticeSite site = lattice_site(lattice, coords, place);
    if (!is_inside(lattice, site)) site.batch = -1;
    return site;
  }
  /// Its row of coords; -1 for an index after the last.
  __device__ std::int32_t row(std::int64_t place) const {
    if (place >= count()) return -1;
    return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);
  }
};

/// A tile of given sites and a line of taps along the innermost axis: where those lead, for one
/// lane of the tile's warp.
class TileLine {
 public:
  /// Loads the line `line` of taps of the sites from first_place on.
  __device__ TileLine(const GivenSites& given, std::int64_t first_place, int line)
      : lattice_(given.lattice) {
    int taps[kLast];  // along the outer axes
#pragma unroll
    for (int axis = kLast - 1; axis >= 0; --axis) {
      taps[axis] = line % lattice_.axes[axis].kernel;
      line /= lattice_.axes[axis].kernel;
    }
    const std::int64_t places = given.count();
#pragma unroll
    for (int i = 0; i < kSitesEach; ++i) {
      const std::int64_t place = first_place + 32 * i + threadIdx.x % 32;
      lines_[i] = -1;
      at_[i] = 0;
      if (place >= places) continue;
      const LatticeSite site = given.site(place);
      int to = site.batch;
#pragma unroll
      for (int axis = 0; axis < kLast; ++axis) {
        const int at = to < 0 ? -1 : lattice_.found_from_given(axis, site.at[axis], taps[axis]);
        to = at < 0 ? -1 : to * lattice_.axes[axis].found + at;
      }
      lines_[i] = to;
      if (to >= 0) at_[i] = site.at[kLast];
    }
  }

  /// The found cell where tap `tap` of the line leads site `i` of the lane, or -1.
  __device__ int cell(int i, int tap) const {
    const int at = lattice_.found_from_given(kLast, at_[i], tap);
    return lines_[i] < 0 || at < 0 ? -1 : lines_[i] * lattice_.axes[kLast].found + at;
  }

  /// The number of sites of the tile that a tap of the line leads to a found cell. The whole warp
  /// calls it.
  __device__ int count(int tap) const {
    int hits = 0;
#pragma unroll
    for (int i = 0; i < kSitesEach; ++i)
      hits += __popc(__ballot_sync(0xffffffff, cell(i, tap) >= 0));
    return hits;
  }

  /// The rows of the found sites where a tap of the line leads the lane's sites, or -1.
  /// @param found numbers the found sites from first_found on
  __device__ void look_up(int tap, const BitIndex& found, std::uint32_t first_found,
                          std::int32_t (&rows)[kSitesEach]) const {
#pragma unroll
    for (int i = 0; i < kSitesEach; ++i) {
      const int to = cell(i, tap);
      rows[i] = -1;
      if (to < 0) continue;
      const auto at = static_cast<std::uint32_t>(to);  // its bit is set: this site has set it
      rows[i] = static_cast<std::int32_t>(found.rank(at, found.bits[at / 32]) - first_found);
    }
  }

 private:
  const Lattice& lattice_;
  int lines_[kSitesEach];  ///< The cells of the outer axes, or -1.
  int at_[kSitesEach];     ///< Where the sites are along the innermost axis.
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
