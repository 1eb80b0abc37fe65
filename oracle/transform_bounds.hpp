/// @file transform_bounds.hpp
/// @brief What bounds the rounding of rungs that do with fewer multiplications: by Winograd's
/// transforms, or by Fourier's in float.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/reference.hpp"

namespace convladder {

/// Whether such tiles of Winograd's compute it. Stride and dilation are 1; and F(m x m, 3 x 3) is
/// for filters of 3 x 3, pieces of three taps for 1 to 6 rows of 4 to 6.
bool winograd_takes(const Conv2dProblem& conv, WinogradTile tile);

/// The room that exact data leave for it, see headroom(). F(4 x 4, 3 x 3) adds products of
/// transformed numbers: nine times the output, up to 144 times as much in between, with six bits
/// behind the point; F(3 x 3, 4 x 4) less than that, and so do the tiles over other points, whose
/// factor is divided by after each half of the transform. Random signs cancel most of it: with data
/// that leave 64 times the room of a plain sum, 2^24 is six standard deviations away or more.
std::int64_t winograd_headroom(const Conv2dProblem& conv);

/// The same for a forward pass, which may also be computed by pieces of three taps. These add up
/// products of up to 24 times what they would be by the definition, with a bit behind the point: 64
/// times is enough for all data.
std::int64_t winograd_forward_headroom(const Conv2dProblem& conv);

/// The expected values of a convolution, or of its gradient by the input, with what bounds the
/// rounding of F(m x m, 3 x 3): not the sum of |products| of an output, but
///
///     b = |A^T| [sum over c of (|G| |g| |G^T|) .* (|B^T| |d| |B|)] |A|, and |bias|,
///
/// with the matrices' absolute values, g a filter's channel, d the tile's. All that is
/// added up on the way to an output is in it, neighbours in the tile, too: what cancels in exact
/// arithmetic, but not its rounding. The longest sum is then that over the channels. The gradient
/// is a convolution of dy: channels and filters change places, and g is turned by 180 degrees.
///
/// Pieces of three taps are transformed along their row alone: their g and d are rows of numbers,
///
///     b = |A^T| [sum over channels, rows and pieces of (|G| |g|) .* (|B^T| |d|)], and |bias|,
///
/// and all these are in the longest sum.
///
/// Numbers below `least` in size are taken for that large, at each stage: what float makes of a
/// number so small is off by a unit of it, and not by a part of the number. Numbers that are not
/// finite are left out. Expected::largest is the largest number of any stage, with room for the
/// whole factors that some rungs keep until the end.
/// @param least the smallest number that is rounded by a part of itself
Expected with_winograd_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                             WinogradTile tile, double least = 0);

/// The same bound b of single outputs, as Expected has it.
struct WinogradBound {
  std::vector<double> magnitude;  ///< b of each
  std::int64_t longest_sum = 1;   ///< that over the channels
};

/// Of some outputs, each computed by itself, with least = 0.
/// @param places row-major offsets in the output, y or dx
WinogradBound winograd_bound_at(const Problem& problem, const Arrays& inputs, WinogradTile tile,
                                std::span<const std::int64_t> places);

/// The same for the gradients by weights and bias of a rung that computes by F(3 x 3, m x m): of
/// dw,
///
///     b = |A^T| [sum over tiles of (|G| |dy| |G^T|) .* (|B^T| |x| |B|)] |A|
///
/// with dy a tile's m x m numbers and x the window that it meets. Here the longest sum is that over
/// the tiles. db is a plain sum, and comes back as it is.
Expected with_winograd_gradient_bound(const Expected& expected, const Problem& problem,
                                      const Arrays& inputs, WinogradTile tile, double least = 0);

/// Of some weights, each computed by itself, with least = 0.
/// @param places row-major offsets in dw
WinogradBound winograd_gradient_bound_at(const Problem& problem, const Arrays& inputs,
                                         WinogradTile tile, std::span<const std::int64_t> places);

/// The expected values of a convolution, with what bounds the rounding of a rung that multiplies
/// spectra: not the sum of |products| of an output, but
///
///     b = sum over c of ||x|| ||g||, and |bias|,
///
/// with the Euclidean norms of channel c of the image and of the filter. A transform changes no
/// norm but by a constant, so that each of its passes adds rounding errors of 2^-24 of it
/// (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 24.1), which the
/// product and the transform back spread over all outputs. Two images that are transformed as one
/// complex image share their norm: x is images 2 i and 2 i + 1. Its grid is that of y: the product
/// of the lowest bits of x and of the weights, or the bias's.
///
/// `least` and numbers that are not finite: as above, of the frequencies of a tile, and of their
/// products. Expected::largest is what a transform's sum, a product of two, or the sum back may
/// become: with the sum of a channel's sizes in place of its norm.
Expected with_fourier_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                            double least = 0);

/// The same for a rung whose transforms are in double: the sum of |products| of an output, and what
/// such transforms add in units of float's rounding,
///
///     2 (21 p + 4 + C) 2^-53 [sum over c of ||x|| sqrt(R S) ||g||],
///
/// with p = log2 of the points of a padded image. Half of it is the worst case of three transforms
/// (Higham 2002, theorem 24.2); half, what rungs set to 0 as they cannot tell it from noise.
Expected with_double_fourier_bound(const Expected& expected, const Problem& problem,
                                   const Arrays& inputs);

/// The same bound b of single outputs, as Expected has it, each computed by itself.
/// @param places row-major offsets in y
std::vector<double> fourier_bound_at(const Problem& problem, const Arrays& inputs,
                                     std::span<const std::int64_t> places);

/// Passes of a transform of the largest tile, 64 x 64: those of Expected::passes.
inline constexpr int kFourierPasses = 12;

}  // namespace convladder
