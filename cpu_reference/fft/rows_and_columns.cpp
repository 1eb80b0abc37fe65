/// @file rows_and_columns.cpp
/// @brief 2-D FFT: the rows of a plane, then its columns.
///
/// - Before: stockham.cpp
///
/// **The idea.** In two dimensions a point is rotated by its column and by its row. The rotation by
/// the row is the same for all points of a row, so it is factored out of the sum over the row. The
/// inner sum is the transform of a line, and so is the outer sum:
///
///     y[u][v] = sum over h of  w_H^(h u)  ( sum over w of  x[h][w] w_L^(w v) )
///
///     h | x x x x  -->  ( row 0 )         | | | |
///       | x x x x  -->  ( row 1 )   then  v v v v   each column by itself
///       | x x x x  -->  ( row 2 )
///
/// The passes accept any distance between the points of a line, 1 or L. The order of rows and
/// columns does not matter.
///
/// **Expect.** H L log2(H L) / 2 butterflies, as many as for a line of H L points: 24 576 for a
/// plane of 64 x 64 instead of 16.8 million products. The points of a column are one row apart, so
/// one point of each cache line is used: on a large plane the columns take longer than the rows.
/// **Costs.** A copy of the plane. Supports complex planes whose extents are powers of two only.
#include <utility>
#include <vector>

#include "core/complex.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::fft {
namespace {

/// A set of lines in a plane.
struct Step {
  std::size_t length, lines;  ///< Points per line, and number of lines.
  std::size_t point, line;    ///< Distance of consecutive points, and of consecutive lines.
};

/// The twiddle factors of a line.
template <class T>
std::vector<Complex<T>> roots_of(std::int64_t length) {
  std::vector<Complex<T>> roots;
  for (std::int64_t m = 0; m < length / 2; ++m) roots.push_back(root_of_unity<T>(m, length));
  return roots;
}

/// Transforms the step's lines in place.
template <class T>
void transform(const Step& step, const std::vector<Complex<T>>& roots, Complex<T>* plane) {
  const std::size_t L = step.length;
  std::vector<Complex<T>> from(L), to(L);
  for (std::size_t first = 0; first < step.lines * step.line; first += step.line) {
    for (std::size_t j = 0; j < L; ++j) from[j] = plane[first + j * step.point];
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
    for (std::size_t k = 0; k < L; ++k) plane[first + k * step.point] = from[k];
  }
}

/// x [N][H][L][2], y [N][H][L][2].
template <class T>
void transform(const FftProblem& fft, const float* x, float* y) {
  const auto H = static_cast<std::size_t>(fft.H), L = static_cast<std::size_t>(fft.L);
  const bool exchange = fft.exchanges();
  const std::vector<Complex<T>> of_rows = roots_of<T>(fft.L), of_columns = roots_of<T>(fft.H);

  std::vector<Complex<T>> plane(H * L);
  for (std::int64_t first = 0; first < fft.points(); first += std::int64_t{fft.H} * fft.L) {
    for (std::size_t i = 0; i < plane.size(); ++i) {
      plane[i] = point_of<T>(x, first + static_cast<std::int64_t>(i), exchange);
    }
    transform<T>({.length = L, .lines = H, .point = 1, .line = L}, of_rows, plane.data());
    transform<T>({.length = H, .lines = L, .point = L, .line = 1}, of_columns, plane.data());
    for (std::size_t i = 0; i < plane.size(); ++i) {
      set_point(y, first + static_cast<std::int64_t>(i), exchange, plane[i]);
    }
  }
}

Declined supports(const FftProblem& fft) {
  if (!fft.has_planes() || fft.is_real()) return "planes of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context&) {
  with_numbers_of(fft.ring, [&]<class T>(T) { transform<T>(fft, arrays.x, arrays.y); });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> rows_and_columns = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::fft
