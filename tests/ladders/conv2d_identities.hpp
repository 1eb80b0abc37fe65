/// @file conv2d_identities.hpp
/// @brief What the identities of convolutions and their gradients are made of.
#pragma once

#include <functional>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "tests/ladders/arrays.hpp"

namespace convladder::testing {

inline std::vector<Conv2dProblem> conv_bases() {
  return {
      validated(Conv2dProblem{.N = 2,
                              .C = 4,
                              .H = 11,
                              .W = 14,
                              .K = 6,
                              .R = 3,
                              .S = 3,
                              .pad = {1, 0, 2, 1},
                              .stride = {2, 1},
                              .dilation = {1, 2}}),
      validated(
          Conv2dProblem{.C = 3, .H = 8, .W = 35, .K = 5, .R = 2, .S = 5, .pad = {0, 1, 3, 2}}),
      validated(Conv2dProblem{
          .N = 2, .C = 6, .H = 9, .W = 10, .K = 4, .R = 3, .S = 2, .stride = {1, 3}, .groups = 2}),
      validated(Conv2dProblem{.N = 3,
                              .C = 5,
                              .H = 12,
                              .W = 17,
                              .K = 5,
                              .R = 3,
                              .S = 3,
                              .pad = {2, 2, 2, 2},
                              .dilation = {2, 2},
                              .groups = 5}),
      validated(Conv2dProblem{.C = 17, .H = 7, .W = 9, .K = 19}),
      validated(
          Conv2dProblem{.C = 5, .H = 20, .W = 36, .K = 7, .R = 3, .S = 3, .pad = {1, 1, 1, 1}}),
      validated(Conv2dProblem{.N = 2,
                              .C = 2,
                              .H = 13,
                              .W = 13,
                              .K = 3,
                              .R = 2,
                              .S = 2,
                              .pad = {0, 3, 1, 0},
                              .stride = {4, 3}}),
      // More channels and filters than 64, for rungs that cut such sums; channels in eights, for
      // those whose operands only TMA loads.
      validated(Conv2dProblem{.C = 72, .H = 3, .W = 3, .K = 70, .pad = {0, 1, 0, 1}}),
      // One tap and a stride: most of x is not read, and its gradient is zero.
      validated(Conv2dProblem{.C = 3, .H = 4, .W = 5, .K = 4, .stride = {2, 2}}),
  };
}

inline Shape x_shape(const Conv2dProblem& p) { return {p.N, p.C, p.H, p.W}; }
inline Shape w_shape(const Conv2dProblem& p) { return {p.K, p.C / p.groups, p.R, p.S}; }
inline Shape y_shape(const Conv2dProblem& p) { return {p.N, p.K, p.P, p.Q}; }

/// The same convolution with the padding moved into the input.
inline Conv2dProblem unpadded(Conv2dProblem p) {
  p.H += p.pad.top + p.pad.bottom;
  p.W += p.pad.left + p.pad.right;
  p.pad = {};
  return validated(p);
}

inline Array pad_by_hand(const Conv2dProblem& p, const Array& x) {
  const View4 from(x);
  return make4(x_shape(unpadded(p)), [&](int n, int c, int h, int w) {
    const int row = h - p.pad.top, column = w - p.pad.left;
    return row < 0 || row >= p.H || column < 0 || column >= p.W ? 0.0f : from(n, c, row, column);
  });
}

inline Array crop_by_hand(const Conv2dProblem& p, const Array& padded) {
  const View4 from(padded);
  return make4(x_shape(p), [&](int n, int c, int h, int w) {
    return from(n, c, h + p.pad.top, w + p.pad.left);
  });
}

/// The same convolution with the dilation written into the filter as zeros.
inline Conv2dProblem undilated(Conv2dProblem p) {
  p.R = static_cast<int>(window_extent(p.R, p.dilation.h));
  p.S = static_cast<int>(window_extent(p.S, p.dilation.w));
  p.dilation = {};
  return validated(p);
}

inline Array stuff_filter(const Conv2dProblem& p, const Array& weights) {
  const View4 from(weights);
  return make4(w_shape(undilated(p)), [&](int k, int c, int r, int s) {
    const bool tap = r % p.dilation.h == 0 && s % p.dilation.w == 0;
    return tap ? from(k, c, r / p.dilation.h, s / p.dilation.w) : 0.0f;
  });
}

inline Array taps_of_filter(const Conv2dProblem& p, const Array& stuffed) {
  const View4 from(stuffed);
  return make4(w_shape(p), [&](int k, int c, int r, int s) {
    return from(k, c, r * p.dilation.h, s * p.dilation.w);
  });
}

inline Conv2dProblem with_stride_1(Conv2dProblem p) {
  p.stride = {};
  return validated(p);
}

/// The outputs of the convolution with stride 1 that remain with p's stride.
inline Array subsample(const Conv2dProblem& p, const Array& dense) {
  const View4 from(dense);
  return make4(y_shape(p), [&](int n, int k, int row, int column) {
    return from(n, k, row * p.stride.h, column * p.stride.w);
  });
}

/// y with zeros where the stride leaves outputs out.
inline Array stuff_output(const Conv2dProblem& p, const Array& y) {
  const View4 from(y);
  return make4(y_shape(with_stride_1(p)), [&](int n, int k, int row, int column) {
    const bool kept = row % p.stride.h == 0 && column % p.stride.w == 0 && row / p.stride.h < p.P &&
                      column / p.stride.w < p.Q;
    return kept ? from(n, k, row / p.stride.h, column / p.stride.w) : 0.0f;
  });
}

inline Conv2dProblem without_groups(Conv2dProblem p) {
  p.groups = 1;
  return validated(p);
}

/// The grouped filter as a dense one: zero between channels of different groups.
inline Array block_diagonal(const Conv2dProblem& p, const Array& weights) {
  const View4 from(weights);
  const int group_c = p.C / p.groups, group_k = p.K / p.groups;
  return make4(w_shape(without_groups(p)), [&](int k, int c, int r, int s) {
    return c / group_c == k / group_k ? from(k, c % group_c, r, s) : 0.0f;
  });
}

inline Array diagonal_blocks(const Conv2dProblem& p, const Array& dense) {
  const View4 from(dense);
  const int group_c = p.C / p.groups, group_k = p.K / p.groups;
  return make4(w_shape(p), [&](int k, int c, int r, int s) {
    return from(k, k / group_k * group_c + c, r, s);
  });
}

/// Channels in another order inside of each group.
struct ChannelOrder {
  std::vector<int> order;  // of one group
  int operator()(int channel) const {
    const int size = static_cast<int>(order.size());
    return channel / size * size + order[at(channel % size)];
  }
};

inline Array permute_axis(const Array& array, int axis, const ChannelOrder& order) {
  const View4 from(array);
  return make4(array.shape(), [&](int a, int b, int c, int d) {
    return axis == 0 ? from(order(a), b, c, d) : from(a, order(b), c, d);
  });
}

inline Conv2dProblem of_one_image(Conv2dProblem p) {
  p.N = 1;
  return validated(p);
}

/// The output coordinate that reads input coordinate i through tap `tap`, or -1.
inline int output_of(int i, int pad, int tap, int stride, int dilation, int outputs) {
  const int shifted = i + pad - tap * dilation;
  if (shifted < 0 || shifted % stride != 0 || shifted / stride >= outputs) return -1;
  return shifted / stride;
}

}  // namespace convladder::testing
