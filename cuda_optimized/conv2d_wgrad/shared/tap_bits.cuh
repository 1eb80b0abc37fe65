/// @file tap_bits.cuh
/// @brief Which taps of a window lie outside of x, as the bits of a word: rows of taps from bit 0
/// on, columns from bit 31 down, and between them bit R, which is always set.
///
///     window:  0 1 1 0 ... 0 1 0 0 1      tap (r, s):  0 1 0 ... 0 0 1 0
///              columns    R   rows                       s         r
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kMaxTaps = 31;  ///< R + S: bits of a word, but one.

/// Why a filter has too many taps, if so.
inline Declined too_many_taps(const Conv2dProblem& conv) {
  if (std::int64_t{conv.R} + conv.S <= kMaxTaps) return {};
  return text("r + s = ", std::int64_t{conv.R} + conv.S, ": the bits of a word tell ", kMaxTaps,
              " taps apart");
}

/// The taps of one axis that lie outside of x, as bits: taps before 0, and from `size` on.
/// @param at where tap 0 lies
__device__ inline unsigned taps_outside(int at, int taps, int size, int dilation,
                                        const FastDivision& by_dilation) {
  const int before = at < 0 ? min(by_dilation.quotient(dilation - 1 - at), taps) : 0;
  const int end = at < size ? min(by_dilation.quotient(size - 1 - at) + 1, taps) : 0;
  const auto below = [](int n) { return n < 32 ? (1u << n) - 1 : ~0u; };
  return below(before) | ~below(end);
}

/// The bits of a window that begins at (h, w) of x: set for rows and columns of taps outside.
__device__ inline unsigned bits_outside(const Conv2dProblem& conv,
                                        const FastDivision& by_dilation_h,
                                        const FastDivision& by_dilation_w, int h, int w) {
  const unsigned rows = taps_outside(h, conv.R, conv.H, conv.dilation.h, by_dilation_h);
  const unsigned columns = taps_outside(w, conv.S, conv.W, conv.dilation.w, by_dilation_w);
  return (rows & ((1u << conv.R) - 1)) | __brev(columns & ((1u << conv.S) - 1)) | 1u << conv.R;
}

/// The bits of a tap: it lies in x where a window has none of them.
__device__ inline unsigned bits_of_tap(int r, int s) { return 1u << r | 1u << (31 - s); }

/// The bits of what is never in x.
__device__ inline unsigned bits_of_none(const Conv2dProblem& conv) { return 1u << conv.R; }

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
