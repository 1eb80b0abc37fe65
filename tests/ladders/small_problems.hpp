/// @file small_problems.hpp
/// @brief Which of the small problems a sanitizer gets.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tests/problems.hpp"

namespace convladder::testing {

inline constexpr const char* kTileSweep = "tile sweep";

/// The small problems that a sanitizer gets, which makes everything several times slower: each kind
/// of edge once, where there are several.
inline constexpr std::string_view kForSanitizers[] = {
    "minimal",
    "1x1 output",
    "primes",
    "uncovered tail pixels",
    "gcd(stride, dilation) = 2",
    "output larger than the input",
    "windows wholly in the padding",
    "empty batch",
    "depthwise, multiplier 2, dilation 2",
    "1-D as 2-D",
    "asymmetric padding",
    "each parameter another",
    "one tall filter",
    "filter 6x6, six channels",
    "1x1 filter, many channels",
    "groups of 3 and 5 channels",
    "padding wider than the filter",
    "depthwise, planes of odd size",
    "depthwise 5x5, multiplier 2, asymmetric padding",
    "depthwise 5x5, stride 2",
    "filter 5x20, stride 2, one channel",
    "deep and narrow",
    "arrays at 16 n + 4 bytes",
    kTileSweep,
    "W % 4 = 2, H*W % 4 = 2",
    "ReLU after a bias",
    "ReLU, rows of fours",
    "ReLU, depthwise",
    "ReLU of few and long sums",
    "3-D, each parameter another",
    "3-D, uncovered tails",
    "3-D, empty batch",
    "1-D, minimal",
    "1-D, gcd(stride, dilation) = 2",
    "1-D, windows in the padding",
    "1-D, more windows than pixels, all in fours",
    "2-D, fours, dilated",
    "1-D, many channels",
    "1x1 filter, padding on the right",
    "two blocks, few pixels",
    "two blocks, two groups",
    "zeros between, a row and a column more of zeros",
    "zeros between, channels not in eights",
    "full tiles, narrow strips alone",
    "full tiles, wide strips alone",
};

/// Whether a small problem with this name is among them.
inline Size size_of_small(std::string_view name) {
  return std::ranges::find(kForSanitizers, name) != std::end(kForSanitizers) ? Size::small
                                                                             : Size::full;
}

}  // namespace convladder::testing
