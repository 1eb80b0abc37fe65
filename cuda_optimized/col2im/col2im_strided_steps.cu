/// @file col2im_strided_steps.cu
/// @brief Strided steps: a thread visits only the windows that read its pixel.
///
/// - Before: col2im_batched.cu
/// - After: col2im_vectorized.cu
/// - The same maths: cpu_reference/col2im/col2im.cpp
///
/// **The idea.** A dilated window has gaps, and the usual loop tries every window that covers the
/// pixel, and skips it if the pixel is in a gap. But the windows that read it can be computed.
/// Window o reads position `at` as tap k if o * stride + k * dilation = at. Let g = gcd(stride,
/// dilation): if g does not divide `at`, no window does. Otherwise o is known modulo dilation / g
/// (from the inverse of stride / g, which the host computes once), and from one such window to the
/// next, o grows by dilation / g and k falls by stride / g. So the elements of col that belong to a
/// pixel form a box, with the same three strides for all pixels.
///
///     stride 2, dilation 3, 3 taps                  at = 8: windows 1, 2, 3 and 4 cover it.
///     0 1 2 3 4 5 6 7 8 9 ...                       2 o + 3 k = 8: o = 1 (modulo 3).
///         x     x     x                window 1     Window 1 reads it, as tap 2; window 4,
///             x     x     x            window 2     3 windows on, 2 taps earlier, as tap 0.
///                 x     x     x        window 3
///                     x     x     x    window 4
///
/// **Expect.** As many iterations as terms: for stride 1 and dilation d, d times fewer per axis.
/// The divisors are known to the host, so that divisions are multiplications, and a fixed number of
/// them per pixel. A copy of the bytes of B3 or B4 takes 61 us; this takes several times as long,
/// as loads have 4 bytes, and each addition waits for its load.
/// @expect loads_per_output.col 9 * 32 * 64 / (34 * 66) = 8.214, as before: the terms
/// @expect bytes_per_lane.col.load 4
/// @expect lanes_per_output.x.store 1
/// **Costs.** A dozen constants. Not supported: NHWC, other types, and 2^31 or more pixels in a
/// channel.
/// **Try.** Count the iterations of both rungs on the host for stride 1, dilation 4, 3 taps.
#include "core/cuda/grid_stride.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/col2im/col2im_strided_steps.cuh"
#include "cuda_optimized/col2im/shared/strided_steps.cuh"

namespace convladder::BACKEND::cuda_optimized::col2im {
namespace {

constexpr int kThreads = 256;
/// Enough to fill any GPU of today: 132 SMs hold 8 blocks of 256 threads each. More work strides.
constexpr std::int64_t kMaxBlocks = 2048;

/// col [N*C * taps][windows], x [N*C][D][H][W]. Any one-dimensional grid.
__global__ void col2im_col2im_strided_steps(Im2colProblem problem, Steps steps, const float* col,
                                            float* x) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();
  const std::int64_t channels = std::int64_t{problem.N} * problem.C;

  for (const std::int64_t pixel : grid_stride(channels * problem.channel_size())) {
    const std::int64_t nc = pixel / problem.channel_size();
    const int place = static_cast<int>(pixel % problem.channel_size());
    const int w = place % width.size + width.pad_before;
    const int h = place / width.size % height.size + height.pad_before;
    const int d = place / width.size / height.size + depth.pad_before;

    const Readers of_d = readers_of(depth, steps.depth, d);
    const Readers of_h = readers_of(height, steps.height, h);
    const Readers of_w = readers_of(width, steps.width, w);
    const std::int64_t tap =
        (std::int64_t{of_d.tap} * height.kernel + of_h.tap) * width.kernel + of_w.tap;
    const std::int64_t window =
        (std::int64_t{of_d.window} * height.out + of_h.window) * width.out + of_w.window;
    const std::int64_t first = (nc * taps + tap) * windows + window;
    float sum = 0.0f;
    for (int i = 0; i < of_d.count; ++i) {
      for (int j = 0; j < of_h.count; ++j) {
        const std::int64_t row = first + i * steps.col_depth + j * steps.col_height;
        for (int k = 0; k < of_w.count; ++k) sum += col[row + k * steps.col_width];
      }
    }
    x[pixel] = problem.request == Request::add ? x[pixel] + sum : sum;
  }
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return too_large_for_steps(problem);
}

void run(const Im2colProblem& problem, const Col2imArrays& arrays, const Context&) {
  launch_col2im_strided_steps(problem, arrays.col, arrays.x);
}

}  // namespace

void launch_col2im_strided_steps(const Im2colProblem& problem, const float* col, float* x) {
  if (problem.request == Request::none) return;
  const std::int64_t pixels = std::int64_t{problem.N} * problem.C * problem.channel_size();
  launch(col2im_col2im_strided_steps, {blocks_for(pixels, kThreads, kMaxBlocks), kThreads}, problem,
         steps_of(problem), col, x);
}

extern const Implementation<Col2imArrays> col2im_strided_steps = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::col2im
