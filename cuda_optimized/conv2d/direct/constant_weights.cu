/// @file constant_weights.cu
/// @brief Constant memory: weights are broadcast; common filter sizes are template parameters.
///
/// - Before: tiled.cu
/// - After: register_tile.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** All threads of a block multiply by the same weight at the same time. The constant
/// cache broadcasts one value to a whole warp, on a path of its own. Constant memory has 64 KB, so
/// the weights are copied in pieces, each followed by a launch that uses it.
///
///     weights [K][C][R][S] -- piece 0 --> constant memory --> launch: y for the filters of piece 0
///                          -- piece 1 --> constant memory --> launch: y for the filters of piece 1
///
/// A single filter of more than 64 KB is cut into pieces of its channels; all but the first launch
/// add to y. With R and S known at compile time, the loop over s is unrolled, and the address of
/// each weight becomes part of an instruction.
///
/// **Expect.** One load from shared memory per multiply-add instead of two loads: about twice the
/// speed of direct/tiled, and at most a quarter of the arithmetic peak, because an SM issues one
/// warp-wide load per cycle, but four warp-wide multiply-adds.
/// @expect loads_per_output.global 4 * (7 + 5) * (31 + 5) / 256 = 6.75, of x alone
/// @expect loads_per_output.shared 4 * 5 * 5 = 100, one for each multiply-add
/// @expect loads_per_output.constant 4 * 5 * 5 = 100, which come another way
/// @expect launches 1, for 800 weights
/// **Costs.** A copy and a launch per 16384 weights, and x is read again in each. All launches of
/// this rung in the process share the constant memory: runs must follow one another in one stream.
/// Not supported: filters of more than 16384 taps, windows larger than shared memory, other layouts
/// than NCHW and other types than float32.
/// **Try.** B7 (32x512x7x7, 512 filters 3x3) has 2.4 million weights. How many launches is that,
/// how many blocks has each of them, and how many could the GPU hold?
#include "core/conv2d_problem.hpp"
#include "core/cuda/constant_memory.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"
#include "cuda_optimized/conv2d/shared/direct/weight_chunks.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr OutputTile kLargestTile = {8, 32};  ///< Rows and columns: a thread an output.
constexpr OutputTile kSmallestTile = {1, 1};
[[maybe_unused]] constexpr int kThreads = 8 * 32;  ///< Of a block, at most.

__constant__ float constant_weights[kConstantFloats];  ///< One WeightPiece: [k][c][r][s].

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

/// x [N][C][H][W], bias [K] or null, y [N][K][P][Q]. The filter's size is R x S = kR x kS; any for
/// 0 x 0. Grid (ceil(Q / tile columns), <= ceil(P / tile rows), <= N * filters of the piece), block
/// (tile columns, tile rows).
template <int kR, int kS>
__global__ void __launch_bounds__(kThreads)
    conv2d_direct_constant_weights(Conv2dProblem conv, WeightPiece piece, unsigned rows,
                                   unsigned columns, const float* x, const float* bias, float* y) {
  float* tile = dynamic_shared<float>();  // [rows][columns], one channel
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int tile_p = static_cast<int>(blockDim.y), tile_q = static_cast<int>(blockDim.x);
  const int R = kR > 0 ? kR : conv.R, S = kS > 0 ? kS : conv.S;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int pitch = static_cast<int>(columns);
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  // This thread's window in the tile.
  const float* window = tile + ty * conv.stride.h * pitch + tx * conv.stride.w;

  const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  const int filters = piece.k_end - piece.k_begin, channels = piece.c_end - piece.c_begin;
  // grid.y and grid.z end at 65535: with more rows or images, a block takes several tiles. No
  // thread leaves early, not even one whose output lies outside of y: the block needs all for its
  // barriers.
  for (std::int64_t nk = blockIdx.z; nk < std::int64_t{conv.N} * filters; nk += gridDim.z) {
    const int n = static_cast<int>(nk / filters),
              k = piece.k_begin + static_cast<int>(nk % filters);
    const int c0 = k / group_k * group_c;  // first input channel of k's group
    for (std::int64_t row = std::int64_t{blockIdx.y} * tile_p; row < conv.P;
         row += std::int64_t{gridDim.y} * tile_p) {
      const int p0 = static_cast<int>(row);
      const bool inside = ty < conv.P - p0 && tx < conv.Q - q0;
      const std::int64_t output = y_at(n, k, p0 + ty, q);
      float sum = bias ? bias[k] : 0.0f;
      if (piece.c_begin > 0 && inside) sum = y[output];  // the sum over the channels before
      const float* weights = constant_weights + (k - piece.k_begin) * channels * R * S;
      for (int c = piece.c_begin; c < piece.c_end; ++c) {
        __syncthreads();  // between the reads of the channel before and this channel's writes
        load_tile(conv, x + x_at(n, c0 + c, 0, 0), p0 * conv.stride.h - conv.pad.top,
                  q0 * conv.stride.w - conv.pad.left, rows, columns, tile);
        __syncthreads();  // between these writes and the reads below
#pragma unroll 1
        for (int r = 0; r < R; ++r) {
          const float* line = window + r * conv.dilation.h * pitch;
#pragma unroll
          for (int s = 0; s < S; ++s) sum += line[s * conv.dilation.w] * weights[r * S + s];
        }
        weights += R * S;
      }
      if (inside) y[output] = activated(activation_of(conv, piece), sum);
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
  if (std::int64_t{conv.R} * conv.S > kConstantFloats) return too_large_for_constant_memory(conv);
  if (fitting_tile(conv, kLargestTile, kSmallestTile.rows, shared_bytes)) return {};
  return too_large_for_shared_memory(conv, kSmallestTile, shared_bytes(conv, kSmallestTile));
}

OutputTile tile_of(const Conv2dProblem& conv) {
  return fitting_tile(conv, kLargestTile, kSmallestTile.rows, shared_bytes).value_or(kSmallestTile);
}

using Kernel = decltype(&conv2d_direct_constant_weights<0, 0>);
Kernel kernel_for(const Conv2dProblem& conv) {
  if (conv.R != conv.S) return conv2d_direct_constant_weights<0, 0>;
  switch (conv.R) {
    case 1: return conv2d_direct_constant_weights<1, 1>;
    case 3: return conv2d_direct_constant_weights<3, 3>;
    case 5: return conv2d_direct_constant_weights<5, 5>;
    case 6: return conv2d_direct_constant_weights<6, 6>;
    case 7: return conv2d_direct_constant_weights<7, 7>;
    case 11: return conv2d_direct_constant_weights<11, 11>;
    default: return conv2d_direct_constant_weights<0, 0>;
  }
}

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const OutputTile tile = tile_of(conv);
  const InputTile in = input_of(conv, tile);
  const dim3 block(static_cast<unsigned>(tile.columns), static_cast<unsigned>(tile.rows));
  const ConstantMemoryTurn turn;
  for_each_piece(conv, [&](const WeightPiece& piece) {
    upload(conv, piece, arrays.weights, constant_weights);
    const std::int64_t planes = std::int64_t{conv.N} * (piece.k_end - piece.k_begin);
    const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                    blocks_for(planes, 1, kMaxGridYZ));
    launch(kernel_for(conv), {grid, block, static_cast<std::size_t>(shared_bytes(conv, tile))},
           conv, piece, static_cast<unsigned>(in.rows), static_cast<unsigned>(in.columns), arrays.x,
           arrays.bias, arrays.y);
  });
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const PieceSize piece = piece_size(conv);
  return text(kernel_for(conv) == conv2d_direct_constant_weights<0, 0>
                  ? "any filter"
                  : text(conv.R, " x ", conv.S, " unrolled"),
              piece.filters >= conv.K                  ? ", weights in one piece"
              : piece.channels == conv.C / conv.groups ? ", in pieces of whole filters"
                                                       : ", in pieces of a filter's channels",
              idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_constant_weights = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
