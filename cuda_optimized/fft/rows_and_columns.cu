/// @file rows_and_columns.cu
/// @brief fft: large 2-D FFT; rows and then columns, eight adjacent lines per block.
///
/// - Before: four_step.cu
/// - The same maths: cpu_reference/fft/rows_and_columns.cpp
///
/// **The idea.** A plane is already the matrix that four_step makes of a long line. Two of its
/// steps remain: there is no multiplication by twiddle factors between them, and no transposition.
/// The points of a column are a row apart, so columns are the slow axis. Eight adjacent columns are
/// 64 contiguous bytes, whole sectors, and a warp reads four points of each:
///
///     w      0 1 2 3 4 5 6 7 | 8 ...
///     h = t  * * * * * * * *           a warp's lanes: 8 columns,
///     t + 1  * * * * * * * *           4 rows, 4 x 64 bytes
///
/// The second step works in place in y: a block writes only points that it has read.
///
/// **Expect.** Planes are read and written twice: 2^25 points take 256 us at the rate of a copy on
/// an H200, at any size; predicted are 290 us, as in four_step. A single plane that fits in L2
/// takes less.
/// @expect on --n 1 --length 64,64
/// @expect launches 2 + 2 = 4, and two that fill tables
/// @expect sectors_per_request.x.load 256 / 32 = 8, whole sectors: four points of eight rows
/// @expect loads_per_output.shared 2 / 2 = 1, an exchange in either kernel, of 64 points a line
/// @expect barriers_per_block 1, likewise
/// **Costs.** Two tables; rows of 8 or 16 points use parts of sectors. Complex planes of 8 to 1024
/// rows and columns, powers of two.
/// **Try.** Transform eight consecutive rows as radix8 does, one at a time. Is the first kernel
/// faster?
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kLines = 8;  ///< Adjacent columns or rows per block.
constexpr int kMaxThreads = 1024;
constexpr int kLongest = kRadix * kMaxThreads / kLines;  ///< Points of a column or row.

/// One of the two kernels: `lines` lines of `length` points in each plane.
struct Step {
  int length, lines;
  int point, line;  ///< From one point, or line, to the next.
};

/// Where point i of the block's line c is stored in shared memory: bit 0 of i is XORed with bit 3,
/// so that neighbours along t, which write 8 points apart, access different banks.
__device__ int place_of(int i, int c) { return (i ^ (i >> 3 & 1)) * kLines + c; }

/// twiddles [step.length]: see fft_twiddles(). `from` may be `to`.
/// Grid (N * step.lines / 8), block (step.length), shared memory for 8 lines.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    fft_rows_and_columns(FftProblem fft, Step step, const Complex<T>* twiddles,
                         Points<const float> from, Points<float> to) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int eighth = step.length / kRadix, thread = static_cast<int>(threadIdx.x);
  const int t = thread / kLines, c = thread % kLines;
  const std::int64_t line = std::int64_t{blockIdx.x} * kLines + c;  // of all
  const std::int64_t first = line / step.lines * fft.H * fft.L + line % step.lines * step.line;

  Complex<T> v[kRadix];
#pragma unroll
  for (int r = 0; r < kRadix; ++r) {
    v[r] = from.template get<T>(first + (t + r * eighth) * step.point);
  }
  butterfly<kRadix, 1>(v);
  for (int before = 1; before < eighth;) {
    const int k = t & (before - 1);
#pragma unroll
    for (int r = 0; r < kRadix; ++r) points[place_of(kRadix * (t - k) + k + r * before, c)] = v[r];
    __syncthreads();  // these writes before the reads below
#pragma unroll
    for (int r = 0; r < kRadix; ++r) v[r] = points[place_of(t + r * eighth, c)];
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
#pragma unroll
  for (int r = 0; r < kRadix; ++r) to.set(first + (t + r * eighth) * step.point, v[r]);
}

/// Layout of the workspace, in order of addresses.
template <class T>
struct Workspace {
  Complex<T>*columns, *rows;  ///< Twiddle factors.
  std::size_t bytes;          ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
template <class T>
Workspace<T> workspace_at(const FftProblem& fft, std::byte* begin) {
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  work.columns = cutter.take<Complex<T>>(fft.H);
  work.rows = cutter.take<Complex<T>>(fft.L);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const FftProblem& fft) {
  return workspace_at<float>(fft, nullptr).bytes;  // the same size in both rings
}

Declined supports(const FftProblem& fft) {
  if (!fft.has_planes() || fft.is_real()) return "planes of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.H < kRadix || fft.L < kRadix) return "8 rows and columns or more only";
  if (fft.H > kLongest || fft.L > kLongest) return "at most 1024 rows and columns only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  with_numbers_of(fft.ring, [&]<class T>(T) {
    const Workspace<T> work = workspace_at<T>(fft, context.workspace_as<std::byte>());
    launch_twiddles(fft.H, kRadix, work.columns);
    launch_twiddles(fft.L, kRadix, work.rows);
    const auto step = [&](const Step& of, const Complex<T>* twiddles,
                          const Points<const float>& from, const Points<float>& to) {
      const std::size_t bytes = std::size_t{kLines} * of.length * sizeof(Complex<T>);
      const unsigned blocks = blocks_for(std::int64_t{fft.N} * of.lines, kLines);
      launch(fft_rows_and_columns<T>, {blocks, static_cast<unsigned>(of.length), bytes}, fft, of,
             twiddles, from, to);
    };
    auto* const y = arrays.y.as<float>();
    step({fft.L, fft.H, 1, fft.L}, work.rows,
         points_of(arrays.x.as<const float>(), fft.exchanges()), points_of(y, false));
    step({fft.H, fft.L, fft.L, 1}, work.columns, points_of<const float>(y, false),
         points_of(y, fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) { return name_of(fft.ring); }

}  // namespace

extern const Implementation<FftArrays> rows_and_columns = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
