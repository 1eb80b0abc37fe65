/// @file shared_memory.cu
/// @brief fft: shared memory; one kernel computes all passes, and each block keeps its lines on
/// chip.
///
/// - Before: passes.cu
/// - After: radix8.cu, warp.cu
///
/// **The idea.** A butterfly needs points of its own line only. Each block therefore takes whole
/// lines, and a block barrier replaces the end of a kernel between passes: the points are read from
/// and written to global memory once. Two copies of the lines in shared memory exchange roles after
/// each pass.
///
///     x --load--> A --pass 1--> B --pass 2--> A --pass 3--> B ... --store--> y
///                 |  barrier    |  barrier    |
///
/// A block takes several short lines, so that it has 1024 points.
///
/// **Expect.** Global traffic falls from log2 L copies to one. Now shared memory is the limit: each
/// pass loads and stores every point there, and the stores of early passes have bank conflicts.
/// Where `before` is 1, the lanes of a warp write two points apart and access half of the banks.
/// @expect launches 2, and one of them fills the table
/// @expect loads_per_output.x 1 / 2 = 0.5, and nothing else of memory but factors
/// @expect barriers_per_block 6 + 1 = 7, one a pass, and one behind the loads
/// **Costs.** 16 bytes of shared memory a point. Not supported: lines of more than 4096 points,
/// whose two copies exceed 64 KB, and lengths that are not a power of two.
/// **Try.** Use one copy: read both points, barrier, write both results, barrier. Twice as many
/// lines fit on an SM, with twice as many barriers. Which version is faster?
#include <utility>

#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kThreads = 256;
constexpr int kBlockPoints = 1024;  ///< Least number of points of a block with short lines.
constexpr int kLongestLine = 4096;  ///< Twice in kMaxSharedBytes.

/// Lines that a block takes.
int lines_of_block(const FftProblem& fft) { return std::max(1, kBlockPoints / fft.L); }

/// x [N][L][2], y [N][L][2], twiddles [L]: see fft_twiddles(). A block takes `lines` lines.
/// Grid (ceil(N / lines)), block (kThreads), shared memory for 2 * lines * L points.
template <class T>
__global__ void __launch_bounds__(kThreads)
    fft_shared_memory(FftProblem fft, int lines, const Complex<T>* twiddles, Points<const float> x,
                      Points<float> y) {
  Complex<T>* from = dynamic_shared<Complex<T>>();
  Complex<T>* to = from + lines * fft.L;
  const std::int64_t first = std::int64_t{blockIdx.x} * lines * fft.L;  // point of the block
  const std::int64_t left = fft.points() - first;
  const int count = static_cast<int>(left < lines * fft.L ? left : lines * fft.L);
  const int half = fft.L / 2, thread = static_cast<int>(threadIdx.x);

  for (int i = thread; i < count; i += kThreads) from[i] = x.template get<T>(first + i);
  __syncthreads();  // these writes before the reads of the first pass
  for (int before = 1; before < fft.L; before *= 2) {
    for (int i = thread; i < count / 2; i += kThreads) {
      const int j = i & (half - 1), line = 2 * (i - j);  // butterfly, and where its line begins
      const int k = j & (before - 1);
      const Complex<T> even = from[line + j];
      const Complex<T> odd = from[line + j + half] * twiddles[before + k];
      to[line + 2 * j - k] = even + odd;
      to[line + 2 * j - k + before] = even - odd;
    }
    __syncthreads();  // separates a pass's writes from the next one's reads, and its reads from
                      // the next one's writes, which go to the copy that it has read
    Complex<T>* const done = to;
    to = from;
    from = done;
  }
  for (int i = thread; i < count; i += kThreads) y.set(first + i, from[i]);
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L > kLongestLine) return "lines of at most 4096 points only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const int lines = lines_of_block(fft);
  with_numbers_of(fft.ring, [&]<class T>(T) {
    auto* const twiddles = context.workspace_as<Complex<T>>();
    launch_twiddles(fft.L, 2, twiddles);
    const std::size_t bytes = std::size_t{2} * lines * fft.L * sizeof(Complex<T>);
    launch(fft_shared_memory<T>, {blocks_for(fft.N, lines), kThreads, bytes}, fft, lines, twiddles,
           points_of(arrays.x.as<const float>(), fft.exchanges()),
           points_of(arrays.y.as<float>(), fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> shared_memory = {
    .supports = supports,
    .workspace_bytes = twiddle_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
