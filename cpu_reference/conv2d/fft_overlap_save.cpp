/// @file fft_overlap_save.cpp
/// @brief Overlap-save FFT: small overlapping tiles; each filter is transformed once.
///
/// - Before: fft_whole_image.cpp
/// - After: fft_real.cpp
///
/// **The idea.** The transform of a whole image is longer than necessary, and a filter is padded to
/// the size of the image. Here x is cut into tiles of T x T points. The first T - (R - 1) outputs
/// along each axis, which do not wrap around, are kept. Consecutive tiles are offset by that many
/// pixels, so they overlap by R - 1 pixels (overlap-save; Helms, 1967):
///
///     T = 8, R = 3     x  | 0 1 2 3 4 5 6 7 | 8 ...        y  0 1 2 3 4 5 . .
///                                     | 6 7 8 9 ...           6 7 8 ...
///
/// The filters' spectra are small enough to be stored: each is computed once for all tiles.
///
/// **Expect.** T^2 complex multiplications per tile, of four real ones each: 4 T^2 / (T - R + 1)^2
/// per output and channel. With T = 16 that is 5.2 for a 3 x 3 filter (definition: 9), and 7.1 for
/// 5 x 5 (25). Larger tiles overlap less, but leave more of a small image unused.
/// **Costs.** The spectra of all filters, 16 T^2 bytes each. NaN and infinity spread over a tile.
/// Supports stride 1 and filters that extend over at most 32 pixels only.
/// **Try.** With T = 8 and 3 x 3, how many of 64 outputs are kept? Why not T = 64?
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

/// The spectra of all filters, those of a group's channels for one tile, and their sum.
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

/// The spectrum of one channel of a tile, and its norm. @param spectrum [T][T]
double transform_tile(const Conv2dProblem& conv, const float* x, const Tiles& tiles, Place at,
                      int c, Transform2d& transform, Point* spectrum) {
  std::fill(spectrum, spectrum + tiles.points.points(), Point{});
  const Index4 x_at{conv.C, conv.H, conv.W};
  double squares = 0;
  for (std::int64_t i = 0; i < tiles.points.h; ++i) {
    const std::int64_t h = at.p - std::int64_t{conv.pad.top} + i;
    if (h < 0 || h >= conv.H) continue;
    for (std::int64_t j = 0; j < tiles.points.w; ++j) {
      const std::int64_t w = at.q - std::int64_t{conv.pad.left} + j;
      if (w < 0 || w >= conv.W) continue;
      const double pixel = x[x_at(at.n, c, static_cast<int>(h), static_cast<int>(w))];
      spectrum[i * tiles.points.w + j].re = pixel;
      squares += pixel * pixel;
    }
  }
  transform(spectrum, tiles.points.h);
  return std::sqrt(squares);
}

/// Writes the outputs of a tile that lie inside of y.
/// @param found [T][T], times the number of points @param error values up to this magnitude are set
/// to 0
void write_tile(const Conv2dProblem& conv, const Tiles& tiles, Place at, int k, float bias,
                double error, const Point* found, float* y) {
  const Index4 y_at{conv.K, conv.P, conv.Q};
  for (std::int64_t i = 0; i < tiles.rows && at.p + i < conv.P; ++i) {
    for (std::int64_t j = 0; j < tiles.columns && at.q + j < conv.Q; ++j) {
      const double output =
          found[i * tiles.points.w + j].re / static_cast<double>(tiles.points.points());
      const float value = std::abs(output) <= error ? 0.0f : static_cast<float>(output);
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
  Point* const filters = context.workspace_as<Point>();                      // [K][group_c][points]
  Point* const spectra = filters + std::int64_t{conv.K} * group_c * points;  // [group_c][points]
  Point* const sum = spectra + group_c * points;                             // [points]
  Transform2d transform(tiles.points);

  std::vector<double> magnitudes;  // of each filter's channels
  for (std::int64_t kc = 0; kc < std::int64_t{conv.K} * group_c; ++kc) {
    magnitudes.push_back(transform_filter(conv, weights + kc * conv.R * conv.S, transform,
                                          tiles.points, filters + kc * points));
  }

  std::vector<double> norms(static_cast<std::size_t>(group_c));
  for (std::int64_t tile = 0; tile < tiles.of_all; ++tile) {
    const Place at = place_of(tiles, tile);
    for (int g = 0; g < conv.groups; ++g) {
      for (int c = 0; c < group_c; ++c) {
        norms[static_cast<std::size_t>(c)] =
            transform_tile(conv, x, tiles, at, g * group_c + c, transform, spectra + c * points);
      }
      for (int k = g * group_k; k < (g + 1) * group_k; ++k) {
        double products = 0;  // sum over channels of norms, see noise()
        std::fill(sum, sum + points, Point{});
        for (int c = 0; c < group_c; ++c) {
          const std::int64_t kc = std::int64_t{k} * group_c + c;
          const Point *const spectrum = spectra + c * points, *const filter = filters + kc * points;
          for (std::int64_t f = 0; f < points; ++f)
            sum[f] = sum[f] + Point{spectrum[f].re, -spectrum[f].im} * filter[f];
          products += norms[static_cast<std::size_t>(c)] * magnitudes[static_cast<std::size_t>(kc)];
        }
        transform(sum, tiles.points.h);
        write_tile(conv, tiles, at, k, bias ? bias[k] : 0.0f,
                   noise(tiles.points, group_c, products), sum, y);
      }
    }
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text("tiles of ", tiles_of(conv).points.h);
}

}  // namespace

extern const Implementation<Conv2dArrays> fft_overlap_save = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::conv2d
