/// @file conv2d_products.hpp
/// @brief All products of a convolution: the forward pass and both gradients sum over them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/parallel.hpp"

namespace convladder::oracle {

/// Visits all products of the convolution that belong to image n and output channel k, row by row:
/// visit(x offset, weight offset, y offset, count) represents `count` products with one weight;
/// consecutive products advance x by stride.w elements and y by 1. Both gradients and the forward
/// pass sum over these products.
template <class Visit>
void for_each_row_of_products(const Conv2dProblem& conv, int n, int k, const Visit& visit) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W}, y_at{conv.K, conv.P, conv.Q};
  const Index4 w_at{group_c, conv.R, conv.S};
  for (int c = 0; c < group_c; ++c) {
    for (int r = 0; r < conv.R; ++r) {
      for (int p = 0; p < conv.P; ++p) {
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        if (h < 0 || h >= conv.H) continue;
        for (int s = 0; s < conv.S; ++s) {
          // Output q reads x at w = q * stride - before, if that is one of its W columns.
          const int before = conv.pad.left - s * conv.dilation.w;
          const int q = before <= 0 ? 0 : ceil_div(before, conv.stride.w);
          const int w = q * conv.stride.w - before;
          if (q >= conv.Q || w >= conv.W) continue;
          const int count = std::min(conv.Q - q, (conv.W - 1 - w) / conv.stride.w + 1);
          visit(x_at(n, k / group_k * group_c + c, h, w), w_at(k, c, r, s), y_at(n, k, p, q),
                count);
        }
      }
    }
  }
}

}  // namespace convladder::oracle
