/// @file radix2.cpp
/// @brief Cooley-Tukey radix 2: log2 L passes of butterflies, in bit-reversed order.
///
/// - Before: dft.cpp
/// - After: stockham.cpp
///
/// **The idea.** The even points and the odd points form two lines with transforms E and O. In the
/// whole line, an odd point is rotated by half a step more than in its half, so
///
///     y[k]       = E[k] + w^k O[k]            a butterfly:   E -----+--- y[k]
///     y[k + L/2] = E[k] - w^k O[k]                                 x
///                                                      O w^k ------+--- y[k + L/2]
///
/// (Cooley and Tukey, 1965; the halving is by Danielson and Lanczos, 1942.) Each half is halved in
/// the same way, down to lines of one point, which are their own transforms: log2 L passes over the
/// line. Repeated sorting of even points before odd ones sorts by the lowest bit, then the next:
/// point j moves to the index with the reversed bits of j.
///
///     0 1 2 3 4 5 6 7  ->  0 2 4 6 | 1 3 5 7  ->  0 4 | 2 6 | 1 5 | 3 7       3 = 011 -> 110 = 6
///
/// **Expect.** L/2 log2 L butterflies: 24 576 for L = 4096 instead of 16.8 million products.
/// Rounding errors are smaller, too: a point takes part in log2 L sums instead of one sum of L
/// terms.
/// **Costs.** The bit-reversal pass has no locality. Supports lengths that are powers of two only.
#include <bit>
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// The lowest `bits` bits of i in reverse order.
std::size_t reversed(std::size_t i, int bits) {
  std::size_t result = 0;
  for (int bit = 0; bit < bits; ++bit) result |= (i >> bit & 1) << (bits - 1 - bit);
  return result;
}

/// x [N][L][2], y [N][L][2].
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const auto L = static_cast<std::size_t>(fft.L);
  const bool exchange = fft.exchanges();
  const int bits = std::countr_zero(L);
  std::vector<Complex<T>> roots;
  for (std::int64_t m = 0; m < fft.L / 2; ++m) roots.push_back(root_of_unity<T>(m, fft.L));

  std::vector<Complex<T>> line(L);
  for (std::int64_t first = 0; first < fft.points(); first += fft.L) {
    for (std::size_t j = 0; j < L; ++j) {
      line[reversed(j, bits)] = point_of<T>(x, first + static_cast<std::int64_t>(j), exchange);
    }
    for (std::size_t half = 1; half < L; half *= 2) {
      for (std::size_t begin = 0; begin < L; begin += 2 * half) {
        for (std::size_t k = 0; k < half; ++k) {
          const Complex<T> even = line[begin + k];
          const Complex<T> odd = line[begin + half + k] * roots[k * (L / (2 * half))];
          line[begin + k] = even + odd;
          line[begin + half + k] = even - odd;
        }
      }
    }
    for (std::size_t k = 0; k < L; ++k) {
      set_point(y, first + static_cast<std::int64_t>(k), exchange, line[k]);
    }
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  with_numbers_of(fft.ring, [&]<class T>(T) { transform<T>(fft, arrays.x, arrays.y); });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> radix2 = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
