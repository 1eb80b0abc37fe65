/// @file radix8.cu
/// @brief fft: register radix 8; a thread holds eight points and computes three radix-2 passes at
/// once.
///
/// - Before: shared_memory.cu
/// - After: radix16.cu, real_pairs.cu, plane.cu, four_step.cu
///
/// **The idea.** A thread that holds eight points computes three passes before it needs other
/// points: one pass of radix 8. Threads then exchange points in place through shared memory, since
/// the old ones are in registers. The last pass has radix 8, 4 or 2.
///
///     L = 512    t + 0, 64, 128 ... 448  ->  radix 8  ->  exchange  ->  radix 8  -> ...
///     thread t reads points L/8 apart and writes `before` apart, as Stockham's passes do
///
/// Writes `before` apart would have bank conflicts: with `before` 1, lanes write 8 points apart.
/// place_of() therefore XORs lower bits of a point's index with higher ones: a half-warp, which one
/// wavefront of 8-byte accesses serves, then accesses 16 different pairs of banks in every pass.
///
/// **Expect.** Loads and stores of shared memory fall to a third, without dependences between them.
/// There are 7 twiddle factors for 8 points in 3 passes, instead of 12; other rotations, by
/// quarters and eighths, are part of the butterfly. Predicted: at least 75 % of the rate of a copy.
/// @expect loads_per_output.shared 1 / 2 = 0.5, one exchange between two passes of radix 8
/// @expect wavefronts_per_request.shared.store 256 / 128 = 2, by place_of() no bank is asked twice
/// @expect wavefronts_per_request.shared.load 256 / 128 = 2, likewise
/// @expect barriers_per_block 1, between the two sides of the exchange
/// **Costs.** About 50 registers a thread. Lines of 8 to 4096 points, powers of two.
/// **Try.** Leave place_of() out. Which pass has bank conflicts, and how many-way are they?
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kThreads = 256;     ///< Threads of a block with short lines.
constexpr int kMaxThreads = 512;  ///< Threads of a block with the longest line.
constexpr int kLongestLine = kRadix * kMaxThreads;

/// Lines that a block takes.
int lines_of_block(const FftProblem& fft) { return std::max(1, kThreads * kRadix / fft.L); }

/// Where point i of the block's lines is stored in shared memory: bits 0 to 2 are XORed with bits 4
/// to 6, and bit 3 with bit 6, so that a half-warp accesses 16 different pairs of banks in every
/// pass.
__device__ int place_of(int i) { return i ^ (i >> 4 & 7) ^ (i >> 3 & 8); }

/// x [N][L][2], y [N][L][2], twiddles [L]: see fft_twiddles(). A block takes as many lines as it
/// has times L/8 threads. Grid (ceil(N / lines)), block (lines * L/8), shared memory for its
/// points.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    fft_radix8(FftProblem fft, const Complex<T>* twiddles, Points<const float> x, Points<float> y) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int eighth = fft.L / kRadix, thread = static_cast<int>(threadIdx.x);
  const int t = thread & (eighth - 1), line = kRadix * (thread - t);  // where it begins
  const std::int64_t first = std::int64_t{blockIdx.x} * kRadix * blockDim.x + line + t;
  const bool exists = first < fft.points();

  Complex<T> v[kRadix] = {};
  if (exists) {
#pragma unroll
    for (int r = 0; r < kRadix; ++r) v[r] = x.template get<T>(first + r * eighth);
  }
  butterfly<kRadix, 1>(v);
  for (int before = 1; before < eighth;) {
    const int k = t & (before - 1);
#pragma unroll
    for (int r = 0; r < kRadix; ++r) {
      points[place_of(line + kRadix * (t - k) + k + r * before)] = v[r];
    }
    __syncthreads();  // these writes before the reads below
#pragma unroll
    for (int r = 0; r < kRadix; ++r) v[r] = points[place_of(line + t + r * eighth)];
    before *= kRadix;
    if (before < eighth) __syncthreads();  // these reads before the writes of the next pass
    if (before <= eighth) {
      turn_and_transform<8>(v, t, eighth, before, twiddles);
    } else if (before == 2 * eighth) {
      turn_and_transform<4>(v, t, eighth, before, twiddles);
    } else {
      turn_and_transform<2>(v, t, eighth, before, twiddles);
    }
  }
  if (exists) {
#pragma unroll
    for (int r = 0; r < kRadix; ++r) y.set(first + r * eighth, v[r]);
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L < kRadix) return "lines of 8 points or more only";
  if (fft.L > kLongestLine) return "lines of at most 4096 points only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const int lines = lines_of_block(fft);
  with_numbers_of(fft.ring, [&]<class T>(T) {
    auto* const twiddles = context.workspace_as<Complex<T>>();
    launch_twiddles(fft.L, kRadix, twiddles);
    const auto threads = static_cast<unsigned>(lines * fft.L / kRadix);
    const std::size_t bytes = std::size_t{1} * lines * fft.L * sizeof(Complex<T>);
    launch(fft_radix8<T>, {blocks_for(fft.N, lines), threads, bytes}, fft, twiddles,
           points_of(arrays.x.as<const float>(), fft.exchanges()),
           points_of(arrays.y.as<float>(), fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) {
  if (fft.L == kRadix) return "one pass";
  int before = kRadix;
  while (before * kRadix < fft.L) before *= kRadix;
  return text("a last pass of radix ", fft.L / before);
}

}  // namespace

extern const Implementation<FftArrays> radix8 = {
    .supports = supports,
    .workspace_bytes = twiddle_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
