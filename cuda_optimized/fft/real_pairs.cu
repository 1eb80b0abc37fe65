/// @file real_pairs.cu
/// @brief fft: real FFT; two real lines as one complex line, separated by half an exchange.
///
/// - Before: radix8.cu
/// - After: real_pairs_inverse.cu
/// - The same maths: cpu_reference/fft/real_pairs.cpp
///
/// **The idea.** Two real lines a and b form one complex line a + i b. After the last pass, a
/// frequency k and its partner L - k determine A[k] and B[k]. A thread has the frequencies t + r
/// L/8 and finishes the lower four; their partners are the upper four of thread L/8 - t. Only upper
/// halves pass through shared memory again, and are read in reverse order:
///
///     thread t     Z[t]  Z[t + L/8]  Z[t + 2 L/8]  Z[t + 3 L/8]  |  upper four: written
///     partners     read from thread L/8 - t, last to first       |
///
/// Frequencies 0 and L/2 are their own partners. The first thread has both, one more than others.
///
/// **Expect.** Half the bytes of as many complex points: x has half of them, and y half of the
/// frequencies. 2^25 points in lines of 1024 are 268 MB, 64 us for a copy on an H200; at the rate
/// of radix8, 75 us. One exchange and a half instead of one.
/// @expect on --n 64 --length 64 --input real
/// @expect loads_per_output.x 64 / 66 = 0.9697, each point once, and 33 frequencies of two parts
/// @expect wavefronts_per_request.shared.load 2, also back to front: 16 points in a row, 32 banks
/// @expect barriers_per_block 2 + 1 = 3, one for the last exchange, and one before it
/// **Costs.** Rows of y have L/2 + 1 points, so only the first begins at a sector. Both lines share
/// rounding errors, NaN and infinity. Real lines of 8 to 4096 points, powers of two.
/// **Try.** Treat one real line of 2 L points as a complex one of L: x[2 j] + i x[2 j + 1]. What
/// does the separation need?
#include "core/fft_to_real.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kThreads = 256;     ///< Threads of a block with short lines.
constexpr int kMaxThreads = 512;  ///< Threads of a block with the longest line.
constexpr int kLongestLine = kRadix * kMaxThreads;

/// Pairs of lines that a block takes.
int pairs_of_block(const FftProblem& fft) { return std::max(1, kThreads * kRadix / fft.L); }

/// Where point i of the block's lines is stored in shared memory: bits 0 to 2 are XORed with bits 4
/// to 6, and bit 3 with bit 6, so that a half-warp accesses 16 different pairs of banks in every
/// pass.
__device__ int place_of(int i) { return i ^ (i >> 4 & 7) ^ (i >> 3 & 8); }

/// x [N][L], y [N][L/2 + 1][2], twiddles [L]: see fft_twiddles(). A block takes `pairs` pairs of
/// lines. Grid (ceil(N / 2 pairs)), block (pairs * L/8), shared memory for a complex line a pair.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    fft_real_pairs(FftProblem fft, int pairs, const Complex<T>* twiddles, const float* x,
                   Points<float> y) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int eighth = fft.L / kRadix, thread = static_cast<int>(threadIdx.x);
  const int t = thread & (eighth - 1), line = kRadix * (thread - t);  // where it begins
  const std::int64_t a = 2 * (std::int64_t{blockIdx.x} * pairs + thread / eighth), b = a + 1;
  const bool exists = a < fft.N, has_second = b < fft.N;

  Complex<T> v[kRadix] = {};
  if (exists) {
#pragma unroll
    for (int r = 0; r < kRadix; ++r) {
      const int j = t + r * eighth;
      v[r] = {number_from<T>(x[a * fft.L + j]),
              number_from<T>(has_second ? x[b * fft.L + j] : 0.0f)};
    }
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
    __syncthreads();  // these reads before the next writes
    if (before <= eighth) {
      turn_and_transform<8>(v, t, eighth, before, twiddles);
    } else if (before == 2 * eighth) {
      turn_and_transform<4>(v, t, eighth, before, twiddles);
    } else {
      turn_and_transform<2>(v, t, eighth, before, twiddles);
    }
  }

  // v[r] is Z[t + r L/8]. Neighbours are contiguous here, so there are no bank conflicts.
  constexpr int kLower = kRadix / 2;
  Complex<T>* const upper = points + line / 2;  // Z[L/2], Z[L/2 + 1] ...
#pragma unroll
  for (int r = kLower; r < kRadix; ++r) upper[t + (r - kLower) * eighth] = v[r];
  __syncthreads();  // these writes before the reads below
  const auto take_apart = [&](int k, Complex<T> z, Complex<T> mirrored) {
    y.set(a * fft.frequencies() + k, halved(z + mirrored));
    if (has_second) y.set(b * fft.frequencies() + k, halved(quarter_turn(z - mirrored)));
  };
  if (!exists) return;
#pragma unroll
  for (int r = 0; r < kLower; ++r) {
    const int k = t + r * eighth;
    take_apart(k, v[r], conjugate(k == 0 ? v[0] : upper[fft.L / 2 - k]));
  }
  if (t == 0) take_apart(fft.L / 2, v[kLower], conjugate(v[kLower]));
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || !fft.is_real()) return "lines of real points only";
  if (is_to_real(fft)) return "the forward transform only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L < kRadix) return "lines of 8 points or more only";
  if (fft.L > kLongestLine) return "lines of at most 4096 points only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const int pairs = pairs_of_block(fft);
  with_numbers_of(fft.ring, [&]<class T>(T) {
    auto* const twiddles = context.workspace_as<Complex<T>>();
    launch_twiddles(fft.L, kRadix, twiddles);
    const auto threads = static_cast<unsigned>(pairs * fft.L / kRadix);
    const std::size_t bytes = std::size_t{1} * pairs * fft.L * sizeof(Complex<T>);
    launch(fft_real_pairs<T>, {blocks_for(fft.N, 2 * pairs), threads, bytes}, fft, pairs, twiddles,
           arrays.x.as<const float>(), points_of(arrays.y.as<float>(), false));
  });
}

std::string choice_in_words(const FftProblem& fft) {
  if (fft.L == kRadix) return "one pass";
  int before = kRadix;
  while (before * kRadix < fft.L) before *= kRadix;
  return text("a last pass of radix ", fft.L / before);
}

}  // namespace

extern const Implementation<FftArrays> real_pairs = {
    .supports = supports,
    .workspace_bytes = twiddle_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
