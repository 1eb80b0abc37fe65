/// @file tiled.cu
/// @brief Shared-memory tile: each block stages its input tile and halo once.
///
/// - Before: cuda_naive/conv2d/direct.cu
/// - After: constant_weights.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** Neighbouring outputs share inputs: 8 x 32 outputs of a 3 x 3 filter need 10 x 34
/// inputs, not 8 * 32 * 9. The block copies them to shared memory once, then every thread reads its
/// window from there.
///
///     o o o o # #     3 x 3 filter, stride 1: o outputs of this block,
///     o o o o # #     # the halo, which the neighbouring blocks read too
///     # # # # # #
///     # # # # # #     channel after channel: copy, barrier, multiply, barrier
///
/// Padding is a select during the copy: the tile holds zeros outside of x, and the multiply loop
/// has no branch.
///
/// **Expect.** Global loads of x per output and channel fall from R * S to (7 + R)(31 + S) / 256,
/// at 6 x 6 from 36 to 1.9. Yet the loop gains little: it still issues two loads per multiply-add,
/// x from shared memory and the weight through the L1 cache, and an SM issues one warp-wide load
/// per cycle of either kind. Only the bounds checks are saved. Shared memory alone does not pay.
/// @expect loads_per_output.x 4 * (7 + 5) * (31 + 5) / 256 = 6.75, the tile with its halo
/// @expect loads_per_output.shared 4 * 5 * 5 = 100, one for each multiply-add
/// @expect loads_per_output.weights 4 * 5 * 5 = 100, the other one
/// @expect barriers_per_block 2 * 4 = 8, two a channel
/// **Costs.** Two barriers per channel. The tile is halved until its inputs fit into 64 KB. Not
/// supported: windows that do not fit alone, layouts other than NCHW, types other than float32.
/// **Try.** Let the largest tile be 1 x 256 outputs. How many global loads is that per output and
/// channel at 6 x 6, and does the time follow them?
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr OutputTile kLargestTile = {8, 32};  ///< Rows and columns: a thread an output.
constexpr OutputTile kSmallestTile = {1, 1};
[[maybe_unused]] constexpr int kThreads = 8 * 32;  ///< Of a block, at most.

/// Copies the rows h0 ... and columns w0 ... of a channel into the tile [rows][columns], with zeros
/// in the padding. Negative coordinates become huge unsigned ones, so that one comparison checks
/// both ends.
__device__ void load_tile(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                          unsigned rows, unsigned columns, float* tile) {
  for (unsigned i = threadIdx.y; i < rows; i += blockDim.y) {
    const unsigned h = static_cast<unsigned>(h0) + i;
    const bool row_exists = h < static_cast<unsigned>(conv.H);
    for (unsigned j = threadIdx.x; j < columns; j += blockDim.x) {
      const unsigned w = static_cast<unsigned>(w0) + j;
      tile[i * columns + j] = row_exists && w < static_cast<unsigned>(conv.W)
                                  ? channel[std::int64_t{h} * conv.W + w]
                                  : 0.0f;
    }
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid (ceil(Q / tile columns), <= ceil(P / tile rows), <= N*K), block (tile columns, tile rows).
__global__ void __launch_bounds__(kThreads)
    conv2d_direct_tiled(Conv2dProblem conv, unsigned rows, unsigned columns, const float* x,
                        const float* weights, const float* bias, float* y) {
  float* tile = dynamic_shared<float>();  // [rows][columns], one channel
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int tile_p = static_cast<int>(blockDim.y), tile_q = static_cast<int>(blockDim.x);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int pitch = static_cast<int>(columns);
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 w_at{group_c, conv.R, conv.S};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  // This thread's window in the tile.
  const float* window = tile + ty * conv.stride.h * pitch + tx * conv.stride.w;

  const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  // grid.y and grid.z end at 65535: with more rows or images, a block takes several tiles. No
  // thread leaves early, not even one whose output lies outside of y: the block needs all for its
  // barriers.
  for (std::int64_t nk = blockIdx.z; nk < std::int64_t{conv.N} * conv.K; nk += gridDim.z) {
    const int n = static_cast<int>(nk / conv.K), k = static_cast<int>(nk % conv.K);
    const int c0 = k / group_k * group_c;  // first input channel of k's group
    for (std::int64_t row = std::int64_t{blockIdx.y} * tile_p; row < conv.P;
         row += std::int64_t{gridDim.y} * tile_p) {
      const int p0 = static_cast<int>(row);
      float sum = bias ? bias[k] : 0.0f;
      for (int c = 0; c < group_c; ++c) {
        __syncthreads();  // between the reads of the channel before and this channel's writes
        load_tile(conv, x + x_at(n, c0 + c, 0, 0), p0 * conv.stride.h - conv.pad.top,
                  q0 * conv.stride.w - conv.pad.left, rows, columns, tile);
        __syncthreads();  // between these writes and the reads below
        for (int r = 0; r < conv.R; ++r) {
          const float* line = window + r * conv.dilation.h * pitch;
          for (int s = 0; s < conv.S; ++s) {
            sum += line[s * conv.dilation.w] * weights[w_at(k, c, r, s)];
          }
        }
      }
      if (ty < conv.P - p0 && tx < conv.Q - q0)
        y[y_at(n, k, p0 + ty, q)] = activated(conv.activation, sum);
    }
  }
}

std::int64_t shared_bytes(const Conv2dProblem& conv, OutputTile tile) {
  const InputTile in = input_of(conv, tile);
  return InputTile::bytes(in.rows, in.columns);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (fitting_tile(conv, kLargestTile, kSmallestTile.rows, shared_bytes)) return {};
  return too_large_for_shared_memory(conv, kSmallestTile, shared_bytes(conv, kSmallestTile));
}

OutputTile tile_of(const Conv2dProblem& conv) {
  return fitting_tile(conv, kLargestTile, kSmallestTile.rows, shared_bytes).value_or(kSmallestTile);
}

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const OutputTile tile = tile_of(conv);
  const InputTile in = input_of(conv, tile);
  const dim3 block(static_cast<unsigned>(tile.columns), static_cast<unsigned>(tile.rows));
  const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * conv.K, 1, kMaxGridYZ));
  launch(conv2d_direct_tiled, {grid, block, static_cast<std::size_t>(shared_bytes(conv, tile))},
         conv, static_cast<unsigned>(in.rows), static_cast<unsigned>(in.columns), arrays.x,
         arrays.weights, arrays.bias, arrays.y);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text("a thread an output", idle_strides_in_words(conv));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
