/// @file bluestein.cu
/// @brief fft: Bluestein (chirp z-transform); any length as a convolution by power-of-two passes.
///
/// - Before: cpu_reference/fft/bluestein.cpp
///
/// **The idea.** With the chirp c[j] = exp(-pi i j^2 / L), a transform of any length L is a
/// convolution with conj(c) (see cpu_reference/fft/bluestein.cpp). The convolution is a product of
/// spectra of M >= 2 L - 1 points, M a power of two. Its passes are those of passes.cu, one thread
/// per butterfly.
///
///     x --modulate--> [N][M] --log2 M passes--> times spectrum --log2 M passes--> demodulate--> y
///          times c     zeros after L points     of conj(c)      (inverse)          times c / M
///
/// A plane is transformed along its rows and then its columns: the same kernels with other strides.
///
/// **Expect.** Memory traffic: 2 log2 M + 3 kernels read and write lines of M points, with M
/// between 2 L and 4 L: 4 to 8 times the bytes of passes.cu, where that supports the length. It
/// replaces L^2 products: from a few hundred points on, it is faster than the definition.
/// @expect on --n 4 --length 61
/// @expect launches 2 + 7 + 1 + 7 + 1 + 7 + 1 = 26, of 128 points; two fill tables
/// @expect loads_per_output.x 2 / 2 = 1, each part of a point once
/// @expect barriers_per_block 0
/// **Costs.** Two arrays of N M points in the workspace, a third for planes, and tables of 4 M
/// points. Two transforms and three products in float make errors about twice those of one
/// transform (docs/oracle.md). Not supported: the ring mersenne, and lines of more than 2^29
/// points.
/// **Try.** Let the first pass multiply by c as it reads x, and the last one as it writes y. How
/// many kernels and bytes remain?
#include <utility>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kThreads = 256;
/// Enough to fill the device: 132 SMs hold 8 blocks of 256 threads each. Threads stride over more
/// work.
constexpr std::int64_t kMaxBlocks = 4096;
constexpr int kLongestLine = 1 << 29;  ///< Its padded length fits in an int.

using Point = Complex<float>;

/// Lines that are transformed independently: all rows, or all columns.
struct Step {
  int length, padded;      ///< Points of a line, and of what it is padded to: L and M.
  int outputs;             ///< Frequencies of a line that are wanted.
  std::int64_t lines;      ///< How many lines.
  std::int64_t neighbour;  ///< Stride from one point of a line to the next, for adjacent lines.

  /// The address of point i of a line, for lines of this length.
  __device__ std::int64_t place(std::int64_t line, std::int64_t i, int points) const {
    return line / neighbour * neighbour * points + line % neighbour + i * neighbour;
  }
};

/// chirp [L]: exp(-pi i j^2 / L); filter [M]: its conjugate, mirrored around point 0, and zeros
/// between. Any one-dimensional grid.
__global__ void fft_bluestein_chirp(int length, int padded, Point* chirp, Point* filter) {
  for (const std::int64_t i : grid_stride(std::int64_t{padded})) {
    const std::int64_t j = i < length ? i : padded - i;  // a distance from point 0
    Point of_filter = {0, 0};
    if (j < length) {
      // j^2 is reduced modulo 2 L to keep the precision of the angle.
      const std::int64_t turn = 2 * std::int64_t{length};
      const Point root = root_of_unity<float>(j * j % turn, turn);
      if (i < length) chirp[i] = root;
      of_filter = conjugate(root);
    }
    filter[i] = of_filter;
  }
}

/// to [lines][M]: the points times the chirp, then zeros.
/// @param plane the result of the step before; null: x is read. Any one-dimensional grid.
__global__ void fft_bluestein_modulate(FftProblem fft, Step step, const Point* chirp,
                                       const float* x, const Point* plane, Point* to) {
  for (const std::int64_t i : grid_stride(step.lines * step.padded)) {
    const std::int64_t j = i & (step.padded - 1), line = i / step.padded;
    Point point = {0, 0};
    if (j < step.length) {
      const std::int64_t from = step.place(line, j, step.length);
      point = (plane != nullptr ? plane[from] : input_point<float>(fft, x, from)) * chirp[j];
    }
    to[i] = point;
  }
}

/// One pass over lines of `padded` points: lines of `before` points become lines of twice as many,
/// see passes.cu. twiddles [M]: see fft_twiddles(). Any one-dimensional grid.
__global__ void fft_bluestein_padded_pass(std::int64_t butterflies, int padded, int before,
                                          const Point* twiddles, const Point* from, Point* to) {
  const std::int64_t half = padded / 2;
  for (const std::int64_t i : grid_stride(butterflies)) {
    const std::int64_t j = i & (half - 1), first = 2 * (i - j);  // the butterfly, and its line
    const std::int64_t k = j & (before - 1);
    const Point even = from[first + j];
    const Point odd = from[first + j + half] * twiddles[before + k];
    to[first + 2 * j - k] = even + odd;
    to[first + 2 * j - k + before] = even - odd;
  }
}

/// Multiplies lines [lines][M] by the filter's spectrum [M], and exchanges real and imaginary
/// parts, so that the next forward transform is an inverse one. Any one-dimensional grid.
__global__ void fft_bluestein_filter(std::int64_t points, int padded, const Point* spectrum,
                                     Point* lines) {
  for (const std::int64_t i : grid_stride(points)) {
    lines[i] = exchanged_if(true, lines[i] * spectrum[i & (padded - 1)]);
  }
}

/// The first frequencies of each line [lines][M], times the chirp and 1 / M.
/// @param plane where they go; null: to y. Any one-dimensional grid.
__global__ void fft_bluestein_demodulate(FftProblem fft, Step step, const Point* chirp,
                                         const Point* lines, Point* plane, float* y) {
  const float scale = 1.0f / static_cast<float>(step.padded);  // a power of two: it rounds nothing
  for (const std::int64_t i : grid_stride(step.lines * step.outputs)) {
    const std::int64_t k = i % step.outputs, line = i / step.outputs;
    const Point sum = exchanged_if(true, lines[line * step.padded + k]) * chirp[k];
    const Point point = {scale * sum.re, scale * sum.im};
    const std::int64_t to = step.place(line, k, step.outputs);
    if (plane != nullptr) {
      plane[to] = point;
    } else {
      set_point(y, to, fft.exchanges(), point);
    }
  }
}

/// log2 of the padded length.
int padded_bits(int length) {
  int bits = 0;
  while ((std::int64_t{1} << bits) < 2 * std::int64_t{length} - 1) ++bits;
  return bits;
}

Step rows_of(const FftProblem& fft) {
  return {fft.L, 1 << padded_bits(fft.L), fft.frequencies(), std::int64_t{fft.N} * fft.rows(), 1};
}
Step columns_of(const FftProblem& fft) {
  return {fft.H, 1 << padded_bits(fft.H), fft.H, std::int64_t{fft.N} * fft.frequencies(),
          fft.frequencies()};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  Point *lines, *other;         ///< [lines][M], of the larger step, twice.
  Point* plane;                 ///< The result of the rows, input of the columns; null for lines.
  Point *chirp, *twiddles;      ///< [L] and [M].
  Point *spectrum, *of_passes;  ///< [M], of the filter; and as much for its passes.
  std::size_t bytes;            ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const FftProblem& fft, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  const Step rows = rows_of(fft), columns = fft.has_planes() ? columns_of(fft) : rows;
  constexpr std::int64_t kBytes = sizeof(Point);
  const auto bytes_of = [](const Step& step) {
    return checked_product({step.lines, step.padded, kBytes}, "bytes of padded lines");
  };
  const std::int64_t points = std::max(bytes_of(rows), bytes_of(columns)) / kBytes;
  const int longest = std::max(rows.padded, columns.padded);
  work.lines = cutter.take<Point>(points);
  work.other = cutter.take<Point>(points);
  if (fft.has_planes()) work.plane = cutter.take<Point>(fft.outputs());
  work.chirp = cutter.take<Point>(longest);
  work.twiddles = cutter.take<Point>(longest);
  work.spectrum = cutter.take<Point>(longest);
  work.of_passes = cutter.take<Point>(longest);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const FftProblem& fft) { return workspace_at(fft, nullptr).bytes; }

Declined supports(const FftProblem& fft) {
  if (fft.ring != FftRing::complex) return "complex numbers only";
  if (is_to_real(fft)) return "the inverse to complex points only";
  if (fft.L > kLongestLine || fft.rows() > kLongestLine) return "lines of at most 2^29 points only";
  return {};
}

unsigned blocks_of(std::int64_t work) { return blocks_for(work, kThreads, kMaxBlocks); }

/// All passes over lines of `padded` points. @return where the result is: `lines` or `other`
Point* transform(std::int64_t count, int padded, const Point* twiddles, Point* lines,
                 Point* other) {
  const std::int64_t butterflies = count * (padded / 2);
  for (int before = 1; before < padded; before *= 2) {
    launch(fft_bluestein_padded_pass, {blocks_of(butterflies), kThreads}, butterflies, padded,
           before, twiddles, lines, other);
    std::swap(lines, other);
  }
  return lines;
}

/// Rows, or columns. @param from, to the plane; null: x, or y
void run_step(const FftProblem& fft, const Step& step, const Workspace& work,
              const FftArrays& arrays, const Point* from, Point* to) {
  const std::int64_t points = step.lines * step.padded;
  launch_twiddles(step.padded, 2, work.twiddles);
  launch(fft_bluestein_chirp, {blocks_of(step.padded), kThreads}, step.length, step.padded,
         work.chirp, work.spectrum);
  const Point* spectrum = transform(1, step.padded, work.twiddles, work.spectrum, work.of_passes);
  launch(fft_bluestein_modulate, {blocks_of(points), kThreads}, fft, step, work.chirp,
         arrays.x.as<const float>(), from, work.lines);
  Point* lines = transform(step.lines, step.padded, work.twiddles, work.lines, work.other);
  launch(fft_bluestein_filter, {blocks_of(points), kThreads}, points, step.padded, spectrum, lines);
  lines = transform(step.lines, step.padded, work.twiddles, lines,
                    lines == work.lines ? work.other : work.lines);
  launch(fft_bluestein_demodulate, {blocks_of(step.lines * step.outputs), kThreads}, fft, step,
         work.chirp, lines, to, arrays.y.as<float>());
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(fft, context.workspace_as<std::byte>());
  run_step(fft, rows_of(fft), work, arrays, nullptr, work.plane);
  if (fft.has_planes()) run_step(fft, columns_of(fft), work, arrays, work.plane, nullptr);
}

}  // namespace

extern const Implementation<FftArrays> bluestein = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
