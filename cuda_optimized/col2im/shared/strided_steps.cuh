/// @file strided_steps.cuh
/// @brief Which windows read a pixel: the first of them, and equal steps to the others;
/// col2im_strided_steps.cu explains it.
#pragma once

#include <limits>
#include <numeric>
#include <utility>

#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::col2im {

/// Along one axis: the windows that read one pixel, in steps that are the same for every pixel.
struct WindowSteps {
  int window_step;  ///< From such a window to the next: dilation / gcd(stride, dilation).
  int tap_step;     ///< From its tap back to that of the next window: stride / gcd.
  int inverse;      ///< tap_step * inverse = 1 modulo window_step
  int extent;       ///< Positions from a window's first tap to its last.
  FastDivision gcd, stride, dilation, modulus;  ///< Division by these; modulus is window_step.
};

/// The modular inverse of a, by the extended Euclidean algorithm; gcd(a, modulus) is 1.
inline int inverse_of(int a, int modulus) {
  std::int64_t r0 = modulus, r1 = a % modulus, t0 = 0, t1 = 1;  // a * t = r modulo `modulus`
  while (r1 != 0) {
    const std::int64_t quotient = r0 / r1;
    r0 = std::exchange(r1, r0 - quotient * r1);
    t0 = std::exchange(t1, t0 - quotient * t1);
  }
  return static_cast<int>((t0 + modulus) % modulus);
}

/// The steps along one axis.
inline WindowSteps window_steps(const WindowAxis& axis) {
  const int gcd = std::gcd(axis.stride, axis.dilation);
  const int window_step = axis.dilation / gcd, tap_step = axis.stride / gcd;
  return {.window_step = window_step,
          .tap_step = tap_step,
          .inverse = inverse_of(tap_step, window_step),
          .extent = static_cast<int>(window_extent(axis.kernel, axis.dilation)),
          .gcd = FastDivision(gcd),
          .stride = FastDivision(axis.stride),
          .dilation = FastDivision(axis.dilation),
          .modulus = FastDivision(window_step)};
}

/// The windows that read a pixel: window, window + window_step, ... The first of them reads it as
/// tap `tap`, the next one as tap - tap_step, and so on.
struct Readers {
  int window,  ///< The first of them; 0 if there are none.
      tap,     ///< As which it reads the pixel; 0 if there are none.
      count;   ///< Windows that read the pixel.
};

/// @param at the pixel, counted with padding
__device__ inline Readers readers_of(const WindowAxis& axis, const WindowSteps& steps, int at) {
  const auto modulo = [&](int n) { return steps.modulus.remainder(n, steps.modulus.quotient(n)); };
  const int over_gcd = steps.gcd.quotient(at);
  if (steps.gcd.remainder(at, over_gcd) != 0) return {0, 0, 0};  // in the gaps of all windows
  // The windows that cover the pixel, as in col2im_batched.cu.
  int window = at < steps.extent ? 0 : steps.stride.quotient(at - steps.extent) + 1;
  const int end = min(steps.stride.quotient(at) + 1, axis.out);
  // The first of them that has a tap there.
  if (steps.window_step > 1) {
    const std::int64_t product = std::int64_t{modulo(over_gcd)} * steps.inverse;
    const int wanted = static_cast<int>(product % steps.window_step), has = modulo(window);
    window += wanted >= has ? wanted - has : wanted - has + steps.window_step;
  }
  if (window >= end) return {0, 0, 0};
  return {window, steps.dilation.quotient(at - window * axis.stride),
          steps.modulus.quotient(end - 1 - window) + 1};
}

/// The steps along each axis, and how far apart in col they lead.
struct Steps {
  WindowSteps depth, height, width;               ///< Windows and taps of a step along each axis.
  std::int64_t col_depth, col_height, col_width;  ///< Elements from a step to the next.
};

/// A step goes on by window_step windows, and back by tap_step taps.
inline Steps steps_of(const Im2colProblem& problem) {
  const WindowAxis &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns();
  const auto apart = [&](const WindowSteps& axis, std::int64_t window, std::int64_t taps) {
    return axis.window_step * window - axis.tap_step * taps * windows;
  };
  const WindowSteps by_depth = window_steps(problem.depth), by_height = window_steps(height),
                    by_width = window_steps(width);
  return {.depth = by_depth,
          .height = by_height,
          .width = by_width,
          .col_depth = apart(by_depth, std::int64_t{height.out} * width.out,
                             std::int64_t{height.kernel} * width.kernel),
          .col_height = apart(by_height, width.out, width.kernel),
          .col_width = apart(by_width, 1, 1)};
}

/// Why it does not take a problem.
inline Declined too_large_for_steps(const Im2colProblem& problem) {
  if (problem.channel_size() > std::numeric_limits<int>::max()) {
    return "2^31 or more pixels in an image's channel";
  }
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized::col2im
