/// @file four_step.cu
/// @brief fft: four-step FFT; long lines as matrices: columns, twiddle factors, rows,
/// transposition.
///
/// - Before: radix8.cu
/// - After: rows_and_columns.cu
///
/// **The idea.** A line that exceeds shared memory is a matrix of L1 rows and L2 columns, point j =
/// j1 L2 + j2. With k = k1 + L1 k2, the factor w^(j k) splits into three, and each is a step on
/// single columns or rows (Gentleman and Sande, 1966; Bailey, 1990):
///
///     x [j1][j2]   1. lines j1 -> k1, of L1 points, L2 apart     (columns)
///                  2. multiply by w^(j2 k1)
///     M [k1][j2]   3. lines j2 -> k2, of L2 points, in order     (rows)
///     y [k2][k1]   4. stored transposed
///
/// A block takes eight adjacent columns or rows, so strided accesses are 64 contiguous bytes each.
/// Both kernels are the same, with different strides.
///
/// **Expect.** Lines of up to 2^20 points are read and written twice, not log2 L times: half the
/// speed of short ones, at any length. Each twiddle factor of step 2 is the product of entries of
/// two short tables; one table of L factors would be as long as the line.
/// @expect on --n 1 --length 4096
/// @expect launches 2 + 3 = 5, and three that fill tables
/// @expect sectors_per_request.x.load 256 / 32 = 8, whole sectors: four columns in each
/// @expect loads_per_output.shared 2 / 2 = 1, an exchange in either kernel, of 64 points a line
/// @expect barriers_per_block 1, likewise
/// **Costs.** An array of N L points in the workspace, and four tables. Lines of 64 to 2^20 points,
/// powers of two.
/// **Try.** L1 = 8 and L2 = L / 8, for lines of at most 8192 points: what does step 1 need?
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/fft/shared/butterflies.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::fft {
namespace {

constexpr int kLines = 8;  ///< Adjacent columns or rows per block.
constexpr int kMaxThreads = 1024;
constexpr int kLongest = kRadix * kMaxThreads / kLines;  ///< Points of a column or row.

/// One of the two kernels: `lines` lines of `length` points in each of the problem's lines.
struct Step {
  int length, lines;
  int from_point, from_line;  ///< Where they are read: from one point, or line, to the next.
  int to_point, to_line;      ///< Where they are written.
};

/// w^(j2 k1) = w^(high S) w^low, where high S + low = j2 k1; null: no twiddle factors.
template <class T>
struct Turns {
  const Complex<T>*low, *high;  ///< [S] and [L / S]
  int low_bits;                 ///< log2(S)

  __device__ Complex<T> operator()(int steps) const {
    return low[steps & ((1 << low_bits) - 1)] * high[steps >> low_bits];
  }
};

/// Where point i of the block's line c is stored in shared memory: bit 0 of i is XORed with bit 3,
/// so that neighbours along t, which write 8 points apart, access different banks.
__device__ int place_of(int i, int c) { return (i ^ (i >> 3 & 1)) * kLines + c; }

/// twiddles [step.length]: see fft_twiddles().
/// Grid (N * step.lines / 8), block (step.length), shared memory for 8 lines.
template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    fft_four_step(FftProblem fft, Step step, const Complex<T>* twiddles, Turns<T> turns,
                  Points<const float> from, Points<float> to) {
  Complex<T>* points = dynamic_shared<Complex<T>>();
  const int eighth = step.length / kRadix, thread = static_cast<int>(threadIdx.x);
  const int t = thread / kLines, c = thread % kLines;
  const std::int64_t line = std::int64_t{blockIdx.x} * kLines + c;  // of all
  const std::int64_t first = line / step.lines * fft.L;
  const int l = static_cast<int>(line % step.lines);

  Complex<T> v[kRadix];
#pragma unroll
  for (int r = 0; r < kRadix; ++r) {
    v[r] = from.template get<T>(first + (t + r * eighth) * step.from_point + l * step.from_line);
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
  for (int r = 0; r < kRadix; ++r) {
    const int k = t + r * eighth;
    if (turns.low != nullptr) v[r] = v[r] * turns(l * k);
    to.set(first + k * step.to_point + l * step.to_line, v[r]);
  }
}

/// low [S] and high [L / S], see Turns. Any one-dimensional grid.
template <class T>
__global__ void fft_four_step_twiddles(int L, int low_bits, Complex<T>* low, Complex<T>* high) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < 1 << low_bits) low[i] = root_of_unity<T>(i, L);
  if (i < L >> low_bits) high[i] = root_of_unity<T>(i, L >> low_bits);
}

/// Points of a column, L1: at least as many as those of a row, L2 = L / L1.
int column_length(const FftProblem& fft) { return 1 << (fft.passes() + 1) / 2; }

/// Layout of the workspace, in order of addresses.
template <class T>
struct Workspace {
  float* middle;              ///< The result of the columns, input of the rows: as large as y.
  Complex<T>*columns, *rows;  ///< Twiddle factors.
  Complex<T>*low, *high;      ///< See Turns.
  std::size_t bytes;          ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
template <class T>
Workspace<T> workspace_at(const FftProblem& fft, std::byte* begin) {
  const int L1 = column_length(fft);
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  constexpr std::int64_t kPoint = sizeof(Complex<T>), kFloat = sizeof(float);
  const std::int64_t bytes = checked_product({fft.points(), kPoint}, "bytes of a step");
  work.middle = cutter.take<float>(bytes / kFloat);
  work.columns = cutter.take<Complex<T>>(L1);
  work.rows = cutter.take<Complex<T>>(L1);
  work.low = cutter.take<Complex<T>>(L1);
  work.high = cutter.take<Complex<T>>(L1);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const FftProblem& fft) {
  return workspace_at<float>(fft, nullptr).bytes;  // the same size in both rings
}

Declined supports(const FftProblem& fft) {
  if (fft.has_planes() || fft.is_real()) return "lines of complex points only";
  if (!fft.has_power_of_two()) return "lengths that are powers of two only";
  if (fft.L < kRadix * kRadix) return "lines of 64 points or more only";
  if (fft.L > kLongest * kLongest) return "lines of at most 2^20 points only";
  return {};
}

void run(const FftProblem& fft, const FftArrays& arrays, const Context& context) {
  const int L1 = column_length(fft), L2 = fft.L / L1;
  int low_bits = 0;
  while ((1 << low_bits) < L1) ++low_bits;
  with_numbers_of(fft.ring, [&]<class T>(T) {
    const Workspace<T> work = workspace_at<T>(fft, context.workspace_as<std::byte>());
    launch_twiddles(L1, kRadix, work.columns);
    launch_twiddles(L2, kRadix, work.rows);
    launch(fft_four_step_twiddles<T>, {blocks_for(L1, 128), 128}, fft.L, low_bits, work.low,
           work.high);
    const auto step = [&](const Step& of, const Complex<T>* twiddles, const Turns<T>& turns,
                          const Points<const float>& from, const Points<float>& to) {
      const std::size_t bytes = std::size_t{kLines} * of.length * sizeof(Complex<T>);
      const unsigned blocks = blocks_for(std::int64_t{fft.N} * of.lines, kLines);
      launch(fft_four_step<T>, {blocks, static_cast<unsigned>(of.length), bytes}, fft, of, twiddles,
             turns, from, to);
    };
    step({L1, L2, L2, 1, L2, 1}, work.columns, {work.low, work.high, low_bits},
         points_of(arrays.x.as<const float>(), fft.exchanges()), points_of(work.middle, false));
    step({L2, L1, 1, L2, L1, 1}, work.rows, {nullptr, nullptr, 0},
         points_of<const float>(work.middle, false),
         points_of(arrays.y.as<float>(), fft.exchanges()));
  });
}

std::string choice_in_words(const FftProblem& fft) {
  return fft.passes() % 2 == 0 ? "as many columns as rows" : "columns twice as long as rows";
}

}  // namespace

extern const Implementation<FftArrays> four_step = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::fft
