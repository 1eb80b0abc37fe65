/// @file col2im.cu
/// @brief Naive CUDA gather: one thread per pixel sums its column elements, one launch per image.
///
/// - Before: cpu_reference/col2im/col2im.cpp
/// - After: cuda_optimized/col2im/col2im_batched.cu
///
/// **The idea.** With scattering threads, several threads add to the same pixel at the same time,
/// which requires atomics. A gather avoids this, as in Caffe and MXNet (`col2im_gpu_kernel`): the
/// thread of a pixel finds the column elements that correspond to the pixel, adds them in a
/// register and stores the sum once. No atomics are needed, and the order of summation is fixed.
///
///     stride 2, 5 taps, dilation 1         at = 5, counted with padding, lies in
///     0 1 2 3 4 5 6 7 8                    window 1 (starts at 2) as tap 3 and in
///     [window0]                            window 2 (starts at 4) as tap 1:
///         [window1]                        first: (5 - 5) / 2 + 1 = 1
///             [window2]                    last:   5 / 2 = 2
///
/// A dilated window has gaps: it reads the pixel only if at - start is a multiple of the dilation.
/// A pixel outside of all windows has an empty sum.
///
/// **Expect.** Up to ceil(extent / stride) windows per axis are tested; with gaps, some do not read
/// the pixel. With stride 1, the lanes of a warp load adjacent elements of a row of col.
/// @expect loads_per_output.col 9 * 32 * 64 / (34 * 66) = 8.214, each element of col once
/// @expect lanes_per_output.x.store 1, no atomics
/// @expect launches 2, one an image
/// **Costs.** Two divisions for each window that is tested, and N launches. Supports layout NCHW
/// and float32 only.
/// **Try.** Start the loops at window 0. How many windows are then tested for a pixel of B4?
#include "core/cuda/grid_stride.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_naive/col2im/col2im.cuh"

namespace convladder::BACKEND::cuda_naive::col2im {
namespace {

constexpr int kThreads = 256;
/// Enough blocks to fill any current GPU: 132 SMs hold 8 blocks of 256 threads each. Larger
/// problems are processed by a grid-stride loop.
constexpr std::int64_t kMaxBlocks = 2048;

/// The windows [begin, end) whose extent covers a position in the padded input.
struct Windows {
  int begin, end;
};

__device__ Windows windows_over(const WindowAxis& axis, int at) {
  const int extent = static_cast<int>(window_extent(axis.kernel, axis.dilation));
  return {at < extent ? 0 : (at - extent) / axis.stride + 1, min(at / axis.stride + 1, axis.out)};
}

/// The tap with which a window that covers the position reads it; -1 if the position is in a gap.
__device__ int tap_at(const WindowAxis& axis, int at, int window) {
  const int offset = at - window * axis.stride;
  return offset % axis.dilation == 0 ? offset / axis.dilation : -1;
}

/// One image: col [C * taps][windows], x [C][D][H][W]. Launch with any one-dimensional grid.
__global__ void col2im_col2im(Im2colProblem problem, const float* col, float* x) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();

  for (const std::int64_t pixel : grid_stride(problem.C * problem.channel_size())) {
    const std::int64_t c = pixel / problem.channel_size(), place = pixel % problem.channel_size();
    const int w = static_cast<int>(place % width.size) + width.pad_before;
    const int h = static_cast<int>(place / width.size % height.size) + height.pad_before;
    const int d = static_cast<int>(place / width.size / height.size) + depth.pad_before;

    const Windows over_d = windows_over(depth, d);
    const Windows over_h = windows_over(height, h);
    const Windows over_w = windows_over(width, w);
    float sum = 0.0f;
    for (int o = over_d.begin; o < over_d.end; ++o) {
      const int t = tap_at(depth, d, o);
      if (t < 0) continue;
      for (int p = over_h.begin; p < over_h.end; ++p) {
        const int r = tap_at(height, h, p);
        if (r < 0) continue;
        for (int q = over_w.begin; q < over_w.end; ++q) {
          const int s = tap_at(width, w, q);
          if (s < 0) continue;
          const std::int64_t tap = (std::int64_t{t} * height.kernel + r) * width.kernel + s;
          const std::int64_t window = (std::int64_t{o} * height.out + p) * width.out + q;
          sum += col[(c * taps + tap) * windows + window];
        }
      }
    }
    x[pixel] = problem.request == Request::add ? x[pixel] + sum : sum;
  }
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const Im2colProblem& problem, const Col2imArrays& arrays, const Context&) {
  if (problem.request == Request::none) return;
  const unsigned blocks = blocks_for(problem.C * problem.channel_size(), kThreads, kMaxBlocks);
  for (std::int64_t n = 0; n < problem.N; ++n) {
    launch(col2im_col2im, {blocks, kThreads}, problem,
           arrays.col + n * problem.rows() * problem.columns(),
           arrays.x + n * problem.C * problem.channel_size());
  }
}

}  // namespace

extern const Implementation<Col2imArrays> col2im = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::col2im
