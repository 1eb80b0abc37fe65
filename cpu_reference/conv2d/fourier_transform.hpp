/// @file fourier_transform.hpp
/// @brief The discrete Fourier transform of an image and of a filter, and the error of a
/// convolution by it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/complex.hpp"
#include "core/conv2d_problem.hpp"

namespace convladder::cpu_reference::conv2d {

/// An element of an image or of its spectrum.
using Point = Complex<double>;

/// The extents of an image or its spectrum; both are powers of two.
struct Extents {
  std::int64_t h, w;                             ///< Rows and columns.
  std::int64_t points() const { return h * w; }  ///< Total number of points.
};

/// The transform of lines of one length, in place; see cpu_reference/fft/radix2.cpp.
class Transform {
 public:
  /// @param length a power of two
  explicit Transform(std::int64_t length)
      : length_(length), line_(static_cast<std::size_t>(length)) {
    for (std::int64_t m = 0; m < length / 2; ++m)
      roots_.push_back(root_of_unity<double>(m, length));
    for (std::int64_t i = 0, j = 0; i < length; ++i) {  // j with its bits reversed
      reversed_.push_back(static_cast<std::size_t>(j));
      std::int64_t bit = length / 2;
      for (; bit != 0 && (j & bit) != 0; bit /= 2) j -= bit;
      j += bit;
    }
  }

  /// @param apart stride between two points of the line
  void operator()(Point* points, std::int64_t apart) {
    for (std::int64_t i = 0; i < length_; ++i)
      line_[reversed_[static_cast<std::size_t>(i)]] = points[i * apart];
    const auto length = static_cast<std::size_t>(length_);
    for (std::size_t half = 1; half < length; half *= 2) {
      for (std::size_t begin = 0; begin < length; begin += 2 * half) {
        for (std::size_t k = 0; k < half; ++k) {
          const Point even = line_[begin + k];
          const Point odd = line_[begin + half + k] * roots_[k * (length / (2 * half))];
          line_[begin + k] = even + odd;
          line_[begin + half + k] = even - odd;
        }
      }
    }
    for (std::int64_t i = 0; i < length_; ++i)
      points[i * apart] = line_[static_cast<std::size_t>(i)];
  }

 private:
  std::int64_t length_;
  std::vector<Point> line_, roots_;
  std::vector<std::size_t> reversed_;
};

/// Transforms rows, then columns.
class Transform2d {
 public:
  /// Extents of the images.
  explicit Transform2d(Extents extents) : extents_(extents), across_(extents.w), down_(extents.h) {}

  /// @param rows the number of leading rows that may be nonzero
  void operator()(Point* points, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i) across_(points + i * extents_.w, 1);
    for (std::int64_t j = 0; j < extents_.w; ++j) down_(points + j, extents_.w);
  }

 private:
  Extents extents_;
  Transform across_, down_;
};

/// The spectrum of one channel of a filter, and the sum of the magnitudes of its weights.
/// @param weights [R][S] @param filter [full.h][full.w]
inline double transform_filter(const Conv2dProblem& conv, const float* weights,
                               Transform2d& transform, Extents full, Point* filter) {
  std::fill(filter, filter + full.points(), Point{});
  double magnitudes = 0;
  for (int r = 0; r < conv.R; ++r) {
    for (int s = 0; s < conv.S; ++s, ++weights) {
      const std::int64_t i = std::int64_t{r} * conv.dilation.h,
                         j = std::int64_t{s} * conv.dilation.w;
      filter[i * full.w + j].re = *weights;
      magnitudes += std::abs(double{*weights});
    }
  }
  transform(filter, std::int64_t{conv.R - 1} * conv.dilation.h + 1);
  return magnitudes;
}

/// Bound of an output's error, relative to an image's norm times the sum of a filter's magnitudes,
/// summed over channels. The log2(L) passes of a transform have an error of at most 7 log2(L) u of
/// a line's norm, u = 2^-53 (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
/// theorem 24.2). The bound covers three transforms, the products and the sum over channels. For
/// integers, the error is far too small to change the rounding to float.
inline double noise(Extents extents, int channels, double norms) {
  constexpr double kU = std::numeric_limits<double>::epsilon() / 2;
  const double passes = std::log2(static_cast<double>(extents.points()));
  return kU * (3 * 7 * passes + 4 + channels) * norms;
}

}  // namespace convladder::cpu_reference::conv2d
