/// @file real_pairs_inverse.cu
/// @brief fft: inverse real FFT; half an exchange combines two half spectra into one complex line.
///
/// - Before: real_pairs.cu
/// - The same maths: cpu_reference/fft/real_pairs_inverse.cpp
///
/// **The idea.** The inverse of real_pairs.cu. Frequency k of both lines determines two points of
/// the complex line, Z[k] = A[k] + i B[k] and Z[L - k] = conj A[k] + i conj B[k]. A thread reads
/// the lower four of its frequencies t + r L/8; the block reads each frequency once. The points of
/// the upper half pass through shared memory, last to first:
///
///     thread t     A, B[t]  [t + L/8]  [t + 2 L/8]  [t + 3 L/8]  ->  Z[t] ...: kept
///     partners     Z[L - t] ...: written, and read by their threads  |  upper four
///
/// The rest is a complex transform: its real parts are a, its imaginary parts are b.
///
/// **Expect.** The same bytes as real_pairs, with reads and writes exchanged: 2^25 points in lines
/// of 1024 are 268 MB, 64 us for a copy on an H200. One exchange and a half.
/// @expect on --n 64 --length 64 --input real --direction inverse
/// @expect loads_per_output.x 33 / 64 = 0.5156, each frequency once, both of its parts together
/// @expect barriers_per_block 2 + 2 = 4, two for the partners, and two for the one exchange
/// @expect launches 2, and one of them fills the table of twiddle factors
/// **Costs.** Rows of x have L/2 + 1 points, so only the first begins at a sector. Both lines share
/// rounding errors, NaN and infinity. Inverse transforms of real lines of 8 to 4096 points, powers
/// of two.
/// **Try.** Read the partners' frequencies again instead of exchanging points. How many sectors
/// does a warp's load touch, and which cache serves them?
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

/// x [N][L/2 + 1][2], y [N][L], twiddles [L]: see fft_twiddles(). A block takes `pairs` pairs of
/// lines. Grid (ceil(N / 2 pairs)), block (pairs * L/8), shared memory for a complex line a pair.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    fft_real_pairs_inverse(FftProblem fft, int pairs, const Complex<T>* twiddles,
                           Points<const float> x, float* y) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int eighth = fft.L / kRadix, thread = static_cast<int>(threadIdx.x);
  const int t = thread & (eighth - 1), line = kRadix * (thread - t);  // where it begins
  const std::int64_t a = 2 * (std::int64_t{blockIdx.x} * pairs + thread / eighth), b = a + 1;
  const bool exists = a < fft.N, has_second = b < fft.N;

  constexpr int kLower = kRadix / 2;
  Complex<T> v[kRadix] = {};
  Complex<T>* const upper = points + line / 2;  // Z[L/2], Z[L/2 + 1] ...
  // -quarter_turn(z) is i z. For an inverse transform, real and imaginary parts are exchanged
  // before and after.
  const auto put_together = [](Complex<T> of_a, Complex<T> of_b) {
    return exchanged_if(true, of_a - quarter_turn(of_b));
  };
  if (exists) {
#pragma unroll
    for (int r = 0; r < kLower; ++r) {
      const int k = t + r * eighth;
      Complex<T> of_a = x.template get<T>(a * fft.frequencies() + k), of_b = {};
      if (has_second) of_b = x.template get<T>(b * fft.frequencies() + k);
      if (k == 0) of_a.im = of_b.im = T{};  // frequency 0 is its own partner
      v[r] = put_together(of_a, of_b);
      if (k != 0) upper[fft.L / 2 - k] = put_together(conjugate(of_a), conjugate(of_b));
    }
    if (t == 0) {  // and so is frequency L/2
      Complex<T> of_a = x.template get<T>(a * fft.frequencies() + fft.L / 2), of_b = {};
      if (has_second) of_b = x.template get<T>(b * fft.frequencies() + fft.L / 2);
      of_a.im = of_b.im = T{};
      upper[0] = put_together(of_a, of_b);
    }
  }
  __syncthreads();  // these writes before the reads below
  if (exists) {
#pragma unroll
    for (int r = kLower; r < kRadix; ++r) v[r] = upper[t + (r - kLower) * eighth];
  }
  __syncthreads();  // these reads before the next writes

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

  if (!exists) return;
#pragma unroll
  for (int r = 0; r < kRadix; ++r) {
    const int j = t + r * eighth;
    const Complex<T> z = exchanged_if(true, v[r]);
    y[a * fft.L + j] = to_array(z.re);
    if (has_second) y[b * fft.L + j] = to_array(z.im);
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || !is_to_real(fft)) return "the inverse to lines of real points only";
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
    launch(fft_real_pairs_inverse<T>, {blocks_for(fft.N, 2 * pairs), threads, bytes}, fft, pairs,
           twiddles, points_of(arrays.x.as<const float>(), false), arrays.y.as<float>());
  });
}

std::string choice_in_words(const FftProblem& fft) {
  if (fft.L == kRadix) return "one pass";
  int before = kRadix;
  while (before * kRadix < fft.L) before *= kRadix;
  return text("a last pass of radix ", fft.L / before);
}

}  // namespace

extern const Implementation<FftArrays> real_pairs_inverse = {
    .supports = supports,
    .workspace_bytes = twiddle_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
