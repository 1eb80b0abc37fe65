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
#include <cstdio>
#include <random>

#include "cpu_reference/conv2d/winograd_matrices.hpp"

namespace {

using convladder::cpu_reference::conv2d::Fraction;
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

/// A square of numbers.
template <class T, std::size_t kSide>
using Square = std::array<std::array<T, kSide>, kSide>;

/// A matrix of fractions, in T.
template <class T, std::size_t kRows, std::size_t kColumns>
std::array<std::array<T, kColumns>, kRows> in_type(
    const std::array<std::array<Fraction, kColumns>, kRows>& matrix) {
  std::array<std::array<T, kColumns>, kRows> numbers = {};
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j)
      numbers[i][j] = static_cast<T>(static_cast<double>(matrix[i][j]));
  return numbers;
}

/// matrix * from * matrix^T.
template <class T, std::size_t kRows, std::size_t kColumns>
Square<T, kRows> both_sides(const std::array<std::array<T, kColumns>, kRows>& matrix,
                            const Square<T, kColumns>& from) {
  std::array<std::array<T, kColumns>, kRows> half = {};
  Square<T, kRows> to = {};
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t l = 0; l < kColumns; ++l)
      for (std::size_t j = 0; j < kColumns; ++j) half[i][j] += matrix[i][l] * from[l][j];
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kRows; ++j)
      for (std::size_t l = 0; l < kColumns; ++l) to[i][j] += half[i][l] * matrix[j][l];
  return to;
}

/// How far sums are from those in double.
struct Errors {
  double squares = 0, largest = 0;
  int count = 0;

  void add(double found, double right) {
    const double error = std::abs(found - right);
    squares += error * error, largest = std::max(largest, error), ++count;
  }
  double root_mean_square() const { return std::sqrt(squares / count); }
};

/// The errors of both ways, and the sums themselves, as their difference from 0.
struct BothErrors {
  Errors winograd, definition, sums;
};

/// Some tiles of random numbers in -1 ... 1, in float: by F(kM x kM, 3 x 3), weights transformed in
/// double, and by the definition.
template <std::size_t kM>
BothErrors errors_of(const WinogradMatrices<kM, 3>& matrices, int channels, int tiles) {
  constexpr std::size_t kN = kM + 2;
  const auto a = in_type<float>(matrices.at);
  const auto b = in_type<float>(matrices.bt);
  const auto g = in_type<double>(matrices.g);
  std::mt19937 random(1);  // its numbers are the standard's: the same everywhere
  const auto draw = [&random] {
    return static_cast<float>(static_cast<int>(random() >> 8) - (1 << 23)) / (1 << 23);
  };
  BothErrors errors;
  for (int tile = 0; tile < tiles; ++tile) {
    Square<float, kN> sums = {};
    Square<float, kM> plain = {};
    Square<double, kM> right = {};
    for (int c = 0; c < channels; ++c) {
      Square<double, 3> filter = {};
      Square<float, kN> window = {};
      for (auto& row : filter) std::ranges::generate(row, draw);
      for (auto& row : window) std::ranges::generate(row, draw);
      const auto u = both_sides(g, filter);
      const auto v = both_sides(b, window);
      for (std::size_t i = 0; i < kN; ++i)
        for (std::size_t j = 0; j < kN; ++j) sums[i][j] += static_cast<float>(u[i][j]) * v[i][j];
      for (std::size_t i = 0; i < kM; ++i) {
        for (std::size_t j = 0; j < kM; ++j) {
          for (std::size_t tap = 0; tap < 9; ++tap) {
            const float x = window[i + tap / 3][j + tap % 3];
            plain[i][j] += static_cast<float>(filter[tap / 3][tap % 3]) * x;
            right[i][j] += filter[tap / 3][tap % 3] * double{x};
          }
        }
      }
    }
    const auto y = both_sides(a, sums);
    for (std::size_t i = 0; i < kM; ++i) {
      for (std::size_t j = 0; j < kM; ++j) {
        errors.winograd.add(double{y[i][j]}, right[i][j]);
        errors.definition.add(double{plain[i][j]}, right[i][j]);
        errors.sums.add(right[i][j], 0);
      }
    }
  }
  return errors;
}

/// Prints both errors' ratios.
template <std::size_t kM>
void print_errors(const char* points, const WinogradMatrices<kM, 3>& matrices) {
  const BothErrors errors = errors_of<kM>(matrices, 64, 400);
  std::printf("    F(%zux%zu)    %-33s  %s  %10.1f %8.1f\n", kM, kM, points,
              is_exact(matrices) ? "exact" : "WRONG",
              errors.winograd.root_mean_square() / errors.definition.root_mean_square(),
              errors.winograd.largest / errors.definition.largest);
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
    const auto two = errors_of<2>(winograd_matrices<2, 3>({0, 1, -1}), channels, tiles);
    std::printf("    %8d  %10.3f", channels, relative(two.definition, two));
    const auto print = [&](const BothErrors& errors) {
      std::printf(" %7.3f", relative(errors.winograd, errors));
    };
    print(two);
    print(errors_of<4>(winograd_matrices<4, 3>({0, 1, -1, 2, -2}), channels, tiles));
    print(errors_of<6>(winograd_matrices<6, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2)}), channels,
                       tiles));
    print(errors_of<8>(winograd_matrices<8, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2), 4, -4}),
                       channels, tiles));
    std::printf("\n");
  }
  std::printf("\n");
}

}  // namespace

int main() {
  const Fraction half(1, 2);
  print_counts();
  print_layer({"B4", 32, 64, 56});
  print_layer({"B10", 64, 512, 28});
  std::printf("Rounding of sums of 64 channels, as a multiple of the definition's:\n\n");
  std::printf("    tile      points, and infinity               matrices      mean  largest\n");
  print_errors<2>("0 1 -1", winograd_matrices<2, 3>({0, 1, -1}));
  print_errors<4>("0 1 -1 2 -2", winograd_matrices<4, 3>({0, 1, -1, 2, -2}));
  print_errors<4>("0 1 -1 1/2 -2", winograd_matrices<4, 3>({0, 1, -1, half, -2}));
  print_errors<6>("0 1 -1 2 -2 1/2 -1/2",
                  winograd_matrices<6, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2)}));
  print_errors<6>("0 1 -1 2 -2 3 -3", winograd_matrices<6, 3>({0, 1, -1, 2, -2, 3, -3}));
  print_errors<8>("0 1 -1 2 -2 1/2 -1/2 4 -4",
                  winograd_matrices<8, 3>({0, 1, -1, 2, -2, half, Fraction(-1, 2), 4, -4}));
  std::printf("\n");
  print_growth();
  print_spectra();
}
