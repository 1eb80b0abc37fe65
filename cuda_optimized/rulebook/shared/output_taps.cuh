/// @file output_taps.cuh
/// @brief Outputs that ask where their taps lead, and which row is there.
#pragma once

#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The row of the site in a cell, or -1. Cells of -1 are none.
/// @param rows by place; null: the place is the row
__device__ inline std::int32_t row_in(int cell, const BitIndex& index, const std::int32_t* rows) {
  if (cell < 0) return -1;
  const auto at = static_cast<std::uint32_t>(cell);
  const std::uint32_t word = index.bits[at / 32];
  if ((word & bit_of(at)) == 0) return -1;
  const std::uint32_t place = index.rank(at, word);
  return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);
}

/// Outputs, and where their taps lead. They are found sites, in cells [M], and ask for given ones;
/// or, under `inverse`, given sites, in coords [M][1 + ndim], that ask for found ones.
struct Question {
  Lattice lattice;             ///< of both kinds of sites
  bool inverse;                ///< the outputs are given sites
  const std::uint32_t* cells;  ///< of the found sites
  const std::int32_t* coords;  ///< of the given ones

  /// The site of an output.
  __device__ LatticeSite site(std::int64_t row) const {
    return inverse ? lattice_site(lattice, coords, row) : found_site(lattice, cells[row]);
  }
  /// Whether an output's cells are any: a row outside is bad input, which the host may not know
  /// yet.
  __device__ bool is_usable(const LatticeSite& site) const {
    return !inverse || is_inside(lattice, site);
  }
  /// The coordinate asked for along an axis, or -1.
  __device__ int along(int axis, int at, int tap) const {
    return inverse ? lattice.found_from_given(axis, at, tap)
                   : lattice.given_from_found(axis, at, tap);
  }
  /// The cell of axes up to `axis` from that of the axes before; -1 if either is none.
  __device__ int cell(int outer, int axis, int at) const {
    const int extent = inverse ? lattice.axes[axis].found : lattice.axes[axis].given;
    return outer < 0 || at < 0 ? -1 : outer * extent + at;
  }
};

/// Calls visit(k, cell) for every tap of an output, in order; a cell of -1 is none.
template <class Visit>
__device__ void visit_taps(const Question& ask, const LatticeSite& site, const Visit& visit) {
  const Lattice& lattice = ask.lattice;
  const int sample = ask.is_usable(site) ? site.batch : -1;
  int k = 0;
  for (int k0 = 0; k0 < lattice.axes[0].kernel; ++k0) {
    const int volume = ask.cell(sample, 0, sample < 0 ? -1 : ask.along(0, site.at[0], k0));
    for (int k1 = 0; k1 < lattice.axes[1].kernel; ++k1) {
      const int plane = ask.cell(volume, 1, volume < 0 ? -1 : ask.along(1, site.at[1], k1));
      for (int k2 = 0; k2 < lattice.axes[2].kernel; ++k2) {
        const int line = ask.cell(plane, 2, plane < 0 ? -1 : ask.along(2, site.at[2], k2));
        for (int k3 = 0; k3 < lattice.axes[3].kernel; ++k3, ++k)
          visit(k, ask.cell(line, 3, line < 0 ? -1 : ask.along(3, site.at[3], k3)));
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
