/// @file fft_whole_image.cpp
/// @brief FFT convolution: the interpolation points are roots of unity, a whole image is one tile.
///
/// - Before: winograd_4x4.cpp
/// - After: fft_overlap_save.cpp
///
/// **The idea.** Winograd's matrices evaluate polynomials at a few small points. With the L roots
/// of unity as points, the evaluation is the discrete Fourier transform, which has a fast algorithm
/// (cpu_reference/fft/radix2.cpp). With one point per pixel, the tile is the whole image:
///
///     y[p] = sum over r of x[(p + r) mod L] w[r]        Y[f] = X[f] conj(W[f])
///
/// If L is at least the length of the padded line, no output wraps around. As y is real, its
/// inverse transform is a forward transform of the conjugate: y = re(DFT(conj(X) W)) / L.
///
///     x  [H x W] --DFT--> X --.
///                              conj(X) W, summed over channels --DFT--> y    no loop over r, s
///     w  [R x S] --DFT--> W --'
///
/// **Rounding.** The transforms are in double. Results below the error bound are set to 0.
/// **Expect.** N C + K C / G + N K transforms, and one complex product per pixel and channel, for
/// any filter size: 31 x 31 takes as long as 3 x 3.
/// **Costs.** Lines are padded to powers of two. Spectra take 16 bytes per point. NaN and infinity
/// reach every output of the image. Supports stride 1, layout NCHW and float32 only.
/// **Try.** Combine two channels into one complex image. How are their spectra separated?
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cpu_reference/conv2d/fourier_transform.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  return {};
}

/// Points along an axis: a power of two that holds all pixels that any window reads.
std::int64_t points_along(int outputs, int taps, int dilation) {
  const std::int64_t seen = outputs + std::int64_t{taps - 1} * dilation;
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(seen)));
}

Extents extents(const Conv2dProblem& conv) {
  return {points_along(conv.P, conv.R, conv.dilation.h),
          points_along(conv.Q, conv.S, conv.dilation.w)};
}

/// The spectra of a group's channels in all images, one spectrum of a filter, and a sum per image.
std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const auto [h, w] = extents(conv);
  if (conv.N == 0) return 0;
  const std::int64_t spectra = std::int64_t{conv.N} * (conv.C / conv.groups + 1) + 1;
  return static_cast<std::size_t>(
      checked_product({spectra, h, w, sizeof(Point)}, "bytes of spectra"));
}

/// The spectrum of one channel, and its norm: the square root of the sum of its squares.
/// @param x [H][W] @param image [full.h][full.w]
double transform_image(const Conv2dProblem& conv, const float* x, Transform2d& transform,
                       Extents full, Point* image) {
  std::fill(image, image + full.points(), Point{});
  double squares = 0;
  for (int h = 0; h < conv.H; ++h) {
    for (int w = 0; w < conv.W; ++w, ++x) {
      const std::int64_t i = std::int64_t{conv.pad.top} + h, j = std::int64_t{conv.pad.left} + w;
      if (i >= full.h || j >= full.w) continue;  // no window reads it
      image[i * full.w + j].re = *x;
      squares += double{*x} * *x;
    }
  }
  transform(image, std::min(full.h, std::int64_t{conv.pad.top} + conv.H));
  return std::sqrt(squares);
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  float* y = arrays.y;

  if (conv.N == 0) return;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Extents full = extents(conv);
  const std::int64_t points = full.points();
  Point* const images = context.workspace_as<Point>();                   // [N][group_c][points]
  Point* const sums = images + std::int64_t{conv.N} * group_c * points;  // [N][points]
  Point* const filter = sums + conv.N * points;                          // [points]
  std::vector<double> norms(static_cast<std::size_t>(std::int64_t{conv.N} * group_c));
  Transform2d transform(full);
  const Index4 x_at{conv.C, conv.H, conv.W}, w_at{group_c, conv.R, conv.S};
  const Index4 y_at{conv.K, conv.P, conv.Q};

  for (int g = 0; g < conv.groups; ++g) {
    for (std::int64_t i = 0; i < std::int64_t{conv.N} * group_c; ++i) {
      const int n = static_cast<int>(i / group_c), c = g * group_c + static_cast<int>(i % group_c);
      norms[static_cast<std::size_t>(i)] =
          transform_image(conv, x + x_at(n, c, 0, 0), transform, full, images + i * points);
    }
    for (int k = g * group_k; k < (g + 1) * group_k; ++k) {
      std::vector<double> products(static_cast<std::size_t>(conv.N));  // sum over channels of
                                                                       // norms, see noise()
      std::fill(sums, sums + conv.N * points, Point{});
      for (int c = 0; c < group_c; ++c) {
        const double magnitudes =
            transform_filter(conv, weights + w_at(k, c, 0, 0), transform, full, filter);
        for (int n = 0; n < conv.N; ++n) {
          const std::int64_t i = std::int64_t{n} * group_c + c;
          const Point* const image = images + i * points;
          Point* const sum = sums + n * points;
          for (std::int64_t f = 0; f < points; ++f)
            sum[f] = sum[f] + Point{image[f].re, -image[f].im} * filter[f];
          products[static_cast<std::size_t>(n)] += norms[static_cast<std::size_t>(i)] * magnitudes;
        }
      }
      for (int n = 0; n < conv.N; ++n) {
        Point* const sum = sums + n * points;
        transform(sum, full.h);
        const double error = noise(full, group_c, products[static_cast<std::size_t>(n)]);
        const float bias_k = bias ? bias[k] : 0.0f;
        for (int p = 0; p < conv.P; ++p) {
          for (int q = 0; q < conv.Q; ++q) {
            const double found = sum[p * full.w + q].re / static_cast<double>(points);
            const float value = std::abs(found) <= error ? 0.0f : static_cast<float>(found);
            y[y_at(n, k, p, q)] = activated(conv.activation, value + bias_k);
          }
        }
      }
    }
  }
}

}  // namespace

extern const Implementation<Conv2dArrays> fft_whole_image = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::cpu_reference::conv2d
