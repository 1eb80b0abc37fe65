/// @file stockham.cpp
/// @brief Stockham: each pass writes to a second buffer, in order; no bit reversal.
///
/// - Before: radix2.cpp
/// - After: cuda_optimized/fft/passes.cu, real_pairs.cpp, rows_and_columns.cpp
///
/// **The idea.** A pass need not store a butterfly's results where its points were. All passes read
/// points that are L/2 apart, and write results that are `before` apart, where `before` is the
/// length of the lines that are complete (Stockham, 1966):
///
///     L = 8    reads                    writes                      j = 0 | 1 | 2 | 3
///     pass 1   0 4 | 1 5 | 2 6 | 3 7    0 1 | 2 3 | 4 5 | 6 7       before = 1
///     pass 2   0 4 | 1 5 | 2 6 | 3 7    0 2 | 1 3 | 4 6 | 5 7       before = 2
///     pass 3   0 4 | 1 5 | 2 6 | 3 7    0 4 | 1 5 | 2 6 | 3 7       before = 4
///
/// Butterfly j, with k = j % before, writes to 2 j - k and to 2 j - k + before. Each pass thus
/// moves points towards their final positions, and the last pass leaves them in order: the bit
/// reversal is distributed over the passes at no additional cost.
///
/// **Expect.** As many butterflies as radix2. All reads traverse the two halves of the line in
/// order. This suits a GPU, where neighbouring threads should access neighbouring addresses.
/// **Costs.** A second line of the same length. Supports lengths that are powers of two only.
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// x [N][L][2], y [N][L][2].
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const auto L = static_cast<std::size_t>(fft.L);
  const bool exchange = fft.exchanges();
  std::vector<Complex<T>> roots;
  for (std::int64_t m = 0; m < fft.L / 2; ++m) roots.push_back(root_of_unity<T>(m, fft.L));

  std::vector<Complex<T>> from(L), to(L);
  for (std::int64_t first = 0; first < fft.points(); first += fft.L) {
    for (std::size_t j = 0; j < L; ++j) {
      from[j] = point_of<T>(x, first + static_cast<std::int64_t>(j), exchange);
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
    for (std::size_t k = 0; k < L; ++k) {
      set_point(y, first + static_cast<std::int64_t>(k), exchange, from[k]);
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

extern const Implementation<FftArrays> stockham = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
