/// @file col2im_vectorized.cu
/// HEADER
#include "core/rung.hpp"
#include "cuda_optimized/col2im/window_steps.cuh"

namespace convladder::BACKEND::cuda_optimized::col2im {
namespace {

constexpr int kThreads = 256;
/// So many that a thread has one piece of work, in order: more of them stride.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 22;
/// Vectors of a row of col that are under way at a time, for each tap of a row.
constexpr int kRows = 3;
constexpr int kMaxStride = 4;

/// What the host works out for the kernel.
struct Vectors {
  Steps steps;
  int row_threads;                         ///< Threads that share a row of x.
  FastDivision by_row_threads, by_height;  ///< Division by row_threads, by the height of x.
  FastDivision by_plane_threads;           ///< Division by the threads that share a channel of x.
  int plane_threads;
  std::int64_t channel0;  ///< The first channel, counted over all images.
  int threads;            ///< Threads that have work.
};

__device__ void add(float4& sum, float4 term) {
  sum.x += term.x;
  sum.y += term.y;
  sum.z += term.z;
  sum.w += term.w;
}

/// Columns q ... q + 3 of a row of col, q a multiple of 4; zeros where the row has ended or not yet
/// begun. Q is a multiple of 4: all four are in the row, or none.
__device__ float4 four_of(const float* row, int q, int windows) {
  if (static_cast<unsigned>(q) >= static_cast<unsigned>(windows)) return {0.0f, 0.0f, 0.0f, 0.0f};
  return *reinterpret_cast<const float4*>(row + q);
}

/// col [N*C * taps][windows], x [N*C][D][H][W]. A thread computes 4 * kStride neighbours of a row
/// of x. Any one-dimensional grid.
/// @tparam kStride horizontal stride
/// @tparam kTaps taps of a row; 0: as many as the problem says
template <int kStride, int kTaps>
__global__ void __launch_bounds__(kThreads)
    col2im_vectors(const __grid_constant__ Im2colProblem problem,
                   const __grid_constant__ Vectors vectors, const float* col, float* x) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const Steps& steps = vectors.steps;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();
  const int row_taps = kTaps > 0 ? kTaps : width.kernel;
  const int grid_threads = static_cast<int>(gridDim.x * blockDim.x);
  int item = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (; item < vectors.threads; item += grid_threads) {
    const int c = vectors.by_plane_threads.quotient(item);
    const int in_plane = vectors.by_plane_threads.remainder(item, c);
    const int row = vectors.by_row_threads.quotient(in_plane);
    const int q = vectors.by_row_threads.remainder(in_plane, row) * 4;
    const int d = vectors.by_height.quotient(row), h = vectors.by_height.remainder(row, d);
    const std::int64_t nc = vectors.channel0 + c;

    const Readers of_d = readers_of(depth, steps.depth, d + depth.pad_before);
    const Readers of_h = readers_of(height, steps.height, h + height.pad_before);
    const std::int64_t tap = (std::int64_t{of_d.tap} * height.kernel + of_h.tap) * width.kernel;
    const std::int64_t window = (std::int64_t{of_d.window} * height.out + of_h.window) * width.out;
    const float* first = col + (nc * taps + tap) * windows + window;

    float sums[kStride][4] = {};  // sums[rest][e]: of pixel (q + e) * kStride + rest
#pragma unroll(kTaps > 0 ? kTaps : 1)
    for (int s = 0; s < row_taps; ++s) {
      // Window q reads pixel q * kStride + at as its tap s.
      const int at = s * width.dilation - width.pad_before;
      const int ahead = at >= 0 ? at / kStride : -((kStride - 1 - at) / kStride);
      const int rest = at - ahead * kStride;
      // The windows of this thread's pixels: four from q - ahead on, in one aligned vector or two.
      const int q0 = (q - ahead) & ~3, skip = (q - ahead) & 3;
      float4 low = {0.0f, 0.0f, 0.0f, 0.0f}, high = {0.0f, 0.0f, 0.0f, 0.0f};
      for (int i = 0; i < of_d.count; ++i) {
        const float* plane = first + i * steps.col_depth + s * windows;
        for (int j0 = 0; j0 < of_h.count; j0 += kRows) {
          float4 lows[kRows], highs[kRows];
#pragma unroll
          for (int j = 0; j < kRows; ++j) {
            const bool reads = j0 + j < of_h.count;
            const float* from = plane + (reads ? (j0 + j) * steps.col_height : 0);
            lows[j] = four_of(from, q0, reads ? width.out : 0);
            highs[j] = four_of(from, q0 + 4, reads && skip != 0 ? width.out : 0);
          }
#pragma unroll
          for (int j = 0; j < kRows; ++j) {
            add(low, lows[j]);
            add(high, highs[j]);
          }
        }
      }
      const float eight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int k = 0; k < kStride; ++k) {
        if (rest != k) continue;
#pragma unroll
        for (int from = 0; from < 4; ++from) {
          if (skip != from) continue;
#pragma unroll
          for (int e = 0; e < 4; ++e) sums[k][e] += eight[from + e];
        }
      }
    }

    float* to = x + (nc * depth.size + d) * height.size * width.size +
                std::int64_t{h} * width.size + q * kStride;
#pragma unroll
    for (int i = 0; i < kStride; ++i) {
      if (q * kStride + 4 * i >= width.size) break;  // W is a multiple of 4
      float four[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) four[e] = sums[(4 * i + e) % kStride][(4 * i + e) / kStride];
      float4* out = reinterpret_cast<float4*>(to) + i;
      float4 value = problem.request == Request::add ? *out : float4{0.0f, 0.0f, 0.0f, 0.0f};
      add(value, {four[0], four[1], four[2], four[3]});
      *out = value;
    }
  }
}

using Kernel = void (*)(Im2colProblem, Vectors, const float*, float*);

Kernel kernel_for(const WindowAxis& width) {
  switch (width.stride) {
    case 1:
      switch (width.kernel) {
        case 1: return col2im_vectors<1, 1>;
        case 3: return col2im_vectors<1, 3>;
        case 5: return col2im_vectors<1, 5>;
        default: return col2im_vectors<1, 0>;
      }
    case 2:
      switch (width.kernel) {
        case 3: return col2im_vectors<2, 3>;
        case 7: return col2im_vectors<2, 7>;
        default: return col2im_vectors<2, 0>;
      }
    case 3: return col2im_vectors<3, 0>;
    default: return col2im_vectors<4, 0>;
  }
}

/// Whether all rows of col and x begin at multiples of 16 bytes, and end so.
bool made_of_vectors(const Im2colProblem& problem, const float* col, const float* x) {
  const auto aligned = [](const float* array) {
    return reinterpret_cast<std::uintptr_t>(array) % sizeof(float4) == 0;
  };
  return aligned(col) && aligned(x) && problem.width.out % 4 == 0 && problem.width.size % 4 == 0 &&
         problem.width.stride <= kMaxStride;
}

Declined supports(const Im2colProblem& problem) {
  if (problem.dtype != DType::f32) return "float32 only";
  return too_large_for_steps(problem);
}

void run(const Im2colProblem& problem, const Arguments& arrays) {
  const float* col = arrays.in<float>("col");
  float* x = arrays.out<float>("x");
  if (problem.request == Request::none) return;
  if (!made_of_vectors(problem, col, x)) return launch_col2im_strided_steps(problem, col, x);

  const WindowAxis &height = problem.height, &width = problem.width;
  const int row_threads = ceil_div(width.size, 4 * width.stride);
  const int plane_threads = problem.depth.size * height.size * row_threads;
  Vectors vectors{.steps = steps_of(problem),
                  .row_threads = row_threads,
                  .by_row_threads = FastDivision(row_threads),
                  .by_height = FastDivision(height.size),
                  .by_plane_threads = FastDivision(plane_threads),
                  .plane_threads = plane_threads,
                  .channel0 = 0,
                  .threads = 0};
  // Threads are numbered by ints: with more of them than that, a launch for some of the channels
  // after the other.
  const std::int64_t channels = std::int64_t{problem.N} * problem.C;
  const std::int64_t step = (std::int64_t{1} << 30) / plane_threads;
  for (; vectors.channel0 < channels; vectors.channel0 += step) {
    const std::int64_t some = std::min(step, channels - vectors.channel0);
    vectors.threads = static_cast<int>(some * plane_threads);
    launch(kernel_for(width), {blocks_for(vectors.threads, kThreads, kMaxBlocks), kThreads},
           problem, vectors, col, x);
  }
}

}  // namespace

Implementation<Im2colProblem> col2im_vectorized() { return {.supports = supports, .run = run}; }

}  // namespace convladder::BACKEND::cuda_optimized::col2im
