#include "oracle/transform_bounds.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "core/arithmetic.hpp"
#include "core/parallel.hpp"
#include "oracle/judge.hpp"

namespace convladder {
namespace {

constexpr int kMost = 6;  ///< The side of the window of F(4 x 4).

/// A matrix of absolute values, at most 6 x 6; the other elements are 0.
struct Matrix {
  double at[kMost][kMost] = {};
};

double largest_of(const Matrix& matrix) {
  double largest = 0;
  for (const auto& row : matrix.at) largest = std::max(largest, *std::ranges::max_element(row));
  return largest;
}

/// Each element increased by `least`.
Matrix at_least(Matrix matrix, double least) {
  for (auto& row : matrix.at)
    for (double& number : row) number += least;
  return matrix;
}

/// left * middle * left^T.
Matrix both_sides(const Matrix& left, const Matrix& middle) {
  Matrix half, whole;
  for (int i = 0; i < kMost; ++i)
    for (int j = 0; j < kMost; ++j)
      for (int k = 0; k < kMost; ++k) half.at[i][j] += left.at[i][k] * middle.at[k][j];
  for (int i = 0; i < kMost; ++i)
    for (int j = 0; j < kMost; ++j)
      for (int k = 0; k < kMost; ++k) whole.at[i][j] += half.at[i][k] * left.at[j][k];
  return whole;
}

/// The absolute matrices of F(m, 3) (Lavin and Gray, 2016), written down separately, so that an
/// error in a rung's matrices is not repeated here.
struct Transforms {
  Matrix a, b, g;  ///< |A^T|, |B^T|, |G|
};

Transforms transforms_of(WinogradTile tile) {
  if (tile == WinogradTile(2))
    return {.a = {{{1, 1, 1, 0}, {0, 1, 1, 1}}},
            .b = {{{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}}},
            .g = {{{1, 0, 0}, {.5, .5, .5}, {.5, .5, .5}, {0, 0, 1}}}};
  if (tile == WinogradTile(4, WinogradPoints::imaginary)) {  // all points except 0 have powers of
                                                             // absolute value 1
    return {.a = {{{1, 1, 1, 1, 1, 0}, {0, 1, 1, 1, 1, 0}, {0, 1, 1, 1, 1, 0}, {0, 1, 1, 1, 1, 1}}},
            .b = {{{1, 0, 0, 0, 1, 0},
                   {0, 1, 1, 1, 1, 0},
                   {0, 1, 1, 1, 1, 0},
                   {0, 1, 1, 1, 1, 0},
                   {0, 1, 1, 1, 1, 0},
                   {0, 1, 0, 0, 0, 1}}},
            .g = {{{1, 0, 0},
                   {.25, .25, .25},
                   {.25, .25, .25},
                   {.25, .25, .25},
                   {.25, .25, .25},
                   {0, 0, 1}}}};
  }
  if (tile != WinogradTile(4)) throw std::logic_error("no bound for this Winograd tile");
  const double sixth = 1.0 / 6, small = 1.0 / 24;
  return {.a = {{{1, 1, 1, 1, 1, 0}, {0, 1, 1, 2, 2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, 1, 8, 8, 1}}},
          .b = {{{4, 0, 5, 0, 1, 0},
                 {0, 4, 4, 1, 1, 0},
                 {0, 4, 4, 1, 1, 0},
                 {0, 2, 1, 2, 1, 0},
                 {0, 2, 1, 2, 1, 0},
                 {0, 4, 0, 5, 0, 1}}},
          .g = {{{.25, 0, 0},
                 {sixth, sixth, sixth},
                 {sixth, sixth, sixth},
                 {small, 2 * small, 4 * small},
                 {small, 2 * small, 4 * small},
                 {0, 0, 1}}}};
}

/// The matrices of F(3, m), for a gradient with respect to the weights: with the same points, A and
/// G are exchanged.
Transforms gradient_transforms_of(WinogradTile tile) {
  if (tile == WinogradTile(2))
    return {.a = {{{1, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 1}}},
            .b = transforms_of(2).b,
            .g = {{{1, 0}, {.5, .5}, {.5, .5}, {0, 1}}}};
  if (tile != WinogradTile(4)) throw std::logic_error("no bound for this Winograd gradient tile");
  const double sixth = 1.0 / 6, small = 1.0 / 24;
  return {.a = {{{1, 1, 1, 1, 1, 0}, {0, 1, 1, 2, 2, 0}, {0, 1, 1, 4, 4, 1}}},
          .b = transforms_of(4).b,
          .g = {{{.25, 0, 0, 0},
                 {sixth, sixth, sixth, sixth},
                 {sixth, sixth, sixth, sixth},
                 {small, 2 * small, 4 * small, 8 * small},
                 {small, 2 * small, 4 * small, 8 * small},
                 {0, 0, 0, 1}}}};
}

/// A convolution and its arrays.
struct Forward {
  Conv2dProblem conv;
  const Array* x;
  Array weights;
};

/// The convolution of dy whose output is dx. If the padding exceeds that of the filter, it is
/// negative: the first rows or columns of dy are in no tile.
Forward turned(const Conv2dProblem& conv, const Arrays& inputs) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  Conv2dProblem back = conv;
  back.C = conv.K, back.H = conv.P, back.W = conv.Q;
  back.K = conv.C, back.P = conv.H, back.Q = conv.W;
  back.pad.top = 2 - conv.pad.top, back.pad.left = 2 - conv.pad.left;
  back.bias = false;
  Array weights(DType::f32, {conv.C, group_k, 3, 3});
  const auto from = inputs.at("weights").as<float>();
  const Index4 from_at{group_c, 3, 3}, to_at{group_k, 3, 3};
  for (int c = 0; c < conv.C; ++c)
    for (int k = 0; k < group_k; ++k)
      for (int r = 0; r < 3; ++r)
        for (int s = 0; s < 3; ++s)
          weights.as<float>()[static_cast<std::size_t>(to_at(c, k, r, s))] =
              from[static_cast<std::size_t>(
                  from_at(c / group_c * group_k + k, c % group_c, 2 - r, 2 - s))];
  return {back, &inputs.at("dy"), std::move(weights)};
}

/// 0 for a non-finite number: such numbers are treated separately (oracle/non_finite.hpp).
double size(float number) { return std::isfinite(number) ? std::abs(double{number}) : 0; }

double size(std::span<const float> array, std::int64_t i) {
  return size(array[static_cast<std::size_t>(i)]);
}

/// The factor by which an intermediate value may exceed the bound. Rungs keep a factor of 3 from G
/// along each axis until the end. Between the passes along both axes, numbers are up to 4 times as
/// large. Over i, two sums of real and imaginary parts are multiplied.
double kept_factors(WinogradTile tile) {
  if (tile == WinogradTile(2)) return 4;
  if (tile == WinogradTile(4, WinogradPoints::imaginary)) return 4 * 4 * 4;
  return 4 * 3 * 3;
}

/// Roundings of a term in addition to those of the sum over channels: of up to six terms along both
/// axes, in each of three transforms, and of the quotients of the matrices.
constexpr std::int64_t kOtherRoundings = 3 * 2 * 6 + 4;

/// The largest number that a thread has seen, over all threads.
class Largest {
 public:
  void meet(double number) {
    double before = largest_.load(std::memory_order_relaxed);
    while (before < number && !largest_.compare_exchange_weak(before, number)) {
    }
  }
  double value() const { return largest_.load(); }

 private:
  std::atomic<double> largest_ = 0;
};

/// Adds products elementwise.
void add_product(Matrix& sums, const Matrix& u, const Matrix& v) {
  for (int i = 0; i < kMost; ++i)
    for (int j = 0; j < kMost; ++j) sums.at[i][j] += u.at[i][j] * v.at[i][j];
}

/// Absolute values of the `side` x `side` elements of a channel of x that the tile at (p0, q0)
/// reads.
Matrix window_of(const Conv2dProblem& conv, std::span<const float> x, int n, int c, int p0, int q0,
                 int side) {
  const Index4 at{conv.C, conv.H, conv.W};
  Matrix d;
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      const int h = p0 + i - conv.pad.top, w = q0 + j - conv.pad.left;
      if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) continue;
      d.at[i][j] = size(x, at(n, c, h, w));
    }
  }
  return d;
}

/// The data of the bound: a forward pass, and its matrices.
struct Bound {
  Bound(const Problem& problem, const Arrays& inputs, WinogradTile tile, double least_ = 0)
      : forward(forward_of(std::get<Conv2dProblem>(problem), inputs)),
        transforms(transforms_of(tile)), m(tile.m), least(least_),
        bias(conv().bias ? inputs.at("bias").as<float>() : std::span<const float>()) {}

  const Conv2dProblem& conv() const { return forward.conv; }
  int group_c() const { return conv().C / conv().groups; }
  std::int64_t longest_sum() const { return group_c() + 1; }  // over the channels, and the bias

  /// A filter's channel, transformed.
  Matrix filter(int k, int c) const {
    const Index4 at{group_c(), 3, 3};
    Matrix g;
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s) g.at[r][s] = size(forward.weights.as<float>(), at(k, c, r, s));
    return both_sides(transforms.g, at_least(g, least));
  }

  /// A channel of the window of the tile whose first output is (p0, q0), transformed.
  Matrix window(int n, int c, int p0, int q0) const {
    return both_sides(
        transforms.b,
        at_least(window_of(conv(), forward.x->as<float>(), n, c, p0, q0, m + 2), least));
  }

  /// The outputs of a tile, from the sums of the products.
  Matrix outputs(const Matrix& sums) const {
    return both_sides(transforms.a, at_least(sums, least));
  }

  double bias_of(int k) const { return bias.empty() ? 0 : size(bias, k); }

  static Forward forward_of(const Conv2dProblem& given, const Arrays& inputs) {
    return inputs.contains("dy") ? turned(given, inputs)
                                 : Forward{given, &inputs.at("x"), inputs.at("weights")};
  }
  Forward forward;
  Transforms transforms;
  int m;
  double least;
  std::span<const float> bias;
};

/// The same for a gradient with respect to the weights.
struct GradientBound {
  GradientBound(const Problem& problem, const Arrays& inputs, WinogradTile tile, double least_ = 0)
      : conv(std::get<Conv2dProblem>(problem)), x(inputs.at("x").as<float>()),
        dy(inputs.at("dy").as<float>()), transforms(gradient_transforms_of(tile)), m(tile.m),
        least(least_), down((conv.P + m - 1) / m), across((conv.Q + m - 1) / m),
        tiles(std::int64_t{conv.N} * down * across) {}

  std::int64_t longest_sum() const { return std::max<std::int64_t>(1, tiles); }

  /// A tile of dy, transformed.
  Matrix gradient(std::int64_t tile, int k) const {
    const Index4 at{conv.K, conv.P, conv.Q};
    const auto [n, p0, q0] = place(tile);
    Matrix g;
    for (int i = 0; i < m && p0 + i < conv.P; ++i)
      for (int j = 0; j < m && q0 + j < conv.Q; ++j)
        g.at[i][j] = size(dy, at(n, k, p0 + i, q0 + j));
    return both_sides(transforms.g, at_least(g, least));
  }
  /// The transformed part of x that it meets.
  Matrix window(std::int64_t tile, int c) const {
    const auto [n, p0, q0] = place(tile);
    return both_sides(transforms.b, at_least(window_of(conv, x, n, c, p0, q0, m + 2), least));
  }
  /// The nine taps, from the sums of the products.
  Matrix taps(const Matrix& sums) const { return both_sides(transforms.a, at_least(sums, least)); }

  /// The image of a tile, and its first row and column.
  std::tuple<int, int, int> place(std::int64_t tile) const {
    const std::int64_t row = tile / across;
    return {static_cast<int>(row / down), static_cast<int>(row % down) * m,
            static_cast<int>(tile % across) * m};
  }

  const Conv2dProblem& conv;
  std::span<const float> x, dy;
  Transforms transforms;
  int m;
  double least;
  int down, across;
  std::int64_t tiles;
};

/// The same for rows in pieces of three taps: tiles of three outputs of a row.
class PiecesBound {
 public:
  static constexpr int kM = 3, kN = 5;  ///< Outputs of a tile, and its products.
  using Line = std::array<double, kN>;

  PiecesBound(const Problem& problem, const Arrays& inputs, double least = 0)
      : conv_(std::get<Conv2dProblem>(problem)), x_(inputs.at("x").as<float>()),
        bias_(conv_.bias ? inputs.at("bias").as<float>() : std::span<const float>()),
        pieces_((conv_.S + kM - 1) / kM), least_(least) {
    const auto weights = inputs.at("weights").as<float>();
    const std::int64_t rows = std::int64_t{conv_.K} * group_c() * conv_.R;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int s0 = 0; s0 < conv_.S; s0 += 3) {
        double g[3] = {least, least, least};
        for (int s = 0; s < 3 && s0 + s < conv_.S; ++s)
          g[s] += size(weights, row * conv_.S + s0 + s);
        const double sum = g[0] + g[1] + g[2];
        filters_.push_back({g[0] / 2, sum / 2, sum / 6, g[0] / 6 + g[1] / 3 + 2 * g[2] / 3, g[2]});
      }
    }
  }

  const Conv2dProblem& conv() const { return conv_; }
  std::int64_t longest_sum() const {
    return std::int64_t{group_c()} * conv_.R * pieces_ + 1;  // and the bias
  }

  /// The largest number of a transformed filter or window.
  double largest_transformed() const {
    constexpr double kWindow = 6;  // the largest sum of a row of |B^T|
    double filter = 0, pixel = 0;
    for (const Line& line : filters_) filter = std::max(filter, *std::ranges::max_element(line));
    for (const float number : x_) pixel = std::max(pixel, size(number));
    return std::max(filter, kWindow * pixel);
  }

  /// The bound of the outputs (p, q0) ... (p, q0 + 2).
  std::array<double, kM> tile(int n, int k, int p, int q0) const {
    const int group_k = conv_.K / conv_.groups, c0 = k / group_k * group_c();
    Line m;
    m.fill(least_);
    const Line* u = filters_.data() + std::ptrdiff_t{k} * group_c() * conv_.R * pieces_;
    for (int c = 0; c < group_c(); ++c) {
      for (int r = 0; r < conv_.R; ++r) {
        for (int piece = 0; piece < pieces_; ++piece, ++u) {
          const Line v = window(n, c0 + c, p + r, q0 + kM * piece);
          for (std::size_t i = 0; i < kN; ++i) m[i] += (*u)[i] * v[i];
        }
      }
    }
    const double bias = bias_.empty() ? 0 : size(bias_, k);
    return {m[0] + m[1] + m[2] + m[3] + bias, m[1] + m[2] + 2 * m[3] + bias,
            m[1] + m[2] + 4 * m[3] + m[4] + bias};
  }

 private:
  int group_c() const { return conv_.C / conv_.groups; }

  /// |B^T| |d| of the five pixels from (h, w) of the padded image on.
  Line window(int n, int c, int h, int w) const {
    Line d;
    d.fill(least_);
    h -= conv_.pad.top;
    for (int j = 0; j < kN; ++j) {
      const int column = w + j - conv_.pad.left;
      if (h < 0 || h >= conv_.H || column < 0 || column >= conv_.W) continue;
      d[static_cast<std::size_t>(j)] +=
          size(x_, Index4{conv_.C, conv_.H, conv_.W}(n, c, h, column));
    }
    return {2 * d[0] + d[1] + 2 * d[2] + d[3], 2 * d[1] + d[2] + d[3], 2 * d[1] + 3 * d[2] + d[3],
            d[1] + d[3], 2 * d[1] + d[2] + 2 * d[3] + d[4]};
  }

  const Conv2dProblem& conv_;
  std::span<const float> x_, bias_;
  int pieces_;
  double least_;
  std::vector<Line> filters_;  // [K][C/groups][R][pieces]
};

/// with_winograd_bound() for pieces.
Expected with_pieces_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                           double least) {
  const PiecesBound bound(problem, inputs, least);
  const Conv2dProblem& conv = bound.conv();
  const Index4 y_at{conv.K, conv.P, conv.Q};
  Expected bounded = expected;
  bounded.longest_sum = bound.longest_sum();
  bounded.other_roundings = kOtherRoundings;
  Largest largest;
  parallel_for(std::int64_t{conv.N} * conv.P, [&](std::int64_t row) {
    const int n = static_cast<int>(row / conv.P), p = static_cast<int>(row % conv.P);
    for (int k = 0; k < conv.K; ++k) {
      for (int q0 = 0; q0 < conv.Q; q0 += PiecesBound::kM) {
        const auto b = bound.tile(n, k, p, q0);
        largest.meet(*std::ranges::max_element(b));
        for (int q = q0; q < std::min(q0 + PiecesBound::kM, conv.Q); ++q)
          bounded.magnitude[static_cast<std::size_t>(y_at(n, k, p, q))] =
              b[static_cast<std::size_t>(q - q0)];
      }
    }
  });
  bounded.largest =
      kept_factors(kWinogradPieces) * std::max(largest.value(), bound.largest_transformed());
  return bounded;
}

/// winograd_bound_at() for pieces.
WinogradBound pieces_bound_at(const Problem& problem, const Arrays& inputs,
                              std::span<const std::int64_t> places) {
  const PiecesBound bound(problem, inputs);
  const Conv2dProblem& conv = bound.conv();
  WinogradBound found{std::vector<double>(places.size()), bound.longest_sum()};
  parallel_for(static_cast<std::int64_t>(places.size()), [&](std::int64_t i) {
    std::int64_t place = places[static_cast<std::size_t>(i)];
    const int q = static_cast<int>(place % conv.Q);
    const int p = static_cast<int>((place /= conv.Q) % conv.P);
    const int k = static_cast<int>((place /= conv.P) % conv.K);
    const int n = static_cast<int>(place / conv.K);
    const int in_tile = q % PiecesBound::kM;
    found.magnitude[static_cast<std::size_t>(i)] =
        bound.tile(n, k, p, q - in_tile)[static_cast<std::size_t>(in_tile)];
  });
  return found;
}

/// The points of the largest tile, 64 x 64.
constexpr double kMostPoints = 64 * 64;

double squares(std::span<const float> numbers) {
  double sum = 0;
  for (const float number : numbers) sum += size(number) * size(number);
  return sum;
}

/// An upper bound of the sum of a tile's absolute values.
double sizes(std::span<const float> numbers) {
  double sum = 0, largest = 0;
  for (const float number : numbers) {
    sum += size(number);
    largest = std::max(largest, size(number));
  }
  return std::min(sum, kMostPoints * largest);
}

/// The increase of a norm because float rounds numbers near 0 with an absolute error.
struct Least {
  double plane = 0, filter = 0, product = 0;
};

/// The largest power of two, up to 1, of which all finite numbers are multiples.
double lowest_bit(std::span<const float> numbers) {
  double bit = 1;
  for (const float number : numbers) {
    if (!std::isfinite(number)) continue;
    while (std::fmod(double{number}, bit) != 0) bit /= 2;
  }
  return bit;
}

/// The bound of all outputs of a filter in an image: [N][K].
/// @param norm that of a plane's numbers, or of two planes' with this sum of squares
/// @param least added to the norm of a filter's channel, and to a channel's product
template <class Of, class Norm>
std::vector<double> bounds_of(const Conv2dProblem& conv, const Arrays& inputs, const Of& of,
                              const Norm& norm, Least least = {}) {
  const auto part = [](std::span<const float> array, std::int64_t i, std::int64_t size) {
    return array.subspan(static_cast<std::size_t>(i * size), static_cast<std::size_t>(size));
  };
  const auto x = inputs.at("x").as<float>(), weights = inputs.at("weights").as<float>();
  const auto bias = conv.bias ? inputs.at("bias").as<float>() : std::span<const float>();
  const std::int64_t group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;

  std::vector<double> planes(static_cast<std::size_t>(std::int64_t{conv.N} * conv.C));
  parallel_for(static_cast<std::int64_t>(planes.size()), [&](std::int64_t nc) {
    planes[static_cast<std::size_t>(nc)] = of(part(x, nc, std::int64_t{conv.H} * conv.W));
  });
  std::vector<double> filters(static_cast<std::size_t>(conv.K * group_c));
  for (std::size_t kc = 0; kc < filters.size(); ++kc) {
    filters[kc] =
        norm(of(part(weights, static_cast<std::int64_t>(kc), std::int64_t{conv.R} * conv.S))) +
        least.filter;
  }
  std::vector<double> bounds(static_cast<std::size_t>(std::int64_t{conv.N} * conv.K));
  parallel_for(static_cast<std::int64_t>(bounds.size()), [&](std::int64_t nk) {
    const std::int64_t n = nk / conv.K, k = nk % conv.K, other = n ^ 1;
    const auto plane = [&](std::int64_t image, std::int64_t c) {
      return image < conv.N ? planes[static_cast<std::size_t>(image * conv.C + c)] : 0.0;
    };
    double bound = bias.empty() ? 0 : size(bias, k);
    for (std::int64_t c = 0; c < group_c; ++c) {
      const std::int64_t channel = k / group_k * group_c + c;
      bound += (norm(plane(n, channel) + plane(other, channel)) + least.plane) *
                   filters[static_cast<std::size_t>(k * group_c + c)] +
               least.product;
    }
    bounds[static_cast<std::size_t>(nk)] = bound;
  });
  return bounds;
}

/// With the Euclidean norms of planes whose points have at least that absolute value. Each
/// frequency of a plane is rounded like a number of that size, which contributes the square root of
/// their number to the norm. The frequencies of a filter are divided by the number of points before
/// the multiplication: remainders near 0 are rounded relative to that. The rounding errors of the
/// products' frequencies are summed in an output with independent signs.
std::vector<double> norms_of(const Conv2dProblem& conv, const Arrays& inputs, double least) {
  const double root = std::sqrt(kMostPoints);
  return bounds_of(conv, inputs, squares, [](double squares) { return std::sqrt(squares); },
                   {.plane = root * least,
                    .filter = kMostPoints * least,
                    .product = least > 0 ? root * kLeastNormal : 0});
}

}  // namespace

bool winograd_takes(const Conv2dProblem& conv, WinogradTile tile) {
  const bool dense =
      conv.stride.h == 1 && conv.stride.w == 1 && conv.dilation.h == 1 && conv.dilation.w == 1;
  if (tile == kWinogradPieces) return dense && conv.R <= 6 && conv.S >= 4 && conv.S <= 6;
  return dense && conv.R == 3 && conv.S == 3;
}

std::int64_t winograd_headroom(const Conv2dProblem& conv) {
  return winograd_takes(conv, 2) && conv.dtype == DType::f32 ? 64 : 1;
}

std::int64_t winograd_forward_headroom(const Conv2dProblem& conv) {
  const bool pieces = winograd_takes(conv, kWinogradPieces) && conv.dtype == DType::f32;
  return pieces ? 64 : winograd_headroom(conv);
}

Expected with_winograd_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                             WinogradTile tile, double least) {
  if (tile == kWinogradPieces) return with_pieces_bound(expected, problem, inputs, least);
  const Bound bound(problem, inputs, tile, least);
  const Conv2dProblem& conv = bound.conv();
  const int m = bound.m;
  const int group_c = bound.group_c(), group_k = conv.K / conv.groups;
  const Index4 y_at{conv.K, conv.P, conv.Q};

  Expected bounded = expected;
  bounded.longest_sum = bound.longest_sum();
  bounded.other_roundings = kOtherRoundings;
  Largest largest;
  // A filter is transformed once for all tiles, a tile once for all filters of its group.
  std::vector<Matrix> filters(static_cast<std::size_t>(conv.K) * static_cast<std::size_t>(group_c));
  parallel_for(conv.K, [&](std::int64_t k) {
    for (int c = 0; c < group_c; ++c) {
      Matrix& filter = filters[static_cast<std::size_t>(k * group_c + c)];
      filter = bound.filter(static_cast<int>(k), c);
      largest.meet(largest_of(filter));
    }
  });
  const int tile_rows = (conv.P + m - 1) / m;
  parallel_for(std::int64_t{conv.N} * tile_rows, [&](std::int64_t row) {
    const int n = static_cast<int>(row / tile_rows), p0 = static_cast<int>(row % tile_rows) * m;
    std::vector<Matrix> windows(static_cast<std::size_t>(conv.C));
    for (int q0 = 0; q0 < conv.Q; q0 += m) {
      for (int c = 0; c < conv.C; ++c) {
        windows[static_cast<std::size_t>(c)] = bound.window(n, c, p0, q0);
        largest.meet(largest_of(windows[static_cast<std::size_t>(c)]));
      }
      for (int k = 0; k < conv.K; ++k) {
        Matrix sums;
        for (int c = 0; c < group_c; ++c) {
          add_product(sums, filters[static_cast<std::size_t>(std::int64_t{k} * group_c + c)],
                      windows[static_cast<std::size_t>(k / group_k * group_c + c)]);
        }
        const Matrix b = bound.outputs(sums);
        largest.meet(std::max(largest_of(sums), largest_of(b) + bound.bias_of(k)));
        for (int p = p0; p < std::min(p0 + m, conv.P); ++p) {
          for (int q = q0; q < std::min(q0 + m, conv.Q); ++q) {
            bounded.magnitude[static_cast<std::size_t>(y_at(n, k, p, q))] =
                b.at[p - p0][q - q0] + bound.bias_of(k);
          }
        }
      }
    }
  });
  bounded.largest = kept_factors(tile) * largest.value();
  return bounded;
}

Expected with_winograd_gradient_bound(const Expected& expected, const Problem& problem,
                                      const Arrays& inputs, WinogradTile tile, double least) {
  if (expected.spec.name != "dw") return expected;  // db is a plain sum
  const GradientBound bound(problem, inputs, tile, least);
  const Conv2dProblem& conv = bound.conv;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const auto tiles = static_cast<std::size_t>(bound.tiles);

  Expected bounded = expected;
  bounded.longest_sum = bound.longest_sum();
  bounded.other_roundings = kOtherRoundings;
  Largest largest;
  std::vector<Matrix> windows(static_cast<std::size_t>(conv.C) * tiles);  // [C][tiles]
  parallel_for(conv.C, [&](std::int64_t c) {
    for (std::size_t t = 0; t < tiles; ++t) {
      Matrix& window = windows[static_cast<std::size_t>(c) * tiles + t];
      window = bound.window(static_cast<std::int64_t>(t), static_cast<int>(c));
      largest.meet(largest_of(window));
    }
  });
  parallel_for(conv.K, [&](std::int64_t k) {
    std::vector<Matrix> gradients(tiles);
    for (std::size_t t = 0; t < tiles; ++t) {
      gradients[t] = bound.gradient(static_cast<std::int64_t>(t), static_cast<int>(k));
      largest.meet(largest_of(gradients[t]));
    }
    for (int c = 0; c < group_c; ++c) {
      const std::int64_t channel = k / group_k * group_c + c;
      Matrix sums;
      for (std::size_t t = 0; t < tiles; ++t)
        add_product(sums, gradients[t], windows[static_cast<std::size_t>(channel) * tiles + t]);
      const Matrix b = bound.taps(sums);
      largest.meet(std::max(largest_of(sums), largest_of(b)));
      for (int tap = 0; tap < 9; ++tap)
        bounded.magnitude[static_cast<std::size_t>((k * group_c + c) * 9 + tap)] =
            b.at[tap / 3][tap % 3];
    }
  });
  bounded.largest = kept_factors(tile) * largest.value();
  return bounded;
}

WinogradBound winograd_gradient_bound_at(const Problem& problem, const Arrays& inputs,
                                         WinogradTile tile, std::span<const std::int64_t> places) {
  const GradientBound bound(problem, inputs, tile);
  const Conv2dProblem& conv = bound.conv;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  WinogradBound found{std::vector<double>(places.size()), bound.longest_sum()};
  parallel_for(static_cast<std::int64_t>(places.size()), [&](std::int64_t i) {
    const std::int64_t place = places[static_cast<std::size_t>(i)];
    const int tap = static_cast<int>(place % 9), c = static_cast<int>(place / 9 % group_c);
    const int k = static_cast<int>(place / 9 / group_c);
    Matrix sums;
    for (std::int64_t t = 0; t < bound.tiles; ++t)
      add_product(sums, bound.gradient(t, k), bound.window(t, k / group_k * group_c + c));
    found.magnitude[static_cast<std::size_t>(i)] = bound.taps(sums).at[tap / 3][tap % 3];
  });
  return found;
}

WinogradBound winograd_bound_at(const Problem& problem, const Arrays& inputs, WinogradTile tile,
                                std::span<const std::int64_t> places) {
  if (tile == kWinogradPieces) return pieces_bound_at(problem, inputs, places);
  const Bound bound(problem, inputs, tile);
  const Conv2dProblem& conv = bound.conv();
  const int m = bound.m;
  const int group_c = bound.group_c(), group_k = conv.K / conv.groups;
  WinogradBound found{std::vector<double>(places.size()), bound.longest_sum()};
  parallel_for(static_cast<std::int64_t>(places.size()), [&](std::int64_t i) {
    std::int64_t place = places[static_cast<std::size_t>(i)];
    const int q = static_cast<int>(place % conv.Q);
    const int p = static_cast<int>((place /= conv.Q) % conv.P);
    const int k = static_cast<int>((place /= conv.P) % conv.K);
    const int n = static_cast<int>(place / conv.K);
    Matrix sums;
    for (int c = 0; c < group_c; ++c) {
      add_product(sums, bound.filter(k, c),
                  bound.window(n, k / group_k * group_c + c, p / m * m, q / m * m));
    }
    found.magnitude[static_cast<std::size_t>(i)] =
        bound.outputs(sums).at[p % m][q % m] + bound.bias_of(k);
  });
  return found;
}

Expected with_fourier_bound(const Expected& expected, const Problem& problem, const Arrays& inputs,
                            double least) {
  const auto& conv = std::get<Conv2dProblem>(problem);
  const std::vector<double> bounds = norms_of(conv, inputs, least);
  Expected bounded = expected;
  bounded.passes = kFourierPasses;
  bounded.grid =
      lowest_bit(inputs.at("x").as<float>()) * lowest_bit(inputs.at("weights").as<float>());
  if (conv.bias) bounded.grid = std::min(bounded.grid, lowest_bit(inputs.at("bias").as<float>()));
  const std::size_t plane = static_cast<std::size_t>(std::int64_t{conv.P} * conv.Q);
  for (std::size_t i = 0; i < bounded.magnitude.size(); ++i)
    bounded.magnitude[i] = bounds[i / plane];

  // A frequency is at most the sum of all absolute values. The inverse sums as many frequencies as
  // there are points, but the filter's are divided by that number before. Gauss's three products
  // have operands that are sums of two parts.
  constexpr double kSumsOfParts = 4;
  const auto as_it_is = [](double sum) { return sum; };
  const std::vector<double> sums = bounds_of(conv, inputs, sizes, as_it_is);
  bounded.largest = 2 * std::max(sizes(inputs.at("x").as<float>()),  // of two images
                                 sizes(inputs.at("weights").as<float>()));
  for (const double sum : sums) bounded.largest = std::max(bounded.largest, kSumsOfParts * sum);
  return bounded;
}

Expected with_double_fourier_bound(const Expected& expected, const Problem& problem,
                                   const Arrays& inputs) {
  const auto& conv = std::get<Conv2dProblem>(problem);
  const auto padded = [](double size, double filter) {
    return std::max(std::ceil(std::log2(size + filter)) + 1, std::log2(kMostPoints) / 2);
  };
  const double passes = padded(conv.H + conv.pad.top + conv.pad.bottom,
                               static_cast<double>(window_extent(conv.R, conv.dilation.h))) +
                        padded(conv.W + conv.pad.left + conv.pad.right,
                               static_cast<double>(window_extent(conv.S, conv.dilation.w)));
  const double factor = 2 * (21 * passes + 4 + conv.C) * std::ldexp(1.0, -53) *
                        std::sqrt(static_cast<double>(conv.R) * conv.S);
  const std::vector<double> bounds = norms_of(conv, inputs, 0);
  const double unit = allowed_error(expected, Data::real);
  const std::size_t plane = static_cast<std::size_t>(std::int64_t{conv.P} * conv.Q);
  Expected bounded = expected;
  for (std::size_t i = 0; i < bounded.magnitude.size(); ++i)
    bounded.magnitude[i] += bounds[i / plane] * (factor / unit);
  return bounded;
}

std::vector<double> fourier_bound_at(const Problem& problem, const Arrays& inputs,
                                     std::span<const std::int64_t> places) {
  const auto& conv = std::get<Conv2dProblem>(problem);
  const std::vector<double> bounds = norms_of(conv, inputs, 0);
  std::vector<double> found;
  for (const std::int64_t place : places)
    found.push_back(bounds[static_cast<std::size_t>(place / (std::int64_t{conv.P} * conv.Q))]);
  return found;
}

}  // namespace convladder
