/// @file dft.cpp
/// @brief Definition of fft: a sum of L products per point.
///
/// - After: radix2.cpp, cuda_naive/fft/dft.cu, bluestein.cpp
///
/// **The idea.** This is the definition: output k is the sum of all points, each rotated by k steps
/// more than the preceding one. A step is the L-th part of the circle.
///
///     y[k] = x[0] w^0 + x[1] w^k + x[2] w^2k + ...        w = exp(-2 pi i / L)
///
///     k = 1, L = 8:   w^0  w^1  w^2  w^3  w^4 ...          one rotation over the line
///     k = 2:          w^0  w^2  w^4  w^6  w^0 ...          two rotations over the line
///
/// The powers of w repeat after L, so a table of L roots is sufficient, and j k is computed modulo
/// L. The inverse transform rotates in the other direction: the same loops compute it if real and
/// imaginary parts are exchanged before and after. In two dimensions a point is rotated by its
/// column and by its row; a line is a plane with one row. For real points, half of the outputs are
/// stored; the others are their conjugates. The inverse to real points reconstructs the conjugates
/// and keeps the real part of each sum.
///
/// **Expect.** L^2 complex multiply-adds per line: 16.8 million for L = 4096 (an FFT: 25 thousand).
/// The accumulators are in double, because in float the error grows with the length of the line.
/// **Costs.** All problems are supported, with any L and H.
#include <vector>

#include "core/complex.hpp"
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// The type of the accumulators for elements of type T.
template <class T>
using Sum = Complex<typename SumOf<T>::Type>;

/// w^0, w^1 ... w^(length - 1).
template <class T>
std::vector<Sum<T>> roots_of(std::int64_t length) {
  std::vector<Sum<T>> roots;
  for (std::int64_t m = 0; m < length; ++m) {
    roots.push_back(widened(root_of_unity<T>(m, length)));
  }
  return roots;
}

/// The sum of point(0), point(1) ..., as many as there are roots, each rotated by k steps more than
/// the preceding one.
template <class Z, class Point>
Z turned_sum(const std::vector<Z>& roots, std::int64_t k, const Point& point) {
  const auto length = static_cast<std::int64_t>(roots.size());
  Z sum = {};
  std::int64_t turn = 0;  // j k modulo the length
  for (std::int64_t j = 0; j < length; ++j) {
    sum = sum + point(j) * roots[static_cast<std::size_t>(turn)];
    turn += k;
    if (turn >= length) turn -= length;
  }
  return sum;
}

/// x [N][H][frequencies][2] and y [N][H][L], real points. For lines, H is 1.
template <class T>
void transform_to_real(const FftProblem& fft, const float* x, float* y) {
  const std::int64_t H = fft.rows(), L = fft.L, frequencies = fft.frequencies();
  const std::vector<Sum<T>> along_column = roots_of<T>(H), along_row = roots_of<T>(L);
  const auto frequency = [&](std::int64_t n, std::int64_t u, std::int64_t v) {
    const bool stored = v < frequencies;  // otherwise the conjugate of its counterpart
    const std::int64_t row = n * H + (stored ? u : (H - u) % H), column = stored ? v : L - v;
    const Complex<T> z = point_of<T>(x, row * frequencies + column, false);
    return exchanged_if(true, stored ? z : conjugate(z));
  };
  std::int64_t output = 0;
  for (std::int64_t n = 0; n < fft.N; ++n) {
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t w = 0; w < L; ++w, ++output) {
        const Sum<T> sum = turned_sum(along_column, h, [&](std::int64_t u) {
          return turned_sum(along_row, w,
                            [&](std::int64_t v) { return widened(frequency(n, u, v)); });
        });
        y[output] = to_array(exchanged_if(true, narrowed<T>(sum)).re);
      }
    }
  }
}

/// x [N][H][L][2], or [N][H][L] if it is real; y [N][H][frequencies][2]. For lines, H is 1.
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const std::int64_t H = fft.rows(), L = fft.L, frequencies = fft.frequencies();
  const std::vector<Sum<T>> along_column = roots_of<T>(H), along_row = roots_of<T>(L);
  std::int64_t output = 0;
  for (std::int64_t n = 0; n < fft.N; ++n) {
    for (std::int64_t u = 0; u < H; ++u) {
      for (std::int64_t v = 0; v < frequencies; ++v, ++output) {
        const Sum<T> sum = turned_sum(along_column, u, [&](std::int64_t h) {
          return turned_sum(along_row, v, [&](std::int64_t w) {
            return widened(input_point<T>(fft, x, (n * H + h) * L + w));
          });
        });
        set_point(y, output, fft.exchanges(), narrowed<T>(sum));
      }
    }
  }
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  with_numbers_of(fft.ring, [&]<class T>(T) {
    if (is_to_real(fft)) {
      transform_to_real<T>(fft, arrays.x, arrays.y);
    } else {
      transform<T>(fft, arrays.x, arrays.y);
    }
  });
}

std::string choice_in_words(const FftProblem& fft) {
  return text(name_of(fft.ring), is_to_real(fft) ? ", to real points" : "");
}

}  // namespace

extern const Implementation<FftArrays> dft = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
