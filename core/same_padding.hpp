/// @file same_padding.hpp
/// @brief The padding "same" of deep learning libraries, as numbers of zeros.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/im2col_problem.hpp"

namespace convladder {

/// The padding with which each axis has ceil(size / stride) outputs (at stride 1, as many as
/// inputs): max((ceil(size / stride) - 1) * stride + extent of the filter - size, 0) zeros, half of
/// them before the input; if the number is odd, the additional zero is after it (at the bottom, at
/// the right). This is TensorFlow's "SAME" for all strides, and PyTorch's 'same' for stride 1.
///
/// For sizes that validated() rejects, there is no padding.
/// @throws BadInput if it would have 2^31 zeros or more
Padding same_padding(const Conv2dProblem& problem);

/// The same problem with that padding along each axis; see same_padding().
Im2colProblem with_same_padding(Im2colProblem problem);

}  // namespace convladder
