/// @file tap_lines.cuh
/// @brief All taps of an output line by line: a load or two of bits answers a line of them.
#pragma once

#include "cuda_optimized/rulebook/shared/output_taps.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The taps of one output, for a kernel of kSide taps along each of the last three axes and one
/// along the first: cells of a line lie within 32 of one another, and so in two words at most.
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
  /// @param first the place in `rows` of each word's first bit
  /// @param rows by place; null: the place is the row
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
  std::uint32_t tap_bit_[kSide];      ///< and which of them is each tap's; 0: it leads nowhere.
};

/// Whether TapLines<side, ...> takes the kernel.
inline bool has_sides_of(const Lattice& lattice, int side) {
  const LatticeAxis& last = lattice.axes[kMaxAxes - 1];
  return lattice.axes[0].kernel == 1 && lattice.axes[1].kernel == side &&
         lattice.axes[2].kernel == side && last.kernel == side &&
         window_extent(last.kernel, last.dilation) <= 32;
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
