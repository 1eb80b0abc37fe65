/// @file im2col_vectorized.cu
/// @brief Vector access: a thread computes four adjacent columns, and stores them as 16-byte
/// vectors.
///
/// - Before: im2col_batched.cu
/// - After: im2row.cu
/// - The same maths: cpu_reference/im2col/im2col.cpp
///
/// **The idea.** Nearly all of im2col's traffic is stores: R * S of them for each element that is
/// loaded for the first time. A thread computes windows q ... q + 3 of a row, for all taps, so that
/// each store has 16 bytes. For common filters it first loads the elements of the four windows for
/// a row of taps, once, in aligned vectors; the taps are then shifts of these registers.
///
///     3 taps, stride 1, padding 1    x: [ . . . a ][ b c d e ][ f . . . ]   3 aligned vectors
///                            tap 0:           a    b c d         the same registers,
///                            tap 1:                b c d e       stored three times,
///                            tap 2:                  c d e   f   P * Q floats apart
///
/// Indices are ints, and divisions by values that the host knows are multiplications
/// (core/fast_division.hpp): one decode for 4 * R * S elements. The stores are marked as streaming
/// (`__stcs`): the columns are not read soon, and x stays in the caches.
///
/// **Expect.** The bytes are the limit: B4 reads 26 MB and writes 231 MB, 61 us at the 4.2 TB/s
/// that a copy reaches on an H200. Likewise B3 61 us, B10 245 us and B9 490 us.
/// @expect bytes_per_lane.col.store 16
/// @expect lanes_per_output.col.store 1 / 4 = 0.25
/// @expect loads_per_output.x (4 + 2) / (3 * 4) = 0.5, of a row of 6 for 4 windows and 3 taps
/// **Costs.** Vectors need Q % 4 = 0 and a col that is aligned to 16 bytes; otherwise a thread
/// computes one column. Not supported: NHWC, types other than float32, and 2^30 or more windows of
/// a channel.
/// **Try.** Use plain stores instead of streaming ones, and time B3 and B4. Which needs more of the
/// caches?
#include <limits>

#include "core/fast_division.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/im2col/im2col_vectorized.cuh"

namespace convladder::BACKEND::cuda_optimized::im2col {
namespace {

constexpr int kThreads = 256;
/// So many that a thread usually has one piece of work; with more work than that, threads stride.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 22;

/// What the host works out for the kernel.
struct Vectors {
  FastDivision by_channel, by_row, by_height;  ///< By the threads of a channel, Q / kWidth, P.
  std::int64_t channel0;                       ///< The first channel, counted over all images.
  int threads;                                 ///< Threads that have work.
  bool streaming;
};

/// kWidth neighbours of a row of col, which begin at a multiple of 4 * kWidth bytes.
template <int kWidth>
__device__ void store(float* to, const float (&values)[kWidth], bool add, bool streaming) {
  if constexpr (kWidth == 4) {
    float4 four = {values[0], values[1], values[2], values[3]};
    float4* to4 = reinterpret_cast<float4*>(to);
    if (add) {
      const float4 old = *to4;
      four = {old.x + four.x, old.y + four.y, old.z + four.z, old.w + four.w};
    }
    if (streaming) {
      __stcs(to4, four);
    } else {
      *to4 = four;
    }
  } else {
    const float value = add ? *to + values[0] : values[0];
    if (streaming) {
      __stcs(to, value);
    } else {
      *to = value;
    }
  }
}

/// x [N*C][D][H][W], col [N*C * taps][windows]. A thread has kWidth neighbouring windows of a
/// channel, and writes all their taps. Any one-dimensional grid.
/// @tparam kWidth 4 if Q is a multiple of 4 and col is aligned to 16 bytes, or 1
/// @tparam kTaps, kStride taps of a row and horizontal stride, with dilation 1; 0, 0: any
/// @tparam kBefore how many elements the first tap lies behind a multiple of 4, in a row of x that
/// consists of aligned vectors; -1: unknown, or it does not
template <int kWidth, int kTaps, int kStride, int kBefore>
__global__ void __launch_bounds__(kThreads)
    im2col_im2col_vectorized(const __grid_constant__ Im2colProblem problem,
                             const __grid_constant__ Vectors vectors, const float* x, float* col) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();
  const bool add = problem.request == Request::add, streaming = vectors.streaming;

  const int grid_threads = static_cast<int>(gridDim.x * blockDim.x);
  int item = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (; item < vectors.threads; item += grid_threads) {
    const int c = vectors.by_channel.quotient(item);
    const int in_channel = vectors.by_channel.remainder(item, c);
    const int row = vectors.by_row.quotient(in_channel);
    const int q = vectors.by_row.remainder(in_channel, row) * kWidth;
    const int o = vectors.by_height.quotient(row), p = vectors.by_height.remainder(row, o);
    const std::int64_t nc = vectors.channel0 + c;

    const float* channel = x + nc * problem.channel_size();
    const int w0 = q * width.stride - width.pad_before;
    float* to = col + nc * taps * windows + std::int64_t{row} * width.out + q;
    for (int t = 0; t < depth.kernel; ++t) {
      const int d = o * depth.stride - depth.pad_before + t * depth.dilation;
      for (int r = 0; r < height.kernel; ++r) {
        const int h = p * height.stride - height.pad_before + r * height.dilation;
        // A row in the padding is a row of no elements. (Negative coordinates become huge ones.)
        const bool inside = static_cast<unsigned>(d) < static_cast<unsigned>(depth.size) &&
                            static_cast<unsigned>(h) < static_cast<unsigned>(height.size);
        const unsigned size = inside ? static_cast<unsigned>(width.size) : 0;
        const float* line =
            channel + (inside ? (std::int64_t{d} * height.size + h) * width.size : 0);
        const auto at = [&](int w) { return static_cast<unsigned>(w) < size ? line[w] : 0.0f; };
        if constexpr (kTaps > 0) {
          // What all taps of these windows read, once.
          constexpr int kReads = (kWidth - 1) * kStride + kTaps;
          constexpr int kSkip = kBefore > 0 ? kBefore : 0;
          float reads[(kSkip + kReads + 3) / 4 * 4];
          if constexpr (kBefore >= 0) {
#pragma unroll
            for (int i = 0; i < kSkip + kReads; i += 4) {  // all four are in x, or none
              const int w = w0 - kSkip + i;
              float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
              if (static_cast<unsigned>(w) < size)
                four = *reinterpret_cast<const float4*>(line + w);
              reads[i] = four.x;
              reads[i + 1] = four.y;
              reads[i + 2] = four.z;
              reads[i + 3] = four.w;
            }
          } else {
#pragma unroll
            for (int i = 0; i < kReads; ++i) reads[i] = at(w0 + i);
          }
#pragma unroll
          for (int s = 0; s < kTaps; ++s, to += windows) {
            float values[kWidth];
#pragma unroll
            for (int e = 0; e < kWidth; ++e) values[e] = reads[kSkip + e * kStride + s];
            store<kWidth>(to, values, add, streaming);
          }
        } else {
          for (int s = 0; s < width.kernel; ++s, to += windows) {
            float values[kWidth];
#pragma unroll
            for (int e = 0; e < kWidth; ++e) {
              values[e] = at(w0 + e * width.stride + s * width.dilation);
            }
            store<kWidth>(to, values, add, streaming);
          }
        }
      }
    }
  }
}

using Kernel = void (*)(Im2colProblem, Vectors, const float*, float*);

/// @param aligned rows of x consist of aligned vectors
template <int kWidth>
Kernel kernel_for(const WindowAxis& width, bool aligned) {
  if (width.dilation != 1) return im2col_im2col_vectorized<kWidth, 0, 0, -1>;
  if (kWidth == 4 && aligned) {  // then the first tap of four windows is -pad (modulo 4) for all
    const auto is = [&](int taps, int stride, int pad) {
      return width.kernel == taps && width.stride == stride && width.pad_before == pad;
    };
    if (is(1, 1, 0)) return im2col_im2col_vectorized<kWidth, 1, 1, 0>;
    if (is(3, 1, 1)) return im2col_im2col_vectorized<kWidth, 3, 1, 3>;
    if (is(5, 1, 2)) return im2col_im2col_vectorized<kWidth, 5, 1, 2>;
    if (is(3, 2, 1)) return im2col_im2col_vectorized<kWidth, 3, 2, 3>;
    if (is(7, 2, 3)) return im2col_im2col_vectorized<kWidth, 7, 2, 1>;
  }
  if (width.stride == 1 && width.kernel == 1) return im2col_im2col_vectorized<kWidth, 1, 1, -1>;
  if (width.stride == 1 && width.kernel == 3) return im2col_im2col_vectorized<kWidth, 3, 1, -1>;
  if (width.stride == 1 && width.kernel == 5) return im2col_im2col_vectorized<kWidth, 5, 1, -1>;
  if (width.stride == 2 && width.kernel == 3) return im2col_im2col_vectorized<kWidth, 3, 2, -1>;
  if (width.stride == 2 && width.kernel == 7) return im2col_im2col_vectorized<kWidth, 7, 2, -1>;
  return im2col_im2col_vectorized<kWidth, 0, 0, -1>;
}

/// Neighbouring windows of a thread, and whether all rows of x consist of vectors: if the arrays
/// are aligned to 16 bytes.
int windows_together(const Im2colProblem& problem) { return problem.width.out % 4 == 0 ? 4 : 1; }
bool rows_are_vectors(const Im2colProblem& problem) { return problem.width.size % 4 == 0; }

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return too_large_for_im2col_vectorized(problem);
}

void run(const Im2colProblem& problem, const Im2colArrays& arrays, const Context&) {
  launch_im2col_vectorized(problem, arrays.x, arrays.col, true);
}

}  // namespace

Declined too_large_for_im2col_vectorized(const Im2colProblem& problem) {
  if (problem.columns() > std::numeric_limits<int>::max() / 2) return "2^30 or more windows";
  return {};
}

void launch_im2col_vectorized(const Im2colProblem& problem, const float* x, float* col,
                              bool streaming) {
  if (problem.request == Request::none) return;
  const WindowAxis &height = problem.height, &width = problem.width;
  const auto aligned = [](const float* array) {
    return reinterpret_cast<std::uintptr_t>(array) % sizeof(float4) == 0;
  };
  const int vector = aligned(col) ? windows_together(problem) : 1;
  const bool aligned_rows = aligned(x) && rows_are_vectors(problem);
  const int channel_threads = static_cast<int>(problem.columns() / vector);
  Vectors vectors{.by_channel = FastDivision(channel_threads),
                  .by_row = FastDivision(width.out / vector),
                  .by_height = FastDivision(height.out),
                  .channel0 = 0,
                  .threads = 0,
                  .streaming = streaming};
  // Threads are numbered by ints: with more of them than that, a launch for some of the channels
  // after the other.
  const std::int64_t channels = std::int64_t{problem.N} * problem.C;
  const std::int64_t step = (std::int64_t{1} << 30) / channel_threads;
  for (; vectors.channel0 < channels; vectors.channel0 += step) {
    const std::int64_t some = std::min(step, channels - vectors.channel0);
    vectors.threads = static_cast<int>(some * channel_threads);
    launch(vector == 4 ? kernel_for<4>(width, aligned_rows) : kernel_for<1>(width, false),
           {blocks_for(vectors.threads, kThreads, kMaxBlocks), kThreads}, problem, vectors, x, col);
  }
}

std::string im2col_vectorized_in_words(const Im2colProblem& problem) {
  if (problem.request == Request::none) return "nothing to do";
  const WindowAxis& width = problem.width;
  const bool four = windows_together(problem) == 4, vectors = four && rows_are_vectors(problem);
  const Kernel kernel = four ? kernel_for<4>(width, vectors) : kernel_for<1>(width, false);
  const Kernel any =
      four ? im2col_im2col_vectorized<4, 0, 0, -1> : im2col_im2col_vectorized<1, 0, 0, -1>;
  return text(four ? "four windows" : "a window", " a thread, ",
              kernel == any ? "any taps"
                            : text(width.kernel, width.kernel == 1 ? " tap" : " taps",
                                   " and stride ", width.stride, " unrolled"),
              vectors && kernel != kernel_for<4>(width, false) ? ", x in fours" : "");
}

extern const Implementation<Im2colArrays> im2col_vectorized = {
    .supports = supports,
    .run = run,
    .choice = im2col_vectorized_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::im2col
