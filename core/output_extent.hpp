/// @file output_extent.hpp
/// @brief The number of outputs of a window that moves along an axis.
#pragma once

#include "core/arithmetic.hpp"

namespace convladder {

/// The number of outputs along one axis: floor((size + pads - window) / stride) + 1; may be < 1.
/// (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, relation 15.)
HOST_DEVICE constexpr std::int64_t output_extent(std::int64_t size, std::int64_t pad_before,
                                                 std::int64_t pad_after, std::int64_t taps,
                                                 std::int64_t stride, std::int64_t dilation) {
  return floor_div(size + pad_before + pad_after - window_extent(taps, dilation), stride) + 1;
}

}  // namespace convladder
