/// @file cell_bits.cuh
/// @brief A bit for each cell of a grid: which sites there are, and which their taps lead to.
#pragma once

#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Sets the bit of a given site; false if the site lies outside, or if its bit was there.
__device__ inline bool mark_given(const Lattice& lattice, const LatticeSite& site,
                                  std::uint32_t* given) {
  if (!is_inside(lattice, site)) return false;
  const std::uint32_t cell = given_cell(lattice, site);
  return (atomicOr(&given[cell / 32], bit_of(cell)) & bit_of(cell)) == 0;
}

/// Sets bits of a word. Most are there already, as neighbouring sites lead to the same cells, and a
/// load is cheaper than an atomic: one from the L2, where other blocks' bits are. Bits that another
/// thread sets between the load and the atomic are set twice, which does no harm.
__device__ inline void set_in_word(std::uint32_t* word, std::uint32_t bits) {
  if ((__ldcg(word) & bits) != bits) atomicOr(word, bits);
}

/// Sets the bits of `pattern`, the first at a cell.
__device__ inline void set_bits(std::uint32_t* bits, std::uint32_t cell, std::uint32_t pattern) {
  const std::uint64_t both = std::uint64_t{pattern} << cell % 32;
  set_in_word(&bits[cell / 32], static_cast<std::uint32_t>(both));
  if (both >> 32 != 0) set_in_word(&bits[cell / 32 + 1], static_cast<std::uint32_t>(both >> 32));
}

/// Sets the bits of all found cells that a given site leads to, line by line: those of a line are
/// the same pattern everywhere, which mostly lies in one word.
__device__ inline void mark_found(const Lattice& lattice, const LatticeSite& site,
                                  std::uint32_t* found) {
  const SiteRuns runs(lattice, site);
  const LatticeAxis& last = lattice.axes[kMaxAxes - 1];
  int tap = runs.axes[kMaxAxes - 1].tap, at = runs.axes[kMaxAxes - 1].found;
  while (tap < last.kernel) {
    // Cells ascend, or they descend: as many as 32 bits hold.
    std::uint32_t pattern = 0;
    int low = 0;
    for (; tap < last.kernel; tap += last.tap_step, at += last.found_step) {
      if (at < 0 || at >= last.found) continue;
      if (pattern == 0) {
        low = at;
        pattern = 1;
      } else if (at > low && at - low < 32) {
        pattern |= 1u << (at - low);
      } else if (at < low && low - at <= __clz(static_cast<int>(pattern))) {
        pattern = pattern << (low - at) | 1;
        low = at;
      } else {
        break;  // too far off: for the next round
      }
    }
    if (pattern == 0) continue;
    const auto set = [&](int, std::uint32_t line) {
      set_bits(found,
               line * static_cast<std::uint32_t>(last.found) + static_cast<std::uint32_t>(low),
               pattern);
    };
    visit_found<0, kMaxAxes - 1>(lattice, runs, 0, runs.batch, set);
  }
}

/// Sets the bit of a given site, and those of all that its taps lead to. A site outside leads
/// nowhere; it is counted as unusable, and so is one whose bit is there already.
__device__ inline void mark_site(const Lattice& lattice, const LatticeSite& site,
                                 std::uint32_t* given, std::uint32_t* found,
                                 std::uint32_t* unusable) {
  // The atomic's answer takes as long as all that mark_found() does: it is asked for first, and
  // needed last. A repeated site sets the same bits again.
  const bool usable = mark_given(lattice, site, given);
  if (is_inside(lattice, site)) mark_found(lattice, site, found);
  if (!usable) atomicAdd(unusable, 1u);
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
