/// @file passes.cu
/// @brief fft: one kernel per pass, one thread per butterfly: log2 L round trips through global
/// memory.
///
/// - Before: cpu_reference/fft/stockham.cpp
/// - After: shared_memory.cu
///
/// **The idea.** The butterflies of a pass are independent; those of two passes are not. Each pass
/// is therefore a kernel, and the end of a kernel is the barrier between all threads of all blocks.
/// The passes are Stockham's: they read L/2 apart and write `before` apart, and the result is in
/// order.
///
///     x --pass 1--> workspace --pass 2--> y --pass 3--> workspace ... --last pass--> y
///
///     a warp's 32 butterflies read      two runs of 32 points
///     and write, while before < 32:     every other run of `before` points, twice
///
/// **Expect.** L/2 log2 L butterflies replace L^2 products, so memory is the limit. A pass reads
/// and writes all points once: with L = 4096, 12 passes take 12 times as long as a copy. The stores
/// of the first passes fill each sector in two parts, which the L2 cache combines.
/// @expect loads_per_output.x 1 / 2 = 0.5, both parts of a point at once, in the first pass alone
/// @expect loads_per_output.y 2 / 2 = 1, the third pass and the fifth read what was written there
/// @expect launches 6 + 1 = 7, and one that fills the table
/// **Costs.** A second array of N L points in the workspace, and a table of twiddle factors. Not
/// supported: lengths that are not a power of two, and lines of one point.
/// **Try.** Execute two passes in a kernel: four points a thread, two times two butterflies. How
/// many registers does it need, and how many bytes does it save?
#include <utility>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kThreads = 256;
/// Enough to fill the device: 132 SMs hold 8 blocks of 256 threads each. Threads stride over more
/// work.
constexpr std::int64_t kMaxBlocks = 4096;

/// One pass over N lines: lines of `before` points become lines of twice as many.
/// twiddles [L]: see fft_twiddles(). Any one-dimensional grid.
template <class T>
__global__ void fft_passes(FftProblem fft, int before, const Complex<T>* twiddles,
                           Points<const float> from, Points<float> to) {
  const std::int64_t half = fft.L / 2;
  for (const std::int64_t i : grid_stride(fft.points() / 2)) {
    const std::int64_t j = i & (half - 1), first = 2 * (i - j);  // the butterfly, and its line
    const std::int64_t k = j & (before - 1);
    const Complex<T> even = from.template get<T>(first + j);
    const Complex<T> odd = from.template get<T>(first + j + half) * twiddles[before + k];
    to.set(first + 2 * j - k, even + odd);
    to.set(first + 2 * j - k + before, even - odd);
  }
}

/// Layout of the workspace, in order of addresses.
template <class T>
struct Workspace {
  float* other;          ///< As large as y.
  Complex<T>* twiddles;  ///< [L]
  std::size_t bytes;     ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
template <class T>
Workspace<T> workspace_at(const FftProblem& fft, std::byte* begin) {
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  work.other = cutter.take<float>(checked_product({fft.points(), 2}, "floats of a pass"));
  work.twiddles = cutter.take<Complex<T>>(fft.L);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const FftProblem& fft) {
  return workspace_at<float>(fft, nullptr).bytes;  // the same size in both rings
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L < 2) return "lines of two points or more only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  auto* const y = arrays.y.as<float>();
  with_numbers_of(fft.ring, [&]<class T>(T) {
    const auto [other, twiddles, bytes] = workspace_at<T>(fft, context.workspace_as<std::byte>());
    launch_twiddles(fft.L, 2, twiddles);
    const float* from = arrays.x;
    float* to = fft.passes() % 2 != 0 ? y : other;  // so that the last pass writes to y
    for (int pass = 0; pass < fft.passes(); ++pass) {
      const bool first = pass == 0, last = pass + 1 == fft.passes();
      launch(fft_passes<T>, {blocks_for(fft.points() / 2, kThreads, kMaxBlocks), kThreads}, fft,
             1 << pass, twiddles, points_of(from, first && fft.exchanges()),
             points_of(to, last && fft.exchanges()));
      from = to;
      to = to == y ? other : y;
    }
  });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> passes = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
