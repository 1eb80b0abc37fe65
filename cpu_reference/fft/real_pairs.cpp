/// @file real_pairs.cpp
/// @brief Real FFT: two real lines are transformed as one complex line and separated by conjugate
/// symmetry.
///
/// - Before: stockham.cpp
/// - After: real_pairs_inverse.cpp
///
/// **The idea.** The spectrum of a real line is symmetric: frequency L - k is the conjugate of
/// frequency k. L/2 + 1 frequencies are sufficient, and half of a complex transform is redundant.
/// Therefore the imaginary parts hold another real line, z = a + i b. The transform is linear, so
///
///     Z[k]            =  A[k] + i B[k]          A[k] = (Z[k] + conj Z[L - k]) / 2
///     conj(Z[L - k])  =  A[k] - i B[k]          B[k] = (Z[k] - conj Z[L - k]) / 2 i
///
/// L - k is modulo L: frequencies 0 and L/2 are their own partners. If the number of lines is odd,
/// the last line is transformed alone, with b = 0.
///
/// **Expect.** Half of the butterflies of two complex lines, and two additions per frequency. Over
/// the ring mersenne the result is exact: the conjugate of a root of unity is its inverse, and one
/// half is 2^16.
/// **Costs.** Both lines have the rounding error of the larger one: if a is a million times b, B
/// has few correct digits. NaN and infinity reach both lines. Supports real lines whose length is a
/// power of two only.
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// x [N][L], y [N][L/2 + 1][2].
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const auto L = static_cast<std::size_t>(fft.L);
  const std::int64_t frequencies = fft.frequencies();
  std::vector<Complex<T>> roots;
  for (std::int64_t m = 0; m < fft.L / 2; ++m) roots.push_back(root_of_unity<T>(m, fft.L));

  std::vector<Complex<T>> from(L), to(L);
  for (std::int64_t n = 0; n < fft.N; n += 2) {
    const bool has_second = n + 1 < fft.N;
    for (std::size_t j = 0; j < L; ++j) {
      const std::int64_t first = n * fft.L + static_cast<std::int64_t>(j);
      from[j] = {number_from<T>(x[first]), number_from<T>(has_second ? x[first + fft.L] : 0)};
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
    for (std::int64_t k = 0; k < frequencies; ++k) {
      const auto number = static_cast<std::size_t>(k);
      const Complex<T> z = from[number], mirrored = conjugate(from[(L - number) % L]);
      set_point(y, n * frequencies + k, false, halved(z + mirrored));
      if (!has_second) continue;
      set_point(y, (n + 1) * frequencies + k, false, halved(quarter_turn(z - mirrored)));
    }
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || !fft.is_real()) return "lines of real points only";
  if (is_to_real(fft)) return "the forward transform only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  with_numbers_of(fft.ring, [&]<class T>(T) { transform<T>(fft, arrays.x, arrays.y); });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> real_pairs = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
