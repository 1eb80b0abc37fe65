/// @file plane.cu
/// @brief fft: small 2-D FFT; a plane is one line in shared memory, first its columns, then its
/// rows.
///
/// - Before: radix8.cu
/// - The same maths: cpu_reference/fft/rows_and_columns.cpp
///
/// **The idea.** A plane of H rows is stored as a line of H L points. Stockham's first passes read
/// the highest bits of a point's index and write the lowest. The highest bits are the row, so these
/// passes transform all columns side by side. After log H of them the row frequency is in the
/// lowest bits and the column in the highest. With `before` reset to 1, further passes transform
/// rows:
///
///     number of a point    h1 h0 w1 w0        H = L = 4, two bits each, a bit a pass
///     before 1, before 2   w1 w0 u1 u0        columns: u is made of h
///     before 1, before 2   u1 u0 v1 v0        rows: v is made of w, and u is in place
///
/// A 2-D transform is one of a line of H L points, with fewer twiddle factors and without a
/// transposition. A last exchange reorders eight neighbours per row, so that a warp stores 256
/// contiguous bytes.
///
/// **Expect.** The plane is read and written once. There is one exchange more than for a line of as
/// many points: for 64 x 64 planes about 175 us for 2^25 points on an H200; a copy takes 128 us.
/// @expect on --n 4 --length 64,64
/// @expect loads_per_output.x 1 / 2 = 0.5, and nothing else of memory but factors
/// @expect loads_per_output.shared 4 / 2 = 2, an exchange behind each of four passes of radix 8
/// @expect wavefronts_per_request.shared.store 256 / 128 = 2, no bank is asked twice
/// @expect sectors_per_request.y.store 256 / 32 = 8, whole sectors
/// **Costs.** Shared memory for all of x. Complex planes of 8 to 4096 points, powers of two.
/// **Try.** The first pass of an axis multiplies by 1. What is gained without those products?
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kThreads = 256;     ///< Threads of a block with small planes.
constexpr int kMaxThreads = 512;  ///< Threads of a block with the largest plane.
constexpr int kLargestPlane = kRadix * kMaxThreads;

/// Points of a plane.
int plane_of(const FftProblem& fft) { return fft.H * fft.L; }

/// Planes that a block takes.
int planes_of_block(const FftProblem& fft) {
  return std::max(1, kThreads * kRadix / plane_of(fft));
}

/// Along an axis, the last of which may have a smaller radix.
int passes_along(int length) {
  int count = 0;
  for (int before = 1; before < length; before *= kRadix) ++count;
  return count;
}

/// Where point i of the block's planes is stored in shared memory: bits 0 to 2 are XORed with bits
/// 4 to 6, and bit 3 with each of those. This takes more bits than a line needs, since here a pass
/// of radix 2 or 4 is not always the last one.
__device__ int place_of(int i) { return i ^ (i >> 4 & 7) ^ ((i >> 1 ^ i >> 2 ^ i >> 3) & 8); }

/// A pass of radix R over thread t's eight points v, whose results are stored at their positions
/// after it. @param plane where it begins in shared memory
template <int R, class T>
__device__ void pass_to_shared(Complex<T> (&v)[kRadix], int t, int eighth, int before,
                               const Complex<T>* twiddles, int plane, Complex<T>* points) {
  constexpr int kButterflies = kRadix / R;
  turn_and_transform<R>(v, t, eighth, before, twiddles);
#pragma unroll
  for (int r = 0; r < kRadix; ++r) {
    const int i = t + r % kButterflies * eighth, k = i & (before - 1);
    points[place_of(plane + R * (i - k) + k + r / kButterflies * before)] = v[r];
  }
}

/// x [N][H][L][2], y [N][H][L][2], twiddles of columns [H] and of rows [L]: see fft_twiddles(). A
/// block takes as many planes as it has times H L/8 threads. Grid (ceil(N / planes)), block
/// (planes * H L/8), shared memory for its points. @param passes along both axes
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    fft_plane(FftProblem fft, int passes, const Complex<T>* of_columns, const Complex<T>* of_rows,
              Points<const float> x, Points<float> y) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int eighth = fft.H * fft.L / kRadix, thread = static_cast<int>(threadIdx.x);
  const int t = thread & (eighth - 1), plane = kRadix * (thread - t);  // where it begins
  const std::int64_t first = std::int64_t{blockIdx.x} * kRadix * blockDim.x + plane;
  const bool exists = first < fft.points();

  Complex<T> v[kRadix] = {};
  if (exists) {
#pragma unroll
    for (int r = 0; r < kRadix; ++r) v[r] = x.template get<T>(first + t + r * eighth);
  }
  int length = fft.H, before = 1;
  const Complex<T>* twiddles = of_columns;
  for (int pass = 1;; ++pass) {
    if (before == length) {  // the columns are done: `before` restarts for the rows
      length = fft.L;
      before = 1;
      twiddles = of_rows;
    }
    const int radix = length / before < kRadix ? length / before : kRadix;
    if (radix == 8) {
      pass_to_shared<8>(v, t, eighth, before, twiddles, plane, points);
    } else if (radix == 4) {
      pass_to_shared<4>(v, t, eighth, before, twiddles, plane, points);
    } else {
      pass_to_shared<2>(v, t, eighth, before, twiddles, plane, points);
    }
    __syncthreads();  // these writes before the reads below
#pragma unroll
    for (int r = 0; r < kRadix; ++r) v[r] = points[place_of(plane + t + r * eighth)];
    if (pass == passes) break;
    __syncthreads();  // these reads before the writes of the next pass
    before *= radix;
  }
  if (exists) {
#pragma unroll
    for (int r = 0; r < kRadix; ++r) y.set(first + t + r * eighth, v[r]);
  }
}

Declined supports(const FftProblem& fft) {
  if (!fft.has_planes() || fft.is_real()) return "planes of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  const std::int64_t plane = std::int64_t{fft.H} * fft.L;
  if (plane < kRadix) return "planes of 8 points or more only";
  if (plane > kLargestPlane) return "planes of at most 4096 points only";
  return {};
}

/// Layout of the workspace, in order of addresses.
template <class T>
struct Workspace {
  Complex<T>*of_columns, *of_rows;  ///< Twiddle factors.
  std::size_t bytes;                ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
template <class T>
Workspace<T> workspace_at(const FftProblem& fft, std::byte* begin) {
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  work.of_columns = cutter.take<Complex<T>>(fft.H);
  work.of_rows = cutter.take<Complex<T>>(fft.L);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const FftProblem& fft) {
  return workspace_at<float>(fft, nullptr).bytes;  // the same size in both rings
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const int planes = planes_of_block(fft);
  with_numbers_of(fft.ring, [&]<class T>(T) {
    const auto [of_columns, of_rows, all] = workspace_at<T>(fft, context.workspace_as<std::byte>());
    launch_twiddles(fft.H, kRadix, of_columns);
    launch_twiddles(fft.L, kRadix, of_rows);
    const auto threads = static_cast<unsigned>(planes * plane_of(fft) / kRadix);
    const std::size_t bytes = std::size_t{1} * planes * plane_of(fft) * sizeof(Complex<T>);
    launch(fft_plane<T>, {blocks_for(fft.N, planes), threads, bytes}, fft,
           passes_along(fft.H) + passes_along(fft.L), of_columns, of_rows,
           points_of(arrays.x.as<const float>(), fft.exchanges()),
           points_of(arrays.y.as<float>(), fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> plane = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
