/// @file im2col_batched.cu
/// @brief Batched launch: all images are converted in one launch.
///
/// - Before: cuda_naive/im2col/im2col.cu
/// - After: im2col_vectorized.cu
/// - The same maths: cpu_reference/im2col/im2col.cpp
///
/// **The idea.** Image and channel are the two outermost axes of x and of col, and no window
/// crosses either. So N images of C channels are one image of N * C channels: the kernel is
/// unchanged, and its items are counted over all images.
///
///     x    [N][C][D][H][W]               ->  [N*C][D][H][W]
///     col  [N][C * taps][windows]        ->  [N*C * taps][windows]
///
/// **Expect.** Loads and stores as before, but 1 launch instead of N. That pays where one image is
/// too small for the GPU: an image of 64 x 14 x 14 has 12544 items, 49 blocks for 132 SMs; 32 of
/// them have 1568 blocks.
/// @expect launches 1, of all images
/// @expect blocks 2 * 4 * 32 * 64 / 256 = 64, a thread a window of a channel
/// @expect loads_per_output.x 1, as before
/// **Costs.** col must hold the columns of all images: N * C * R * S * P * Q floats. Not supported:
/// layouts other than NCHW, and types other than float32.
/// **Try.** Time one image of 64 x 14 x 14, then 2, 4, 8 ... of them. From how many on does the
/// time grow with their number?
#include "core/cuda/grid_stride.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/im2col/im2col_batched.cuh"

namespace convladder::BACKEND::cuda_optimized::im2col {
namespace {

constexpr int kThreads = 256;
/// Enough to fill any GPU of today: 132 SMs hold 8 blocks of 256 threads each. More work strides.
constexpr std::int64_t kMaxBlocks = 2048;

/// Where along the axis this tap of this window reads; -1 in the padding.
__device__ int position(const WindowAxis& axis, int window, int tap) {
  const int at = window * axis.stride - axis.pad_before + tap * axis.dilation;
  return at >= 0 && at < axis.size ? at : -1;
}

/// x [N*C][D][H][W], col [N*C * taps][windows]. Any one-dimensional grid.
__global__ void im2col_im2col_batched(Im2colProblem problem, const float* x, float* col) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();
  const std::int64_t channels = std::int64_t{problem.N} * problem.C;

  for (const std::int64_t item : grid_stride(channels * windows)) {
    const std::int64_t nc = item / windows, window = item % windows;
    const int q = static_cast<int>(window % width.out);
    const int p = static_cast<int>(window / width.out % height.out);
    const int o = static_cast<int>(window / width.out / height.out);

    const float* channel = x + nc * problem.channel_size();
    std::int64_t to = nc * taps * windows + window;  // the next tap's element is `windows` further
    for (int t = 0; t < depth.kernel; ++t) {
      const int d = position(depth, o, t);
      for (int r = 0; r < height.kernel; ++r) {
        const int h = position(height, p, r);
        for (int s = 0; s < width.kernel; ++s, to += windows) {
          const int w = position(width, q, s);
          const bool inside = d >= 0 && h >= 0 && w >= 0;
          const float value =
              inside ? channel[(std::int64_t{d} * height.size + h) * width.size + w] : 0.0f;
          col[to] = problem.request == Request::add ? col[to] + value : value;
        }
      }
    }
  }
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const Im2colProblem& problem, const Im2colArrays& arrays, const Context&) {
  if (problem.request == Request::none) return;
  const std::int64_t items = std::int64_t{problem.N} * problem.C * problem.columns();
  launch(im2col_im2col_batched, {blocks_for(items, kThreads, kMaxBlocks), kThreads}, problem,
         arrays.x, arrays.col);
}

}  // namespace

extern const Implementation<Im2colArrays> im2col_batched = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::im2col
