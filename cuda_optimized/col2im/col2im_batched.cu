/// @file col2im_batched.cu
/// @brief Batched launch: all images are gathered in one launch.
///
/// - Before: cuda_naive/col2im/col2im.cu
/// - After: col2im_strided_steps.cu
/// - The same maths: cpu_reference/col2im/col2im.cpp
///
/// **The idea.** As in im2col: no window crosses an image or a channel, so N images of C channels
/// are one image of N * C channels, and one launch gathers them all.
///
///     col  [N][C * taps][windows]        ->  [N*C * taps][windows]
///     x    [N][C][D][H][W]               ->  [N*C][D][H][W]
///
/// **Expect.** Loads, divisions and stores as before, but 1 launch instead of N.
/// @expect launches 1, of all images
/// @expect blocks 71, 2 * 4 * 34 * 66 pixels by 256; 2 * 36 image by image
/// @expect loads_per_output.col 9 * 32 * 64 / (34 * 66) = 8.214, as before
/// **Costs.** The columns of all images are in memory at once: N * C * R * S * P * Q floats. Not
/// supported: layouts other than NCHW, and types other than float32.
/// **Try.** The grid has at most 2048 blocks, and threads step to further pixels. Give each pixel a
/// thread of its own instead: is B9 faster then, or slower, and why?
#include "core/cuda/grid_stride.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/col2im/col2im_batched.cuh"

namespace convladder::BACKEND::cuda_optimized::col2im {
namespace {

constexpr int kThreads = 256;
/// Enough to fill any GPU of today: 132 SMs hold 8 blocks of 256 threads each. More work strides.
constexpr std::int64_t kMaxBlocks = 2048;

/// The windows [begin, end) whose extent covers a position, counted with padding.
struct Windows {
  int begin, end;
};

__device__ Windows windows_over(const WindowAxis& axis, int at) {
  const int extent = static_cast<int>(window_extent(axis.kernel, axis.dilation));
  return {at < extent ? 0 : (at - extent) / axis.stride + 1, min(at / axis.stride + 1, axis.out)};
}

/// The tap that reads a position which the window covers; -1 where the position is in a gap.
__device__ int tap_at(const WindowAxis& axis, int at, int window) {
  const int offset = at - window * axis.stride;
  return offset % axis.dilation == 0 ? offset / axis.dilation : -1;
}

/// col [N*C * taps][windows], x [N*C][D][H][W]. Any one-dimensional grid.
__global__ void col2im_col2im_batched(Im2colProblem problem, const float* col, float* x) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();
  const std::int64_t channels = std::int64_t{problem.N} * problem.C;

  for (const std::int64_t pixel : grid_stride(channels * problem.channel_size())) {
    const std::int64_t nc = pixel / problem.channel_size(), place = pixel % problem.channel_size();
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
          sum += col[(nc * taps + tap) * windows + window];
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
  const std::int64_t pixels = std::int64_t{problem.N} * problem.C * problem.channel_size();
  launch(col2im_col2im_batched, {blocks_for(pixels, kThreads, kMaxBlocks), kThreads}, problem,
         arrays.col, arrays.x);
}

}  // namespace

extern const Implementation<Col2imArrays> col2im_batched = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::col2im
