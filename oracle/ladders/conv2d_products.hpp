/// @file conv2d_products.hpp
/// @brief All products of a convolution: the forward pass and both gradients sum over them.
#pragma once

#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/parallel.hpp"

namespace convladder::oracle {

/// Visits all products of the convolution that belong to image n and output channel k:
/// visit(x offset, weight offset, y offset). Both gradients and the forward pass sum over these
/// triples.
template <class Visit>
void for_each_product(const Conv2dProblem& conv, int n, int k, const Visit& visit) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W}, y_at{conv.K, conv.P, conv.Q};
  const Index4 w_at{group_c, conv.R, conv.S};
  for (int c = 0; c < group_c; ++c) {
    for (int r = 0; r < conv.R; ++r) {
      for (int p = 0; p < conv.P; ++p) {
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        if (h < 0 || h >= conv.H) continue;
        for (int s = 0; s < conv.S; ++s) {
          const std::int64_t weight = w_at(k, c, r, s);
          for (int q = 0; q < conv.Q; ++q) {
            const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
            if (w < 0 || w >= conv.W) continue;
            visit(x_at(n, k / group_k * group_c + c, h, w), weight, y_at(n, k, p, q));
          }
        }
      }
    }
  }
}

}  // namespace convladder::oracle
