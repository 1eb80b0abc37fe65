/// @file bluestein.cpp
/// @brief Bluestein: any length, as a convolution with a chirp by transforms of a power of two.
///
/// - Before: dft.cpp
/// - After: cuda_optimized/fft/bluestein.cu
///
/// **The idea.** Radix-2 algorithms need even lengths, and a prime length cannot be factorised.
/// Bluestein (1970) writes the product in the exponent as a sum of squares:
///
///     j k = (j^2 + k^2 - (k - j)^2) / 2            c[j] = exp(-pi i j^2 / L), a "chirp"
///
///     y[k] = c[k] * sum over j of  ( x[j] c[j] )  *  conj(c[k - j])
///
/// The sum is a convolution with a fixed filter of 2 L - 1 taps. It is computed as a product of
/// spectra of any sufficient length: M >= 2 L - 1, the next power of two.
///
///     x --times c--> [ L points, then zeros ] --FFT of M--> times FFT(conj c) --inverse--> times c
///
/// **Expect.** 2 M log2 M butterflies per line: for L = 8191 and M = 16384, some 460 thousand
/// instead of 67 million products. If the length is a power of two, a direct FFT takes a fifth of
/// that.
/// **Costs.** The filter's spectrum and a line of M points. Data pass through two transforms and
/// three products, so rounding errors are larger than in one transform; all of this is in double,
/// and y is rounded once. Does not support the ring mersenne, which has no root of order 2 L for
/// the longest lines.
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

using Point = Complex<double>;

/// The transform of a line whose length is a power of two, as in stockham.cpp.
class PowerOfTwo {
 public:
  explicit PowerOfTwo(std::size_t length) : to_(length) {
    const auto M = static_cast<std::int64_t>(length);
    for (std::int64_t m = 0; m < M / 2; ++m) roots_.push_back(root_of_unity<double>(m, M));
  }

  void transform(std::vector<Point>& line) {
    const std::size_t M = line.size();
    for (std::size_t before = 1; before < M; before *= 2) {
      for (std::size_t j = 0; j < M / 2; ++j) {
        const std::size_t k = j % before;
        const Point even = line[j];
        const Point odd = line[j + M / 2] * roots_[k * (M / (2 * before))];
        to_[2 * j - k] = even + odd;
        to_[2 * j - k + before] = even - odd;
      }
      std::swap(line, to_);
    }
  }

 private:
  std::vector<Point> roots_, to_;
};

/// The smallest power of two that is at least 2 * length - 1.
std::size_t padded_length(std::size_t length) {
  std::size_t padded = 1;
  while (padded < 2 * length - 1) padded *= 2;
  return padded;
}

/// The transform of lines of any length.
class ChirpTransform {
 public:
  explicit ChirpTransform(int length)
      : padded_(padded_length(static_cast<std::size_t>(length))), line_(padded_), filter_(padded_) {
    for (std::int64_t j = 0; j < length; ++j) {
      // j^2 modulo 2 L, so that the angle keeps its precision.
      chirp_.push_back(
          root_of_unity<double>(j * j % (2 * std::int64_t{length}), 2 * std::int64_t{length}));
    }
    for (std::size_t j = 0; j < chirp_.size(); ++j) {
      filter_[j] = filter_[(padded_ - j) % padded_] = conjugate(chirp_[j]);
    }
    fft_.transform(filter_);
  }

  /// Transforms the points first[0], first[step] ... in place.
  void operator()(Point* first, std::size_t step) {
    const std::size_t L = chirp_.size();
    line_.assign(padded_, {});
    for (std::size_t j = 0; j < L; ++j) line_[j] = first[j * step] * chirp_[j];
    fft_.transform(line_);
    // The inverse transform is a forward transform with real and imaginary parts exchanged before
    // and after.
    for (std::size_t i = 0; i < padded_; ++i) line_[i] = exchanged_if(true, line_[i] * filter_[i]);
    fft_.transform(line_);
    const double scale = 1.0 / static_cast<double>(padded_);
    for (std::size_t k = 0; k < L; ++k) {
      const Point sum = exchanged_if(true, line_[k]) * chirp_[k];
      first[k * step] = {scale * sum.re, scale * sum.im};
    }
  }

 private:
  std::size_t padded_;  ///< M
  std::vector<Point> line_, filter_;
  std::vector<Point> chirp_;
  PowerOfTwo fft_{padded_};
};

/// x [N][H][L][2], or [N][H][L] if it is real; y [N][H][frequencies][2]. For lines, H is 1.
void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  const auto H = static_cast<std::size_t>(fft.rows()), L = static_cast<std::size_t>(fft.L);
  const auto frequencies = static_cast<std::size_t>(fft.frequencies());
  ChirpTransform along_row(fft.L), along_column(fft.rows());
  std::vector<Point> plane(H * L);
  std::int64_t input = 0, output = 0;
  for (int n = 0; n < fft.N; ++n) {
    for (Point& point : plane) point = widened(input_point<float>(fft, arrays.x, input++));
    for (std::size_t h = 0; h < H; ++h) along_row(&plane[h * L], 1);
    if (H > 1) {
      for (std::size_t v = 0; v < frequencies; ++v) along_column(&plane[v], L);
    }
    for (std::size_t u = 0; u < H; ++u) {
      for (std::size_t v = 0; v < frequencies; ++v) {
        set_point(arrays.y, output++, fft.exchanges(), narrowed<float>(plane[u * L + v]));
      }
    }
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.ring != FftRing::complex) return "complex numbers only";
  if (is_to_real(fft)) return "the inverse to complex points only";
  return {};
}

}  // namespace

extern const Implementation<FftArrays> bluestein = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::fft
