/// @file fft_real.cpp
/// @brief Real FFT: two real tiles are transformed as one complex tile.
///
/// - Before: fft_overlap_save.cpp
///
/// **The idea.** Spectra are complex, but images are real: half of each transform is redundant. Two
/// tiles are combined into one complex image, x1 + i x2. Filters are real, so the convolution does
/// not mix real and imaginary parts: one transform of the pair, one multiplication by the filter's
/// spectrum and one inverse transform yield y1 + i y2.
///
///     x1 + i x2  --DFT-->  X conj(W), summed over channels  --inverse DFT-->  y1 + i y2
///
/// The inverse transform is a forward transform of the conjugate, followed by a conjugation:
/// conj(y1 + i y2) = re - i im.
///
/// **Expect.** Half of the transforms and products: 2 T^2 / (T - R + 1)^2 multiplications per
/// output and channel. With T = 16 that is 2.6 for 3 x 3 (F(4 x 4, 3 x 3): 2.25; definition: 9)
/// and 3.6 for 5 x 5 (definition: 25).
/// **Costs.** An image's last tile may have no partner. NaN and infinity spread over both tiles of
/// a pair. Supports the same problems as fft_overlap_save.
/// **Try.** Which error does x2 cause in y1 if x2 is a million times as large?
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cpu_reference/conv2d/fourier_transform.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

constexpr int kMaxReach = 32;  ///< Half of the largest tile extent.

/// Extent of a filter in pixels along its longer axis, with dilation.
std::int64_t reach(const Conv2dProblem& conv) {
  return 1 + std::max(std::int64_t{conv.R - 1} * conv.dilation.h,
                      std::int64_t{conv.S - 1} * conv.dilation.w);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (reach(conv) > kMaxReach) return "filters that reach over at most 32 pixels only";
  return {};
}

/// The decomposition of the outputs into tiles.
struct Tiles {
  Extents points;              ///< Points of a tile.
  std::int64_t rows, columns;  ///< Outputs of a tile that are kept.
  std::int64_t down, across;   ///< Tiles of an image.
  std::int64_t of_all;         ///< Tiles of all images.
};

/// Tiles of 16 x 16 points; larger ones if a filter would leave less than half of a line.
Tiles tiles_of(const Conv2dProblem& conv) {
  std::int64_t t = 16;
  while (t < 2 * reach(conv)) t *= 2;
  const std::int64_t rows = t - std::int64_t{conv.R - 1} * conv.dilation.h;
  const std::int64_t columns = t - std::int64_t{conv.S - 1} * conv.dilation.w;
  const std::int64_t down = ceil_div(std::int64_t{conv.P}, rows);
  const std::int64_t across = ceil_div(std::int64_t{conv.Q}, columns);
  return {{t, t}, rows, columns, down, across, conv.N * down * across};
}

/// The spectra of all filters, those of a group's channels for two tiles, and their sum.
std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Tiles tiles = tiles_of(conv);
  const std::int64_t group_c = conv.C / conv.groups;
  return static_cast<std::size_t>(checked_product(
      {(std::int64_t{conv.K} + 1) * group_c + 1, tiles.points.points(), sizeof(Point)},
      "bytes of spectra"));
}

/// The first output of a tile.
struct Place {
  int n, p, q;
};

Place place_of(const Tiles& tiles, std::int64_t tile) {
  return {static_cast<int>(tile / tiles.across / tiles.down),
          static_cast<int>(tile / tiles.across % tiles.down * tiles.rows),
          static_cast<int>(tile % tiles.across * tiles.columns)};
}

/// Adds part * a channel's pixels of a tile to points, and returns the sum of their squares.
/// @param part 1 or i
double add_tile(const Conv2dProblem& conv, const float* x, const Tiles& tiles, Place at, int c,
                Point part, Point* points) {
  const Index4 x_at{conv.C, conv.H, conv.W};
  double squares = 0;
  for (std::int64_t i = 0; i < tiles.points.h; ++i) {
    const std::int64_t h = at.p - std::int64_t{conv.pad.top} + i;
    if (h < 0 || h >= conv.H) continue;
    for (std::int64_t j = 0; j < tiles.points.w; ++j) {
      const std::int64_t w = at.q - std::int64_t{conv.pad.left} + j;
      if (w < 0 || w >= conv.W) continue;
      const double pixel = x[x_at(at.n, c, static_cast<int>(h), static_cast<int>(w))];
      Point& point = points[i * tiles.points.w + j];
      point = point + Point{part.re * pixel, part.im * pixel};
      squares += pixel * pixel;
    }
  }
  return squares;
}

/// Writes the outputs of a tile that lie inside of y.
/// @param part selects the real or imaginary part of `found`, which holds two tiles times the
/// number of points
/// @param error values up to this magnitude are set to 0
template <class Part>
void write_tile(const Conv2dProblem& conv, const Tiles& tiles, Place at, int k, float bias,
                double error, const Part& part, float* y) {
  const Index4 y_at{conv.K, conv.P, conv.Q};
  for (std::int64_t i = 0; i < tiles.rows && at.p + i < conv.P; ++i) {
    for (std::int64_t j = 0; j < tiles.columns && at.q + j < conv.Q; ++j) {
      const double found =
          part(i * tiles.points.w + j) / static_cast<double>(tiles.points.points());
      const float value = std::abs(found) <= error ? 0.0f : static_cast<float>(found);
      y[y_at(at.n, k, at.p + static_cast<int>(i), at.q + static_cast<int>(j))] =
          activated(conv.activation, value + bias);
    }
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  float* y = arrays.y;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Tiles tiles = tiles_of(conv);
  const std::int64_t points = tiles.points.points();
  Point* const filters = context.workspace_as<Point>();                   // [K][group_c][points]
  Point* const pair = filters + std::int64_t{conv.K} * group_c * points;  // [group_c][points]
  Point* const sum = pair + group_c * points;                             // [points]
  Transform2d transform(tiles.points);

  std::vector<double> magnitudes;  // of each filter's channels
  for (std::int64_t kc = 0; kc < std::int64_t{conv.K} * group_c; ++kc) {
    magnitudes.push_back(transform_filter(conv, weights + kc * conv.R * conv.S, transform,
                                          tiles.points, filters + kc * points));
  }

  std::vector<double> norms(static_cast<std::size_t>(group_c));
  for (std::int64_t tile = 0, next = 0; tile < tiles.of_all; tile = next) {
    // Pairs belong to one image: infinity or NaN in one image must not reach another.
    const bool both = (tile + 1) % (tiles.down * tiles.across) != 0;
    next = tile + (both ? 2 : 1);
    const Place first = place_of(tiles, tile), second = place_of(tiles, tile + 1);
    for (int g = 0; g < conv.groups; ++g) {
      for (int c = 0; c < group_c; ++c) {
        Point* const spectrum = pair + c * points;
        std::fill(spectrum, spectrum + points, Point{});
        double squares = add_tile(conv, x, tiles, first, g * group_c + c, {1, 0}, spectrum);
        if (both) squares += add_tile(conv, x, tiles, second, g * group_c + c, {0, 1}, spectrum);
        transform(spectrum, tiles.points.h);
        norms[static_cast<std::size_t>(c)] = std::sqrt(squares);
      }
      for (int k = g * group_k; k < (g + 1) * group_k; ++k) {
        double products = 0;  // sum over channels of norms, see noise()
        std::fill(sum, sum + points, Point{});
        for (int c = 0; c < group_c; ++c) {
          const std::int64_t kc = std::int64_t{k} * group_c + c;
          const Point *const spectrum = pair + c * points, *const filter = filters + kc * points;
          for (std::int64_t f = 0; f < points;
               ++f)  // conj(X conj(W)), so that a forward transform inverts it
            sum[f] = sum[f] + Point{spectrum[f].re, -spectrum[f].im} * filter[f];
          products += norms[static_cast<std::size_t>(c)] * magnitudes[static_cast<std::size_t>(kc)];
        }
        transform(sum, tiles.points.h);  // conj(y1 + i y2)
        const double error = noise(tiles.points, group_c, products);
        const float bias_k = bias ? bias[k] : 0.0f;
        write_tile(
            conv, tiles, first, k, bias_k, error, [=](std::int64_t i) { return sum[i].re; }, y);
        if (both)
          write_tile(
              conv, tiles, second, k, bias_k, error, [=](std::int64_t i) { return -sum[i].im; }, y);
      }
    }
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text("tiles of ", tiles_of(conv).points.h);
}

}  // namespace

extern const Implementation<Conv2dArrays> fft_real = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::conv2d
