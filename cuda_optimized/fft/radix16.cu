/// @file radix16.cu
/// @brief fft: register radix 16; 4096 = 16 x 16 x 16 points take two exchanges instead of three.
///
/// - Before: radix8.cu
///
/// **The idea.** With sixteen points a thread, a pass of radix 16 is four passes of radix 2. Lines
/// of 1024 and more points take two exchanges instead of three. The last pass has radix 16, 8, 4 or
/// 2.
///
///     L = 4096    radix 16  ->  exchange  ->  radix 16  ->  exchange  ->  radix 16
///     L =   64    radix 16  ->  exchange  ->  radix 4: four butterflies a thread
///
/// The loop over two exchanges is unrolled, so `before` is a compile-time constant, 1 and then 16,
/// and all offsets of points and twiddle factors are constants from one address each. For that,
/// place_of() pads one point after every 16 instead of XORing: a half-warp still accesses 16
/// different pairs of banks.
///
/// **Expect.** For 4096 points, two thirds of the shared-memory requests, and three barriers
/// instead of five. With 64 registers a thread, an SM holds 1024 threads as before, each with 16
/// loads in flight: twice the bytes. Memory is the limit for every length, at 90 % of the rate of a
/// copy. 64 points may be slower, as four threads load 32 contiguous bytes.
/// @expect on --n 2 --length 4096
/// @expect loads_per_output.shared 2 / 2 = 1, two exchanges of points with two parts each
/// @expect barriers_per_block 2 + 1 = 3, one in each exchange, and one between them
/// @expect wavefronts_per_request.shared.store 256 / 128 = 2, by place_of() no bank is asked twice
/// @expect wavefronts_per_request.shared.load 256 / 128 = 2, likewise
/// **Costs.** A block of 4096 points has 34 KB of shared memory, and all registers of a thread are
/// in use. Lines of 16 and 32 points load partial sectors. 16 to 4096 points, powers of two.
/// **Try.** Thirty-two points a thread: 1024 = 32 * 32, with one exchange. How many registers is
/// that, how many threads fit on an SM, and how many bytes are in flight?
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kPoints = 16;         ///< Of a thread.
constexpr int kThreads = 128;       ///< Threads of a block with short lines.
constexpr int kMaxThreads = 256;    ///< Threads of a block with the longest line.
constexpr int kResidentBlocks = 4;  ///< Blocks of kMaxThreads per SM: 64 registers per thread.
constexpr int kLongestLine = kPoints * kMaxThreads;

/// Lines that a block takes.
int lines_of_block(const FftProblem& fft) { return std::max(1, kThreads * kPoints / fft.L); }

/// Where point i of the block's lines is stored in shared memory: one point of padding follows
/// every 16. Where the addition of the last four bits has no carry, place_of(a + b) = place_of(a) +
/// place_of(b): offsets from a thread's first point are the same for all threads, and equal steps
/// of 16 points or more are equal steps of addresses.
HOST_DEVICE constexpr int place_of(int i) { return i + (i >> 4); }

/// x [N][L][2], y [N][L][2], twiddles [L]: see fft_twiddles(). A block takes as many lines as it
/// has times L/16 threads. Grid (ceil(N / lines)), block (lines * L/16), shared memory for its
/// points, see place_of().
template <class T>
__global__ void __launch_bounds__(kMaxThreads, kResidentBlocks)
    fft_radix16(FftProblem fft, const Complex<T>* twiddles, Points<const float> x,
                Points<float> y) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int apart = fft.L / kPoints, thread = static_cast<int>(threadIdx.x);
  const int t = thread & (apart - 1), line = kPoints * (thread - t);  // where it begins
  const std::int64_t first = std::int64_t{blockIdx.x} * kPoints * blockDim.x + line + t;
  const bool exists = first < fft.points();

  Complex<T> v[kPoints] = {};
  if (exists) {
#pragma unroll
    for (int r = 0; r < kPoints; ++r) v[r] = x.template get<T>(first + r * apart);
  }
  butterfly<kPoints, 1>(v);
#pragma unroll  // so that `before`, 1 and 16, and its multiples are compile-time constants
  for (int before = 1; before < kMaxThreads; before *= kPoints) {
    if (before >= apart) break;
    const int k = t & (before - 1), together = kPoints * before;
    if (before > 1) __syncthreads();  // the reads of the previous pass before these writes
#pragma unroll
    for (int r = 0; r < kPoints; ++r) {
      points[place_of(line + kPoints * (t - k) + k) + r * place_of(before)] = v[r];
    }
    __syncthreads();  // these writes before the reads below
#pragma unroll
    for (int r = 0; r < kPoints; ++r) {
      // Equal steps, unless they are less than 16. (One expression for both would be correct, but
      // the compiler would then keep sixteen addresses live between the two exchanges.)
      const int further = before == 1 ? place_of(r * apart) : r * place_of(apart);
      v[r] = points[place_of(line + t) + further];
    }
    if (together <= apart) {
      turn_and_transform<16>(v, t, apart, together, twiddles);
    } else if (together == 2 * apart) {
      turn_and_transform<8>(v, t, apart, together, twiddles);
    } else if (together == 4 * apart) {
      turn_and_transform<4>(v, t, apart, together, twiddles);
    } else {
      turn_and_transform<2>(v, t, apart, together, twiddles);
    }
  }
  if (exists) {
#pragma unroll
    for (int r = 0; r < kPoints; ++r) y.set(first + r * apart, v[r]);
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L < kPoints) return "lines of 16 points or more only";
  if (fft.L > kLongestLine) return "lines of at most 4096 points only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const int lines = lines_of_block(fft);
  with_numbers_of(fft.ring, [&]<class T>(T) {
    auto* const twiddles = context.workspace_as<Complex<T>>();
    launch_twiddles(fft.L, kPoints, twiddles);
    const auto threads = static_cast<unsigned>(lines * fft.L / kPoints);
    const std::size_t bytes = place_of(lines * fft.L) * sizeof(Complex<T>);
    launch(fft_radix16<T>, {blocks_for(fft.N, lines), threads, bytes}, fft, twiddles,
           points_of(arrays.x.as<const float>(), fft.exchanges()),
           points_of(arrays.y.as<float>(), fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) {
  if (fft.L == kPoints) return "one pass";
  int before = kPoints;
  while (before * kPoints < fft.L) before *= kPoints;
  return text("a last pass of radix ", fft.L / before);
}

}  // namespace

extern const Implementation<FftArrays> radix16 = {
    .supports = supports,
    .workspace_bytes = twiddle_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
