/// @file real_pairs_inverse.cpp
/// @brief Inverse real FFT: the half spectra of two real lines are combined and transformed back.
///
/// - Before: real_pairs.cpp
///
/// **The idea.** This is the inverse of real_pairs.cpp. A and B, the spectra of two real lines a
/// and b, are given up to the middle; the remaining frequencies are conjugates. The transform is
/// linear, so z = a + i b has the spectrum
///
///     Z[k]      =  A[k] + i B[k]                  k = 0 ... L/2
///     Z[L - k]  =  conj A[k] + i conj B[k]        k = 1 ... L/2 - 1
///
/// and the inverse transform of Z has a as its real part and b as its imaginary part; no separation
/// is needed. Frequencies 0 and L/2 of a real line are real; imaginary parts given there are
/// ignored, as in every FFT library. If the number of lines is odd, the last line is transformed
/// alone, with B = 0.
///
/// **Expect.** As real_pairs: half of the butterflies of two complex lines. Exact over the ring
/// mersenne.
/// **Costs.** Both lines share rounding errors, NaN and infinity. Supports inverse transforms to
/// real lines whose length is a power of two only.
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// x [N][L/2 + 1][2], y [N][L].
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const auto L = static_cast<std::size_t>(fft.L);
  const std::int64_t frequencies = fft.frequencies();
  std::vector<Complex<T>> roots;
  for (std::int64_t m = 0; m < fft.L / 2; ++m) roots.push_back(root_of_unity<T>(m, fft.L));

  std::vector<Complex<T>> from(L), to(L);
  for (std::int64_t n = 0; n < fft.N; n += 2) {
    const bool has_second = n + 1 < fft.N;
    for (std::int64_t k = 0; k < frequencies; ++k) {
      Complex<T> a = point_of<T>(x, n * frequencies + k, false), b = {};
      if (has_second) b = point_of<T>(x, (n + 1) * frequencies + k, false);
      const auto number = static_cast<std::size_t>(k);
      const std::size_t partner = (L - number) % L;
      if (partner == number) a.im = b.im = {};
      // Exchanging the parts turns a forward transform into an inverse one. -quarter_turn(b) is i
      // b.
      from[number] = exchanged_if(true, a - quarter_turn(b));
      from[partner] = exchanged_if(true, conjugate(a) - quarter_turn(conjugate(b)));
    }
    for (std::size_t before = 1; before < L; before *= 2) {
      for (std::size_t j = 0; j < L / 2; ++j) {
        const std::size_t k = j % before;
        const Complex<T> even = from[j];
        const Complex<T> odd = from[j + L / 2] * roots[k * (L / (2 * before))];
        to[2 * j - k] = even + odd;
        to[2 * j - k + before] = even - odd;
      }
      std::swap(from, to);
    }
    for (std::size_t j = 0; j < L; ++j) {
      const Complex<T> z = exchanged_if(true, from[j]);
      const std::int64_t first = n * fft.L + static_cast<std::int64_t>(j);
      y[first] = to_array(z.re);
      if (has_second) y[first + fft.L] = to_array(z.im);
    }
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || !is_to_real(fft)) return "the inverse to lines of real points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  with_numbers_of(fft.ring, [&]<class T>(T) { transform<T>(fft, arrays.x, arrays.y); });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> real_pairs_inverse = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
