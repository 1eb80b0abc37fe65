/// @file dft.cpp
/// @brief fft, rung 1: the definition, a sum of L products for each of L outputs.
///
/// - After: radix2.cpp, cuda_naive/fft/dft.cu
///
/// **The idea.** There is none yet: output k is the sum of all points, each turned by k steps more
/// than the one before it. A step is an L-th of the circle.
///
///     y[k] = x[0] w^0 + x[1] w^k + x[2] w^2k + ...        w = exp(-2 pi i / L)
///
///     k = 1, L = 8:   w^0  w^1  w^2  w^3  w^4 ...          one turn over the line
///     k = 2:          w^0  w^2  w^4  w^6  w^0 ...          two: a frequency is a number of turns
///
/// The powers of w repeat after L, so that a table of L roots is enough, and j k is counted modulo
/// L. An inverse transform turns the other way: with real and imaginary parts exchanged before and
/// after, the same loops do it.
///
/// **Expect.** L^2 complex multiply-adds a line: 16.8 million for L = 4096, where an FFT needs some
/// 25 thousand. Sums are in double: a float would lose more digits the longer the line is.
/// **Costs.** Nothing is declined: here L may be any number.
#include <vector>

#include "core/complex.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// x [N][L][2], y [N][L][2].
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const std::int64_t L = fft.L;
  const bool exchange = fft.exchanges();
  std::vector<Complex<T>> roots;
  for (std::int64_t m = 0; m < L; ++m) roots.push_back(root_of_unity<T>(m, L));

  for (std::int64_t first = 0; first < fft.points(); first += L) {
    for (std::int64_t k = 0; k < L; ++k) {
      Complex<typename SumOf<T>::Type> sum = {};
      std::int64_t turn = 0;  // j k modulo L
      for (std::int64_t j = 0; j < L; ++j) {
        const Complex<T> root = roots[static_cast<std::size_t>(turn)];
        sum = sum + widened(point_of<T>(x, first + j, exchange)) * widened(root);
        turn += k;
        if (turn >= L) turn -= L;
      }
      set_point(y, first + k, exchange, narrowed<T>(sum));
    }
  }
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  with_numbers_of(fft.ring, [&]<class T>(T) { transform<T>(fft, arrays.x, arrays.y); });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> dft = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
