/// @file warp.cu
/// @brief fft: warp FFT; short lines stay in a warp, whose lanes exchange points by shuffles.
///
/// - Before: shared_memory.cu
///
/// **The idea.** Each lane has one point of a line of up to 32 points, or two of 64. A butterfly
/// exchanges points with the lane whose number differs in one bit, from the highest to the lowest:
/// the passes of Gentleman and Sande (1966), which multiply after the subtraction. The frequencies
/// are then in bit-reversed order; one more shuffle reorders them.
///
///     lane  0 1 2 3 4 5 6 7      half = 4: lanes 0-3 become a + b, lanes 4-7 (a - b) w^k
///           `-------' exchange   half = 2, half = 1: the same within each half
///
/// (Vasilache et al., "Fast convolutional nets with fbfft", 2014.)
///
/// **Expect.** No shared memory and no barrier: 10 shuffles of 4 bytes in 5 passes, and 2 to
/// reorder. Every lane computes every pass; only half of the lanes need the multiplication, but all
/// execute it. The loads and stores of a warp are contiguous. The twiddle factors of a lane stay in
/// registers.
/// @expect loads_per_output.shared 0, there is none
/// @expect barriers_per_block 0, a warp's lanes wait for one another in a shuffle
/// @expect sectors_per_request.x.load 256 / 32 = 8, 32 points in a row
/// **Costs.** Each lane executes the instructions of a whole butterfly for a quarter of its result.
/// Not supported: lines of more than 64 points, and lengths that are not a power of two.
/// **Try.** Four points a lane, for 128: which passes come first, and what do they cost?
#include <bit>

#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int kLongestLine = 2 * kWarp;
constexpr int kPasses = 5;  ///< log2(kWarp): those by shuffles, at most.
/// Enough to fill the device: 132 SMs hold 8 blocks of 256 threads each. Threads stride over more
/// work.
constexpr std::int64_t kMaxBlocks = 132 * 8;

/// The value of `lane`.
__device__ float of_lane(float value, int lane) { return __shfl_sync(~0u, value, lane); }
/// The value of `lane`.
__device__ Mersenne of_lane(Mersenne number, int lane) {
  return {__shfl_sync(~0u, number.value, lane)};
}
/// The value of `lane`.
template <class T>
__device__ Complex<T> of_lane(Complex<T> z, int lane) {
  return {of_lane(z.re, lane), of_lane(z.im, lane)};
}

/// x [N][L][2], y [N][L][2], twiddles [L]: see fft_twiddles(), of radix 2. A warp takes 32 kPoints
/// points: several lines if they are shorter. @tparam kPoints a lane: 2 if L is 64, else 1
/// Any one-dimensional grid of whole warps.
template <class T, int kPoints>
__global__ void __launch_bounds__(kThreads)
    fft_warp(FftProblem fft, const Complex<T>* twiddles, Points<const float> x, Points<float> y) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int longest = fft.L / kPoints;  // points of a line in different lanes
  const int l = lane & (longest - 1);   // the lane's own, from 0 to longest - 1
  const Complex<T> one = {number_from<T>(1), number_from<T>(0)};
  // Twiddle factor of each pass; 1 for lanes whose bit is not set.
  Complex<T> turns[kPasses];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int half = 1 << pass;
    turns[pass] = half < longest && (l & half) != 0 ? twiddles[half + (l & (half - 1))] : one;
  }
  const Complex<T> first_turn = kPoints == 2 ? twiddles[kWarp + lane] : one;
  // The lane that has this lane's frequency after the last pass (bit reversal).
  int source = lane - l;
  for (int bit = 1; bit < longest; bit *= 2) source += (l & bit) != 0 ? longest / (2 * bit) : 0;

  constexpr int kTile = kWarp * kPoints;
  std::int64_t first = thread_of_grid() / kWarp * kTile;
  // The trip count is uniform in a warp: its first point decides.
  for (; first < fft.points(); first += threads_of_grid() * kPoints) {
    Complex<T> v[kPoints];
#pragma unroll
    for (int i = 0; i < kPoints; ++i) {
      const std::int64_t point = first + lane + i * kWarp;
      v[i] = point < fft.points() ? x.template get<T>(point) : Complex<T>{};
    }
    if constexpr (kPoints == 2) {  // points 32 apart are both this lane's
      const Complex<T> a = v[0], b = v[1];
      v[0] = a + b;
      v[1] = (a - b) * first_turn;
    }
#pragma unroll
    for (int pass = kPasses - 1; pass >= 0; --pass) {
      const int half = 1 << pass;
      if (half >= longest) continue;
#pragma unroll
      for (int i = 0; i < kPoints; ++i) {
        const Complex<T> other = of_lane(v[i], lane ^ half);
        v[i] = (l & half) != 0 ? (other - v[i]) * turns[pass] : v[i] + other;
      }
    }
#pragma unroll
    for (int i = 0; i < kPoints; ++i) {
      v[i] = of_lane(v[i], source);
      const std::int64_t point = first + kPoints * lane + i;
      if (point < fft.points()) y.set(point, v[i]);
    }
  }
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L > kLongestLine) return "lines of at most 64 points only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  with_numbers_of(fft.ring, [&]<class T>(T) {
    auto* const twiddles = context.workspace_as<Complex<T>>();
    launch_twiddles(fft.L, 2, twiddles);
    const auto kernel = fft.L == kLongestLine ? fft_warp<T, 2> : fft_warp<T, 1>;
    const int block_points = kThreads * (fft.L == kLongestLine ? 2 : 1);
    launch(kernel, {blocks_for(fft.points(), block_points, kMaxBlocks), kThreads}, fft, twiddles,
           points_of(arrays.x.as<const float>(), fft.exchanges()),
           points_of(arrays.y.as<float>(), fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) {
  return fft.L == kLongestLine ? "two points a lane" : "a point a lane";
}

}  // namespace

extern const Implementation<FftArrays> warp = {
    .supports = supports,
    .workspace_bytes = twiddle_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
