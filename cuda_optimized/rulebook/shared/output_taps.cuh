/// @file output_taps.cuh
/// @brief For strided/gather.cu: the cells of an output's taps and their rows, tap by tap or a line
/// of taps at once, and the index of each given row by its bit.
#pragma once

#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::word_places {

using bit_ranks::kThreads;
using bit_ranks::kWarps;

/// Assigns a range of indices to each word of the given sites' bits, one per set bit: first
/// [words]. The thread of a word's lowest bit requests it, one atomic a block: which range it gets
/// does not matter. The blocks from first_block on, of kThreads, share the work.
/// @param placed number of assigned indices; 0 at first
/// @param warp_sums [kWarps], shared memory
__device__ inline void place_words(const Lattice& lattice, unsigned first_block,
                                   const std::int32_t* coords, const std::uint32_t* given,
                                   std::uint32_t* placed, std::uint32_t* first, int* warp_sums) {
  __shared__ std::uint32_t start;
  const std::int64_t grid_threads = std::int64_t{gridDim.x - first_block} * kThreads;
  std::int64_t begin = std::int64_t{blockIdx.x - first_block} * kThreads;
  for (; begin < lattice.sites; begin += grid_threads) {
    const std::int64_t row = begin + threadIdx.x;
    std::uint32_t word = 0;
    int places = 0;
    if (row < lattice.sites) {
      const LatticeSite site = lattice_site(lattice, coords, row);
      if (is_inside(lattice, site)) {
        const std::uint32_t cell = given_cell(lattice, site);
        word = cell / 32;
        const std::uint32_t bits = given[word];
        if ((bits & (bit_of(cell) - 1)) == 0) places = __popc(bits);
      }
    }
    int total;
    const int before = block_exclusive_sum<kWarps>(places, warp_sums, &total);
    if (threadIdx.x == 0) start = atomicAdd(placed, static_cast<std::uint32_t>(total));
    __syncthreads();  // the range is stored; it is overwritten only after the barriers of the next
                      // sum
    if (places > 0) first[word] = start + static_cast<std::uint32_t>(before);
  }
}

/// Writes each given row to its index: rows [N]. The blocks from first_block on, of kBlockThreads,
/// share the work.
/// @param given the given sites' bits, and the indices of their words
template <int kBlockThreads>
__device__ void place_rows(const Lattice& lattice, unsigned first_block, const std::int32_t* coords,
                           const BitIndex& given, std::int32_t* rows) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x - first_block} * kBlockThreads;
  std::int64_t row = std::int64_t{blockIdx.x - first_block} * kBlockThreads + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    if (!is_inside(lattice, site)) continue;  // bad input, of which the host may not have found yet
    const std::uint32_t cell = given_cell(lattice, site);
    const std::uint32_t place = given.rank(cell, given.bits[cell / 32]);
    // Where a site is repeated, which the host may not have found yet either, indices may exceed
    // the number of rows.
    if (place < static_cast<std::uint32_t>(lattice.sites))
      rows[place] = static_cast<std::int32_t>(row);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::word_places

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The row of the site in a cell, or -1. Cells of -1 are none.
/// @param rows by index; null: the index is the row
__device__ inline std::int32_t row_in(int cell, const BitIndex& index, const std::int32_t* rows) {
  if (cell < 0) return -1;
  const auto at = static_cast<std::uint32_t>(cell);
  const std::uint32_t word = index.bits[at / 32];
  if ((word & bit_of(at)) == 0) return -1;
  const std::uint32_t place = index.rank(at, word);
  return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);
}

/// Outputs, and where their taps lead. They are found sites, in cells [M], and look up given ones;
/// or, under `inverse`, given sites, in coords [M][1 + ndim], that look up found ones.
struct Question {
  Lattice lattice;             ///< of both kinds of sites
  bool inverse;                ///< the outputs are given sites
  const std::uint32_t* cells;  ///< of the found sites
  const std::int32_t* coords;  ///< of the given ones

  /// The site of an output.
  __device__ LatticeSite site(std::int64_t row) const {
    return inverse ? lattice_site(lattice, coords, row) : found_site(lattice, cells[row]);
  }
  /// Whether an output has cells: a row outside of the grid is invalid input, which the host may
  /// not have detected yet.
  __device__ bool is_usable(const LatticeSite& site) const {
    return !inverse || is_inside(lattice, site);
  }
  /// The coordinate along an axis where a tap leads, or -1.
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

/// The taps of one output, for a kernel of kSide taps along each of the last three axes and one
/// along the first: the cells of a line are at most 32 apart, and so in at most two words.
/// @tparam kPlanes of kSide lines that are looked up at once, with all their loads in flight
template <int kSide, int kPlanes>
class TapLines {
 public:
  static constexpr int kLines = kPlanes * kSide;  ///< Of a step.
  static constexpr int kTaps = kLines * kSide;    ///< Of a step.
  static constexpr int kSteps = kSide / kPlanes;  ///< Of a kernel.
  static_assert(kSide % kPlanes == 0 && kSide * kSide * kSide <= 32, "whole steps, one mask word");

  /// Of the output at a site.
  __device__ TapLines(const Question& ask, const LatticeSite& site) : ask_(ask) {
    const bool usable = ask.is_usable(site);
    const int volume = usable ? ask.cell(site.batch, 0, ask.along(0, site.at[0], 0)) : -1;
#pragma unroll
    for (int k = 0; k < kSide; ++k) {
      planes_[k] = ask.cell(volume, 1, usable ? ask.along(1, site.at[1], k) : -1);
      lines_[k] = usable ? ask.along(2, site.at[2], k) : -1;
    }
    int at[kSide];  // along the last axis
    begin_ = -1;
#pragma unroll
    for (int k3 = 0; k3 < kSide; ++k3) {
      at[k3] = usable ? ask.along(3, site.at[3], k3) : -1;
      if (at[k3] >= 0 && (begin_ < 0 || at[k3] < begin_)) begin_ = at[k3];
    }
    pattern_ = 0;
#pragma unroll
    for (int k3 = 0; k3 < kSide; ++k3) {
      tap_bit_[k3] = at[k3] >= 0 ? 1u << (at[k3] - begin_) : 0;
      pattern_ |= tap_bit_[k3];
    }
  }

  /// The rows that the taps of a step find, or -1: hits [kTaps].
  /// @param first the index in `rows` of each word's first bit
  /// @param rows by index; null: the index is the row
  __device__ void look_up(int step, const std::uint32_t* bits, const std::uint32_t* first,
                          const std::int32_t* rows, std::int32_t (&hits)[kTaps]) const {
    int cells[kLines];                             // where each line begins
    std::uint32_t words[kLines], windows[kLines];  // the word there; 32 bits from the cell on
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const int k1 = step * kPlanes + i / kSide, k2 = i % kSide;
      cells[i] = ask_.cell(ask_.cell(planes_[k1], 2, lines_[k2]), 3, begin_);
      const int shift = cells[i] & 31;
      std::uint32_t next = 0;
      words[i] = 0;
      if (cells[i] >= 0) {
        words[i] = __ldg(&bits[cells[i] / 32]);
        if (__clz(static_cast<int>(pattern_)) < shift) next = __ldg(&bits[cells[i] / 32 + 1]);
      }
      windows[i] = __funnelshift_r(words[i], next, static_cast<unsigned>(shift));
    }
    std::uint32_t places[kLines], jumps[kLines];  // of the window's first site; in the next word
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const int shift = cells[i] & 31;
      const std::uint32_t below = (1u << shift) - 1, in_word = ~0u >> shift;
      places[i] = jumps[i] = 0;
      if ((windows[i] & pattern_ & in_word) != 0)
        places[i] =
            __ldg(&first[cells[i] / 32]) + static_cast<std::uint32_t>(__popc(words[i] & below));
      if ((windows[i] & pattern_ & ~in_word) != 0) jumps[i] = __ldg(&first[cells[i] / 32 + 1]);
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
#pragma unroll
      for (int k3 = 0; k3 < kSide; ++k3) hits[i * kSide + k3] = -1;
      if ((windows[i] & pattern_) == 0) continue;  // four of five lines
      const std::uint32_t in_word = ~0u >> (cells[i] & 31);
#pragma unroll
      for (int k3 = 0; k3 < kSide; ++k3) {
        std::int32_t& hit = hits[i * kSide + k3];
        if ((windows[i] & tap_bit_[k3]) == 0) continue;
        const std::uint32_t before = windows[i] & (tap_bit_[k3] - 1);
        hit = static_cast<std::int32_t>(
            (tap_bit_[k3] & in_word) != 0
                ? places[i] + static_cast<std::uint32_t>(__popc(before))
                : jumps[i] + static_cast<std::uint32_t>(__popc(before & ~in_word)));
        if (rows != nullptr) hit = __ldg(&rows[hit]);
      }
    }
  }

 private:
  const Question& ask_;
  int planes_[kSide], lines_[kSide];  ///< Along the two axes between, by tap.
  int begin_;                         ///< Along the last axis: where the first cell is,
  std::uint32_t pattern_;             ///< which bits, from there on, are the taps',
  std::uint32_t tap_bit_[kSide];      ///< and which of them is each tap's; 0: no cell.
};

/// Whether TapLines<side, ...> takes the kernel.
inline bool has_sides_of(const Lattice& lattice, int side) {
  const LatticeAxis& last = lattice.axes[kMaxAxes - 1];
  return lattice.axes[0].kernel == 1 && lattice.axes[1].kernel == side &&
         lattice.axes[2].kernel == side && last.kernel == side &&
         window_extent(last.kernel, last.dilation) <= 32;
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
