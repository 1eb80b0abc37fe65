/// @file im2col.cu
/// @brief Naive CUDA im2col: one thread per channel and window, one launch per image.
///
/// - Before: cpu_reference/im2col/im2col.cpp
/// - After: cuda_optimized/im2col/im2col_batched.cu
///
/// **The idea.** A thread copies one window of one channel, which is part of a column of col. The
/// kernel is that of Caffe and MXNet (`im2col_gpu_kernel`), with a *grid-stride loop*: the grid has
/// a bounded size, and a thread proceeds to the item one grid size further.
///
///                 thread 0  1  2  3 ...        neighbouring threads, neighbouring columns:
///     row c, tap 0     |  |  |  |              a warp's store of a tap is 128 contiguous bytes
///     row c, tap 1     v  v  v  v
///
/// Items and offsets have 64 bits. In 32 bits, `i += grid size` overflows for more than 2^30 items,
/// and offsets into col overflow even sooner (Caffe and MXNet use 32 bits).
///
/// **Expect.** One load and one store per element of col. Stores are coalesced; loads are coalesced
/// if the stride is 1. The 64-bit divisions that decode an item take some hundred instructions,
/// once per window.
/// @expect loads_per_output.x 1
/// @expect lanes_per_output.col.store 1
/// @expect sectors_per_request.col.store 4, coalesced
/// @expect launches 2, one an image
/// **Costs.** N launches of some microseconds each; a small image does not fill the GPU. Supports
/// layout NCHW and float32 only.
/// **Try.** Assign neighbouring channels of one window to neighbouring threads. Which bytes does a
/// warp's store of a tap touch then?
#include "core/cuda/grid_stride.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_naive/im2col/im2col.cuh"

namespace convladder::BACKEND::cuda_naive::im2col {
namespace {

constexpr int kThreads = 256;
/// Enough blocks to fill any current GPU: 132 SMs hold 8 blocks of 256 threads each. Larger
/// problems are processed by a grid-stride loop.
constexpr std::int64_t kMaxBlocks = 2048;

/// The position along the axis that this tap of this window reads; -1 in the padding.
__device__ int position(const WindowAxis& axis, int window, int tap) {
  const int at = window * axis.stride - axis.pad_before + tap * axis.dilation;
  return at >= 0 && at < axis.size ? at : -1;
}

/// One image: x [C][D][H][W], col [C * taps][windows]. Launch with any one-dimensional grid.
__global__ void im2col_im2col(Im2colProblem problem, const float* x, float* col) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();

  for (const std::int64_t item : grid_stride(problem.C * windows)) {
    const std::int64_t c = item / windows, window = item % windows;
    const int q = static_cast<int>(window % width.out);
    const int p = static_cast<int>(window / width.out % height.out);
    const int o = static_cast<int>(window / width.out / height.out);

    const float* channel = x + c * problem.channel_size();
    std::int64_t to = c * taps * windows + window;  // the next tap's element is `windows` elements
                                                    // further
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
  const unsigned blocks = blocks_for(problem.C * problem.columns(), kThreads, kMaxBlocks);
  for (std::int64_t n = 0; n < problem.N; ++n) {
    launch(im2col_im2col, {blocks, kThreads}, problem,
           arrays.x + n * problem.C * problem.channel_size(),
           arrays.col + n * problem.rows() * problem.columns());
  }
}

}  // namespace

extern const Implementation<Im2colArrays> im2col = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::im2col
