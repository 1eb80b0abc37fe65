/// @file winograd_bound.hpp
/// @brief What bounds the rounding of rungs that do with fewer multiplications (Winograd).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/reference.hpp"

namespace convladder {

/// Whether Winograd's F(m x m, 3 x 3) computes it: a filter of 3 x 3, stride and dilation 1.
bool winograd_takes(const Conv2dProblem& conv);

/// The room that exact data leave for it, see headroom(). F(4 x 4, 3 x 3) adds products of
/// transformed numbers: nine times the output, up to 144 times as much in between, with six bits
/// behind the point. Random signs cancel most of it: with data that leave 64 times the room of a
/// plain sum, 2^24 is six standard deviations away or more.
std::int64_t winograd_headroom(const Conv2dProblem& conv);

/// The expected values of a convolution, or of its gradient by the input, with what bounds the
/// rounding of F(m x m, 3 x 3): not the sum of |products| of an output, but
///
///     b = |A^T| [sum over c of (|G| |g| |G^T|) .* (|B^T| |d| |B|)] |A|, and |bias|,
///
/// with the matrices' absolute values (m = 2 or 4), g a filter's channel, d the tile's. All that is
/// added up on the way to an output is in it, neighbours in the tile, too: what cancels in exact
/// arithmetic, but not its rounding. The longest sum is then that over the channels. The gradient
/// is a convolution of dy: channels and filters change places, and g is turned by 180 degrees.
Expected with_winograd_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                             int m);

/// The same bound b of single outputs, as Expected has it.
struct WinogradBound {
  std::vector<double> magnitude;  ///< b of each
  std::int64_t longest_sum = 1;   ///< that over the channels
};

/// Of some outputs, each computed by itself.
/// @param places row-major offsets in the output, y or dx
WinogradBound winograd_bound_at(const Problem& problem, const Arrays& inputs, int m,
                                std::span<const std::int64_t> places);

}  // namespace convladder
