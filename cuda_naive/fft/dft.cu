/// @file dft.cu
/// @brief Naive CUDA DFT: one thread per point of y.
///
/// - Before: cpu_reference/fft/dft.cpp
///
/// **The idea.** The points of y are independent, so each is computed by one thread, with the sum
/// of the definition in one or two dimensions. The roots of unity are in a table that a preceding
/// kernel fills.
///
///     thread k:   x[0] w[0] + x[1] w[k] + x[2] w[2 k] + ...       j k is counted modulo L
///                 ----        ----        all threads of a line read the same point
///
/// **Expect.** L complex multiply-adds per point, in double, and L loads of roots at stride k: a
/// warp's load touches 32 elements of the table, but only one of x. The loads of the table, which
/// stays in the caches, dominate the time: for L = 4096 they are a thousand times the traffic of x
/// and y.
/// @expect loads_per_output.x 2 * 64 / 2 = 64, both parts of all points of the line, for a point
/// @expect sectors_per_request.x.load 1, all lanes read the same float
/// @expect launches 2, and one of them fills the table
/// **Costs.** A table of L + H roots in the workspace. L and H are arbitrary. Does not support the
/// inverse transform to real points.
/// **Try.** Let thread k start its sum at point k instead of 0. The terms are the same. Are the
/// loads of the table more local?
#include "core/complex.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_naive::fft {
namespace {

constexpr int kThreads = 256;
/// Enough blocks to fill any current GPU: 132 SMs hold 8 blocks of 256 threads each. Larger
/// problems are processed by a grid-stride loop.
constexpr std::int64_t kMaxBlocks = 2048;

/// The table of roots: those of order L, followed by those of order H.
HOST_DEVICE std::int64_t roots_of(const FftProblem& fft) {
  return std::int64_t{fft.L} + fft.rows();
}

/// roots [L + H]: entry m is exp(-2 pi i m / L), and entry L + m is exp(-2 pi i m / H). Launch with
/// any one-dimensional grid.
template <class T>
__global__ void fft_dft_roots(FftProblem fft, Complex<T>* roots) {
  for (const std::int64_t m : grid_stride(roots_of(fft))) {
    roots[m] = m < fft.L ? root_of_unity<T>(m, fft.L) : root_of_unity<T>(m - fft.L, fft.rows());
  }
}

/// x [N][H][L][2], or [N][H][L] if it is real; y [N][H][frequencies][2], roots [L + H]. For lines,
/// H is 1. Launch with any one-dimensional grid.
template <class T>
__global__ void fft_dft(FftProblem fft, const Complex<T>* roots, const float* x, float* y) {
  using Sum = Complex<typename SumOf<T>::Type>;
  const std::int64_t H = fft.rows(), L = fft.L, frequencies = fft.frequencies();
  for (const std::int64_t output : grid_stride(fft.outputs())) {
    const std::int64_t v = output % frequencies, row = output / frequencies;
    const std::int64_t u = row % H, first = (row - u) * L;
    Sum sum = {};
    std::int64_t turn_of_row = 0;  // h u modulo H
    for (std::int64_t h = 0; h < H; ++h) {
      Sum sum_of_row = {};
      std::int64_t turn = 0;  // w v modulo L
      for (std::int64_t w = 0; w < L; ++w) {
        const Complex<T> point = input_point<T>(fft, x, first + h * L + w);
        sum_of_row = sum_of_row + widened(point) * widened(roots[turn]);
        turn += v;
        if (turn >= L) turn -= L;
      }
      sum = sum + sum_of_row * widened(roots[L + turn_of_row]);
      turn_of_row += u;
      if (turn_of_row >= H) turn_of_row -= H;
    }
    set_point(y, output, fft.exchanges(), narrowed<T>(sum));
  }
}

Declined supports(const FftProblem& fft) {
  if (is_to_real(fft)) return "the inverse to complex points only";
  return {};
}

std::size_t workspace_bytes(const FftProblem& fft) {
  return static_cast<std::size_t>(roots_of(fft)) *
         sizeof(Complex<float>);  // the same size in both rings
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  with_numbers_of(fft.ring, [&]<class T>(T) {
    auto* const roots = context.workspace_as<Complex<T>>();
    launch(fft_dft_roots<T>, {blocks_for(roots_of(fft), kThreads, kMaxBlocks), kThreads}, fft,
           roots);
    const unsigned blocks = blocks_for(fft.outputs(), kThreads, kMaxBlocks);
    launch(fft_dft<T>, {blocks, kThreads}, fft, roots, arrays.x.as<const float>(),
           arrays.y.as<float>());
  });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> dft = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_naive::fft
