/// @file transform_bounds.hpp
/// @brief Bounds for the rounding of rungs with fewer multiplications: by Winograd's transforms, or
/// by Fourier transforms in float.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/reference.hpp"

namespace convladder {

/// Whether such Winograd tiles compute it. Stride and dilation are 1; F(m x m, 3 x 3) is for
/// filters of 3 x 3, pieces of three taps for 1 to 6 rows of 4 to 6 taps.
bool winograd_takes(const Conv2dProblem& conv, WinogradTile tile);

/// The room that exact data leave for it, see headroom(). F(4 x 4, 3 x 3) adds products of
/// transformed numbers: nine times the output, up to 144 times as much in between, with six
/// fraction bits; F(3 x 3, 4 x 4) needs less, and so do the tiles over other points, which divide
/// by their factor after each half of the transform. Random signs cancel most of it: with data that
/// leave 64 times the room of a plain sum, 2^24 is six standard deviations away or more.
std::int64_t winograd_headroom(const Conv2dProblem& conv);

/// The same for a forward pass, which may also be computed by pieces of three taps. These add
/// products of up to 24 times those of the definition, with one fraction bit: 64 times is
/// sufficient for all data.
std::int64_t winograd_forward_headroom(const Conv2dProblem& conv);

/// The expected values of a convolution, or of its gradient with respect to the input, with the
/// bound of the rounding of F(m x m, 3 x 3). Instead of the sum of |products| of an output it is
///
///     b = |A^T| [sum over c of (|G| |g| |G^T|) .* (|B^T| |d| |B|)] |A|, and |bias|,
///
/// with the matrices' absolute values, g a filter's channel, d the tile's. It includes all
/// intermediate terms of an output, also those of its neighbours in the tile, which cancel in exact
/// arithmetic although their rounding errors do not. The longest sum is then that over the
/// channels. The gradient is a convolution of dy: channels and filters are exchanged, and g is
/// rotated by 180 degrees.
///
/// Pieces of three taps are transformed along their row only: their g and d are rows of numbers,
///
///     b = |A^T| [sum over channels, rows and pieces of (|G| |g|) .* (|B^T| |d|)], and |bias|,
///
/// and all these are in the longest sum.
///
/// Numbers with an absolute value below `least` are treated like `least` at each stage: float
/// rounds such small numbers with an absolute error. Non-finite numbers are omitted.
/// Expected::largest is the largest number of any stage, with room for the integer factors that
/// some rungs keep until the end.
/// @param least the smallest number with a relative rounding error
Expected with_winograd_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                             WinogradTile tile, double least = 0);

/// The same bound b of single outputs, as in Expected.
struct WinogradBound {
  std::vector<double> magnitude;  ///< b of each
  std::int64_t longest_sum = 1;   ///< that over the channels
};

/// For some outputs, each computed individually, with least = 0.
/// @param places row-major offsets in the output, y or dx
WinogradBound winograd_bound_at(const Problem& problem, const Arrays& inputs, WinogradTile tile,
                                std::span<const std::int64_t> places);

/// The same for the gradients with respect to weights and bias of a rung that uses F(3 x 3, m x m):
/// for dw,
///
///     b = |A^T| [sum over tiles of (|G| |dy| |G^T|) .* (|B^T| |x| |B|)] |A|
///
/// with dy a tile's m x m elements and x the window that it meets. Here the longest sum is that
/// over the tiles. db is a plain sum and is returned unchanged.
Expected with_winograd_gradient_bound(const Expected& expected, const Problem& problem,
                                      const Arrays& inputs, WinogradTile tile, double least = 0);

/// For some weights, each computed individually, with least = 0.
/// @param places row-major offsets in dw
WinogradBound winograd_gradient_bound_at(const Problem& problem, const Arrays& inputs,
                                         WinogradTile tile, std::span<const std::int64_t> places);

/// The expected values of a convolution, with the bound of the rounding of a rung that multiplies
/// spectra. Instead of the sum of |products| of an output it is
///
///     b = sum over c of ||x|| ||g||, and |bias|,
///
/// with the Euclidean norms of channel c of the image and of the filter. A transform changes a norm
/// only by a constant, so each of its passes adds rounding errors of 2^-24 of it (Higham, "Accuracy
/// and Stability of Numerical Algorithms", 2002, section 24.1), which the product and the inverse
/// transform distribute over all outputs. Two images that are transformed as one complex image
/// share their norm: x is images 2 i and 2 i + 1. Its grid is that of y: the product of the lowest
/// bits of x and of the weights, or that of the bias.
///
/// `least` and non-finite numbers: as above, for the frequencies of a tile and their products.
/// Expected::largest bounds a transform's sum, a product of two, and the inverse sum, with the sum
/// of a channel's absolute values instead of its norm.
Expected with_fourier_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                            double least = 0);

/// The same for a rung whose transforms are in double: the sum of |products| of an output, plus the
/// error of such transforms in units of float's rounding,
///
///     2 (21 p + 4 + C) 2^-53 [sum over c of ||x|| sqrt(R S) ||g||],
///
/// with p = log2 of the points of a padded image. Half of it is the worst case of three transforms
/// (Higham 2002, theorem 24.2); half is the threshold below which rungs set results to 0.
Expected with_double_fourier_bound(const Expected& expected, const Problem& problem,
                                   const Arrays& inputs);

/// The same bound b of single outputs, as in Expected, each computed individually.
/// @param places row-major offsets in y
std::vector<double> fourier_bound_at(const Problem& problem, const Arrays& inputs,
                                     std::span<const std::int64_t> places);

/// Passes of a transform of the largest tile, 64 x 64: like Expected::passes.
inline constexpr int kFourierPasses = 12;

}  // namespace convladder
