/// @file winograd_tiles.cpp
/// @brief Prints what the tiles of Winograd and of Fourier save and what they cost:
/// multiplications, numbers in memory, and rounding, as the chapter on fewer multiplications shows
/// them.
///
/// Tiles are counted whole: what ends beyond an image is left out.
///
///     cmake --build build/cpu --target winograd_tiles && build/cpu/docs/winograd_tiles
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>

#include "cpu_reference/conv2d/winograd_complex.hpp"
#include "cpu_reference/conv2d/winograd_matrices.hpp"

namespace {

using convladder::cpu_reference::conv2d::both_sides;
using convladder::cpu_reference::conv2d::ComplexTile;
using convladder::cpu_reference::conv2d::Fraction;
using convladder::cpu_reference::conv2d::in_type;
using convladder::cpu_reference::conv2d::is_exact;
using convladder::cpu_reference::conv2d::winograd_matrices;
using convladder::cpu_reference::conv2d::WinogradMatrices;

/// (m + r - 1)^2 / m^2: how many products an output and a channel have by F(m x m, r x r), how many
/// numbers of V a pixel of x has, and of M one of y.
double transformed(int m, int r) {
  const double along = (m + r - 1.0) / m;
  return along * along;
}

/// What each filter needs.
void print_counts() {
  std::printf(
      "Products of an output and a channel, which is also numbers in memory for a pixel:\n\n");
  std::printf("    filter  definition  F(2x2)  F(4x4)  F(6x6)\n");
  for (const int r : {3, 5, 7}) {
    std::printf("    %dx%d     %10d  %6.2f  %6.2f  %6.2f\n", r, r, r * r, transformed(2, r),
                transformed(4, r), transformed(6, r));
  }
  std::printf("\n");
}

/// Filters in pieces of three taps, which share their windows: along their rows, or both ways.
void print_pieces() {
  std::printf(
      "In pieces of three taps, products of an output and a channel:\n\n"
      "    filter  definition  F(3,3) along rows  F(3x3) both ways\n");
  for (const int r : {4, 5, 6, 9}) {
    const int pieces = (r + 2) / 3;
    std::printf("    %dx%d     %10d  %17.2f  %16.2f\n", r, r, r * r, r * pieces * 5 / 3.0,
                pieces * pieces * 25 / 9.0);
  }
  std::printf("\n");
}

/// Multiplications of an output and a channel by Fourier tiles of t x t points, two as one complex
/// image: t^2 complex products, of four multiplications each, for two tiles of (t - r + 1)^2
/// outputs.
double by_spectra(int t, int r) {
  const double kept = t - r + 1.0;
  return 2 * t * t / (kept * kept);
}

/// The same for tiles of spectra, where a filter leaves a half of the line at least.
void print_spectra() {
  std::printf("Multiplications of an output and a channel, the transforms left out:\n\n");
  std::printf("    filter  definition  F(4x4)  16 x 16 points  32 x 32  64 x 64\n");
  for (const int r : {3, 5, 7, 15, 31}) {
    std::printf("    %2dx%-2d %11d", r, r, r * r);
    r <= 7 ? void(std::printf("  %6.2f", transformed(4, r))) : void(std::printf("       -"));
    for (const int t : {16, 32, 64}) {
      const int width = t == 16 ? 16 : 9;
      2 * r <= t ? void(std::printf("%*.2f", width, by_spectra(t, r)))
                 : void(std::printf("%*s", width, "-"));
    }
    std::printf("\n");
  }
  std::printf("\n");
}

/// A layer of 3 x 3 filters, as many of them as channels, over images of side x side.
struct Layer {
  const char* name;
  int images, channels, side;
};

/// A layer's multiply-adds and bytes, and how long an H200 takes for each by itself.
void print_layer(const Layer& layer) {
  constexpr double kMultiplyAdds = 32.5e12, kBytes = 4.2e12;                             // a second
  const double numbers = 1.0 * layer.images * layer.channels * layer.side * layer.side;  // of x
  std::printf("%s, %dx%dx%dx%d: multiply-adds (10^9), MB, and us for each alone:\n\n", layer.name,
              layer.images, layer.channels, layer.side, layer.side);
  /// @param moved how many times as many numbers as x has go to memory or come from there
  const auto row = [&](const char* way, double products, double moved) {
    const double multiply_adds = products * layer.channels * numbers, bytes = 4 * moved * numbers;
    std::printf("    %-12s  %8.2f  %8.0f  %8.0f  %8.0f\n", way, multiply_adds / 1e9, bytes / 1e6,
                multiply_adds / kMultiplyAdds * 1e6, bytes / kBytes * 1e6);
  };
  row("definition", 9, 2);      // x and y
  row("im2col", 9, 2 + 2 * 9);  // columns, written and read
  for (const int m : {2, 4, 6}) {
    const char* names[] = {"F(2x2)", "F(4x4)", "F(6x6)"};
    row(names[m / 2 - 1], transformed(m, 3), 2 + 4 * transformed(m, 3));  // V and M likewise
  }
  std::printf("\n");
}

/// F(m x m, 3 x 3) with the matrices of some points, weights transformed in double. What makes a
/// row of G free of all denominators but powers of two is the row's own factor. All of them are in
/// `factor`, by which sums are divided after each of both passes: so integers remain integers as
/// long as float represents them.
template <int kOutputs>
class RealTile {
 public:
  static constexpr std::size_t kM = kOutputs, kN = kM + 2, kProducts = kN * kN;

  explicit RealTile(const WinogradMatrices<kOutputs, 3>& matrices)
      : b_(in_type<float>(matrices.bt, 1)) {
    auto g = matrices.g;
    auto at = matrices.at;
    for (std::size_t j = 0; j < kN; ++j) {
      std::int64_t of_row = 1;
      for (const Fraction& number : g[j]) of_row = std::lcm(of_row, odd(number.under));
      factor_ = std::lcm(factor_, of_row);
      for (Fraction& number : g[j]) number = number * Fraction(of_row);
      for (auto& row : at) row[j] = row[j] / Fraction(of_row);
    }
    g_ = in_type<double>(g, 1), a_ = in_type<float>(at, static_cast<int>(factor_));
  }
  std::int64_t factor() const { return factor_; }

  void filter(const double* g, float* u) const {
    double whole[kProducts];
    both_sides(g_, g, whole);
    std::ranges::transform(whole, u, [](double number) { return static_cast<float>(number); });
  }
  void window(const float* d, float* v) const { both_sides(b_, d, v); }
  void outputs(const float* m, float* y) const {
    float half[kM][kN];
    for (std::size_t i = 0; i < kM; ++i)
      for (std::size_t k = 0; k < kN; ++k) half[i][k] = line(i, m + k, kN);
    for (std::size_t i = 0; i < kM; ++i)
      for (std::size_t k = 0; k < kM; ++k) *y++ = line(k, half[i], 1);
  }

 private:
  static std::int64_t odd(std::int64_t number) {
    while (number % 2 == 0) number /= 2;
    return number;
  }
  /// Row i of A^T, times numbers that are `apart`.
  float line(std::size_t i, const float* m, std::size_t apart) const {
    float sum = 0;
    for (std::size_t j = 0; j < kN; ++j) sum += a_[i][j] * m[j * apart];
    return sum / static_cast<float>(factor_);
  }

  std::int64_t factor_ = 1;
  std::array<std::array<double, 3>, kN> g_ = {};
  std::array<std::array<float, kN>, kN> b_;
  std::array<std::array<float, kN>, kM> a_ = {};
};

/// How far sums are from those in double.
struct Errors {
  double squares = 0, largest = 0;
  int count = 0, wrong = 0;

  void add(double found, double right) {
    const double error = std::abs(found - right);
    squares += error * error, largest = std::max(largest, error), ++count;
    if (found != right) ++wrong;
  }
  double root_mean_square() const { return std::sqrt(squares / count); }
};

/// The errors of both ways, and the sums themselves, as their difference from 0.
struct BothErrors {
  Errors winograd, definition, sums;
};

/// Random numbers in -1 ... 1: the standard's, the same everywhere.
float draw_number(std::mt19937& random) {
  return static_cast<float>(static_cast<int>(random() >> 8) - (1 << 23)) / (1 << 23);
}

/// Whole ones in -8 ... 8.
float draw_whole(std::mt19937& random) {
  return static_cast<float>(static_cast<int>(random() >> 8) % 17 - 8);
}

/// Some tiles of random numbers in float: by such a tile, and by the definition.
template <class Tile>
BothErrors errors_of(const Tile& tile, int channels, int tiles,
                     float (*draw)(std::mt19937&) = draw_number) {
  constexpr std::size_t kM = Tile::kM, kN = kM + 2, kProducts = Tile::kProducts;
  std::mt19937 random(1);
  BothErrors errors;
  for (int t = 0; t < tiles; ++t) {
    float sums[kProducts] = {}, plain[kM * kM] = {};
    double right[kM * kM] = {};
    for (int c = 0; c < channels; ++c) {
      double filter[9];
      float window[kN * kN], u[kProducts], v[kProducts];
      for (double& number : filter) number = draw(random);
      for (float& number : window) number = draw(random);
      tile.filter(filter, u);
      tile.window(window, v);
      for (std::size_t f = 0; f < kProducts; ++f) sums[f] += u[f] * v[f];
      for (std::size_t i = 0; i < kM * kM; ++i) {
        for (std::size_t tap = 0; tap < 9; ++tap) {
          const float x = window[(i / kM + tap / 3) * kN + i % kM + tap % 3];
          plain[i] += static_cast<float>(filter[tap]) * x;
          right[i] += filter[tap] * double{x};
        }
      }
    }
    float y[kM * kM];
    tile.outputs(sums, y);
    for (std::size_t i = 0; i < kM * kM; ++i) {
      errors.winograd.add(double{y[i]}, right[i]);
      errors.definition.add(double{plain[i]}, right[i]);
      errors.sums.add(right[i], 0);
    }
  }
  return errors;
}

/// Prints what a tile costs, what it rounds, and how exact it is for integers.
template <class Tile>
void print_tile(const char* points, const Tile& tile, std::int64_t factor) {
  constexpr int kChannels = 64, kTiles = 400, kM = Tile::kM;
  const BothErrors real = errors_of(tile, kChannels, kTiles);
  const Errors whole = errors_of(tile, kChannels, kTiles, draw_whole).winograd;
  std::printf("    F(%dx%d)  %-27s %6.2f  %6.1f %8.1f  %6d  %6.1f\n", kM, kM, points,
              static_cast<double>(Tile::kProducts) / (kM * kM),
              real.winograd.root_mean_square() / real.definition.root_mean_square(),
              real.winograd.largest / real.definition.largest, static_cast<int>(factor),
              100.0 * whole.wrong / whole.count);
}

template <int kM>
void print_tile(const char* points, const WinogradMatrices<kM, 3>& matrices) {
  if (!is_exact(matrices)) std::printf("    WRONG matrices\n");
  const RealTile<kM> tile(matrices);
  print_tile(points, tile, tile.factor());
}

/// All tiles of the page.
void print_tiles() {
  const Fraction half(1, 2);
  std::printf(
      "Tiles for 3 x 3: products of an output and a channel; rounding of sums of 64 channels, as "
      "a\n"
      "multiple of the definition's; the odd factor of G; and for integers in -8 ... 8, how "
      "many\noutputs of 100 are not right to the bit:\n\n"
      "    tile    points, and infinity    products    mean  largest  factor   wrong\n");
  print_tile("0 1 -1", winograd_matrices<2, 3>({0, 1, -1}));
  print_tile("0 1 -1 2", winograd_matrices<3, 3>({0, 1, -1, 2}));
  print_tile("0 1 -1 2 -2", winograd_matrices<4, 3>({0, 1, -1, 2, -2}));
  print_tile("0 1 -1 2 3", winograd_matrices<4, 3>({0, 1, -1, 2, 3}));
  print_tile("0 1 -1 1/2 -2", winograd_matrices<4, 3>({0, 1, -1, half, -2}));
  print_tile("0 1 -1 i -i", ComplexTile(), 1);
  print_tile("0 1 -1 2 -2 1/2 -1/2",
             winograd_matrices<6, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2)}));
  print_tile("0 1 -1 2 -2 3 -3", winograd_matrices<6, 3>({0, 1, -1, 2, -2, 3, -3}));
  print_tile("0 1 -1 2 -2 1/2 -1/2 4 -4",
             winograd_matrices<8, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2), 4, -4}));
  std::printf("\n");
}

/// Root mean square errors of sums over more and more channels, in units of the sums' own.
void print_growth() {
  const Fraction half(1, 2);
  std::printf(
      "Rounding of sums, in millionths of their root mean square:\n\n"
      "    channels  definition  F(2x2)  F(4x4)  F(6x6)  F(8x8)\n");
  for (const int channels : {1, 4, 16, 64, 256, 1024}) {
    const int tiles = 6400 / channels + 20;
    const auto relative = [](const Errors& of, const BothErrors& errors) {
      return of.root_mean_square() / errors.sums.root_mean_square() * 1e6;
    };
    const auto two = errors_of(RealTile<2>(winograd_matrices<2, 3>({0, 1, -1})), channels, tiles);
    std::printf("    %8d  %10.3f", channels, relative(two.definition, two));
    const auto print = [&](const BothErrors& errors) {
      std::printf(" %7.3f", relative(errors.winograd, errors));
    };
    print(two);
    print(errors_of(RealTile<4>(winograd_matrices<4, 3>({0, 1, -1, 2, -2})), channels, tiles));
    print(errors_of(RealTile<6>(winograd_matrices<6, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2)})),
                    channels, tiles));
    print(errors_of(
        RealTile<8>(winograd_matrices<8, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2), 4, -4})),
        channels, tiles));
    std::printf("\n");
  }
  std::printf("\n");
}

}  // namespace

int main() {
  print_counts();
  print_pieces();
  print_layer({"B4", 32, 64, 56});
  print_layer({"B10", 64, 512, 28});
  print_tiles();
  print_growth();
  print_spectra();
}
