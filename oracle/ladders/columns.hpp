/// @file columns.hpp
/// @brief The elements of im2col's matrix, and the element of x that each copies.
#pragma once

#include "core/arithmetic.hpp"
#include "core/im2col_problem.hpp"
#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {

/// Visits all (col offset, x offset) pairs of image n and channel c; x offset is -1 in the padding.
template <class Visit>
void for_each_column_element(const Im2colProblem& p, std::int64_t n, std::int64_t c,
                             const Visit& visit) {
  const auto input = [](const WindowAxis& axis, int window, int tap) {
    const int i = window * axis.stride - axis.pad_before + tap * axis.dilation;
    return i >= 0 && i < axis.size ? i : -1;
  };
  const Index4 row_at{p.depth.kernel, p.height.kernel, p.width.kernel};
  const Index4 window_at{p.depth.out, p.height.out, p.width.out};
  const Index4 pixel_at{p.depth.size, p.height.size, p.width.size};
  for (int t = 0; t < p.depth.kernel; ++t) {
    for (int r = 0; r < p.height.kernel; ++r) {
      for (int s = 0; s < p.width.kernel; ++s) {
        const std::int64_t row = row_at(static_cast<int>(c), t, r, s);
        for (int o = 0; o < p.depth.out; ++o) {
          const int d = input(p.depth, o, t);
          for (int u = 0; u < p.height.out; ++u) {
            const int h = input(p.height, u, r);
            for (int v = 0; v < p.width.out; ++v) {
              const int w = input(p.width, v, s);
              const std::int64_t col = (n * p.rows() + row) * p.columns() + window_at(0, o, u, v);
              visit(col, d < 0 || h < 0 || w < 0
                             ? -1
                             : (n * p.C + c) * p.channel_size() + pixel_at(0, d, h, w));
            }
          }
        }
      }
    }
  }
}

/// The output's values before the run, by its request; a copy has no rounding error.
inline void start_from_old_values(Expected& to, const Arrays& inputs, Request request) {
  if (request == Request::write) return;
  const auto old = inputs.at("into").as<float>();
  for (std::size_t i = 0; i < old.size(); ++i) {
    to.values[i] = old[i];
    if (!to.magnitude.empty()) to.magnitude[i] = std::abs(static_cast<double>(old[i]));
  }
}

/// The old value of an element, if the request adds to it.
inline ExpectedElement old_value(const Im2colProblem& p, const Arrays& inputs, std::int64_t place) {
  ExpectedElement sum;
  if (p.request != Request::write) add(sum, at(inputs.at("into").as<float>(), place), 1.0);
  return sum;
}

}  // namespace convladder::oracle
