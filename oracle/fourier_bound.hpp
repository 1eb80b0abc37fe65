/// @file fourier_bound.hpp
/// @brief What bounds the rounding of convolutions by Fourier transforms in float.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/reference.hpp"

namespace convladder {

/// The expected values of a convolution, with what bounds the rounding of a rung that multiplies
/// spectra: not the sum of |products| of an output, but
///
///     b = sum over c of ||x|| ||g||, and |bias|,
///
/// with the Euclidean norms of channel c of the image and of the filter. A transform changes no
/// norm but by a constant, so that each of its passes adds rounding errors of 2^-24 of it
/// (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 24.1), which the
/// product and the transform back spread over all outputs. Two images that are transformed as one
/// complex image share their norm: x is images 2 i and 2 i + 1.
Expected with_fourier_bound(const Expected& expected, const Problem& problem, const Arrays& inputs);

/// The same bound b of single outputs, as Expected has it, each computed by itself.
/// @param places row-major offsets in y
std::vector<double> fourier_bound_at(const Problem& problem, const Arrays& inputs,
                                     std::span<const std::int64_t> places);

/// Passes of a transform of the largest tile, 64 x 64: those of Expected::passes.
inline constexpr int kFourierPasses = 12;

}  // namespace convladder
