/// @file register_tile.cu
/// @brief Register tile: a thread accumulates a column of pixels for several output channels.
///
/// - Before: constant_weights.cu
/// - After: float4.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** A value in a register can be used in many products; one in shared memory has to be
/// loaded for each. So a thread keeps the accumulators of 8 pixels, one below the other, for up to
/// 8 output channels. Each loaded value is used for all of these channels, and with vertical stride
/// and dilation 1 also for up to R of the pixels:
///
///            tx                    one thread, one column of the window, R = 3:
///          . o . .   pixel 0        v0   pixel 0 = v0 v1 v2   . w0 w1 w2
///          . o . .   pixel 1        v1   pixel 1 =    v1 v2 v3  . the same three weights
///          . o . .   ...            ...  ...
///          . o . .   pixel 7        v9   10 loads for 8 * 3 products of each output channel
///
/// A weight is used for 8 products, so weights are staged in shared memory
/// (shared/direct/register_tile.cuh has the loop over the taps: multiply()).
///
/// **Expect.** At 6 x 6 and 6 output channels (B1), 13 loads of x from shared memory and 12 of
/// weights for 288 multiply-adds: these loads are no longer the limit. What is left is the wait for
/// the copy, 22 loads per thread and channel. B7 needs one launch instead of 171.
/// @expect loads_per_output.shared 4 * (5 * 12 + 5 * 5 * 2) / 64 = 6.875, for 64 sums
/// @expect loads_per_output.x 4 * 36 * 36 / (8 * 32 * 32) = 0.633, once for 8 filters
/// @expect loads_per_output.weights 4 * 5 * 5 * 8 / (8 * 32 * 32) = 0.098, once a block
/// @expect excess.shared.load 0
/// **Costs.** 7 x 7 outputs are a block of only 8 threads. x is read again for each 8 output
/// channels. Only square filters of 1, 3, 5, 6, 7 and 11 share values along the column. A
/// horizontal stride causes bank conflicts. Not supported: over 64 KB for the inputs of 8 outputs
/// and a filter's weights of a channel; NHWC; other types than float32.
/// **Try.** Read the weights from global memory, all threads of a warp from one address. How many
/// loads is that for 288 multiply-adds?
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"
#include "cuda_optimized/conv2d/shared/direct/register_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr OutputTile kLargestTile = {32, 32};  ///< Rows and columns: 4 x 32 threads.
constexpr OutputTile kSmallestTile = {kPixels, 1};
[[maybe_unused]] constexpr int kThreads = 4 * 32;  ///< Of a block, at most.
[[maybe_unused]] constexpr int kBlocks = 3;        ///< Of an SM, at least: up to 168 registers.

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

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. The filter's size
/// is R x S = kR x kS, with vertical stride and dilation 1; all are free for 0 x 0. Grid (ceil(Q /
/// tile columns), <= ceil(P / tile rows), <= N * filter tiles), block (tile columns, tile rows /
/// kPixels).
template <int kR, int kS, int kFilters>
__global__ void __launch_bounds__(kThreads, kBlocks)
    conv2d_direct_register_tile(Conv2dProblem conv, unsigned rows, unsigned columns, const float* x,
                                const float* weights, const float* bias, float* y) {
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int taps = conv.R * conv.S;
  float* filter_room = dynamic_shared<float>();                    // [taps][kTapPitch]
  float* tile = filter_room + filter_tile_floats<kFilters>(taps);  // [rows][columns], one channel
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y) * kPixels;
  const int tile_p = static_cast<int>(blockDim.y) * kPixels, tile_q = static_cast<int>(blockDim.x);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t filter_size = std::int64_t{group_c} * taps;
  const int pitch = static_cast<int>(columns);
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const std::int64_t y_row = conv.Q, y_plane = conv.P * y_row;  // floats
  // The window of this thread's first pixel in the tile.
  const float* window = tile + ty * conv.stride.h * pitch + tx * conv.stride.w;

  const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  // grid.y and grid.z end at 65535: with more rows or images, a block takes several tiles. No
  // thread leaves early, not even one whose outputs lie outside of y: the block needs all for its
  // barriers.
  for (std::int64_t z = blockIdx.z; z < std::int64_t{conv.N} * filter_tiles; z += gridDim.z) {
    const int n = static_cast<int>(z / filter_tiles);
    const int filter_tile = static_cast<int>(z % filter_tiles);
    const int group = filter_tile / group_tiles, c0 = group * group_c;
    const int k0 = group * group_k + filter_tile % group_tiles * kFilters;
    // The group's last tile may have fewer filters. For the missing ones the thread multiplies by
    // whatever shared memory holds, and does not store the sums.
    const int filters = min(kFilters, (group + 1) * group_k - k0);

    for (std::int64_t row = std::int64_t{blockIdx.y} * tile_p; row < conv.P;
         row += std::int64_t{gridDim.y} * tile_p) {
      const int p0 = static_cast<int>(row);
      const int pixels = q < conv.Q ? min(kPixels, conv.P - p0 - ty) : 0;  // inside of y, or <= 0
      const std::int64_t output = y_at(n, k0, p0 + ty, q);
      float sums[kFilters][kPixels];
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
        const float start = bias && f < filters ? bias[k0 + f] : 0.0f;
#pragma unroll
        for (int j = 0; j < kPixels; ++j) sums[f][j] = start;
      }
      for (int c = 0; c < group_c; ++c) {
        __syncthreads();  // between the reads of the channel before and this channel's writes
        load_filters<kFilters>(
            {weights + k0 * filter_size + std::int64_t{c} * taps, filter_size, filters, taps}, 0,
            thread, threads, filter_room);
        load_tile(conv, x + x_at(n, c0 + c, 0, 0), p0 * conv.stride.h - conv.pad.top,
                  q0 * conv.stride.w - conv.pad.left, rows, columns, tile);
        __syncthreads();  // between these writes and the reads below
        // for r, s, f, i: sums[f][i] += tile(pixel i, tap r, s) * weight(r, s, filter f)
        multiply<kR, kS>(conv, window, pitch, filter_room, sums);
      }
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kPixels; ++j) {
          if (f < filters && j < pixels)
            y[output + f * y_plane + j * y_row] = activated(conv.activation, sums[f][j]);
        }
      }
    }
  }
}

/// A channel's inputs and weights.
template <int kFilters>
std::int64_t shared_bytes(const Conv2dProblem& conv, OutputTile tile) {
  const InputTile in = input_of(conv, tile);
  const std::int64_t weights = InputTile::bytes(conv.R, conv.S) * kTapPitch<kFilters> + 16;
  return weights + InputTile::bytes(in.rows, in.columns);
}

/// A kernel, the output channels of its threads, its tile and what it takes of shared memory.
struct Choice {
  int filters;
  void (*kernel)(Conv2dProblem, unsigned, unsigned, const float*, const float*, const float*,
                 float*);
  OutputTile tile;
  std::int64_t bytes;
  bool unrolled;  ///< Over the filter's taps.
};

template <int kFilters>
std::optional<Choice> kernel_with(const Conv2dProblem& conv) {
  const auto tile = fitting_tile(conv, kLargestTile, kSmallestTile.rows, shared_bytes<kFilters>);
  if (!tile) return {};
  const auto with = [&](auto kernel) {
    return Choice{kFilters, kernel, *tile, shared_bytes<kFilters>(conv, *tile),
                  kernel != conv2d_direct_register_tile<0, 0, kFilters>};
  };
  const bool shared_column = conv.R == conv.S && conv.stride.h == 1 && conv.dilation.h == 1;
  switch (shared_column ? conv.R : 0) {
    case 1: return with(conv2d_direct_register_tile<1, 1, kFilters>);
    case 3: return with(conv2d_direct_register_tile<3, 3, kFilters>);
    case 5: return with(conv2d_direct_register_tile<5, 5, kFilters>);
    case 6: return with(conv2d_direct_register_tile<6, 6, kFilters>);
    case 7: return with(conv2d_direct_register_tile<7, 7, kFilters>);
    case 11: return with(conv2d_direct_register_tile<11, 11, kFilters>);
    default: return with(conv2d_direct_register_tile<0, 0, kFilters>);
  }
}

/// As few tiles of filters as 8 a thread allow, and the smallest tile that is enough for that; one
/// filter if the weights of more do not fit. Nothing if that does not fit either.
std::optional<Choice> choose(const Conv2dProblem& conv) {
  const int group_k = conv.K / conv.groups;
  const int wanted = ceil_div(group_k, ceil_div(group_k, 8));
  std::optional<Choice> choice;
  if (wanted > 6) {
    choice = kernel_with<8>(conv);
  } else if (wanted > 4) {
    choice = kernel_with<6>(conv);
  } else if (wanted > 1) {
    choice = kernel_with<4>(conv);
  }
  return choice ? choice : kernel_with<1>(conv);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (choose(conv)) return {};
  return too_large_for_shared_memory(conv, kSmallestTile, shared_bytes<1>(conv, kSmallestTile));
}

OutputTile tile_of(const Conv2dProblem& conv) {
  const auto choice = choose(conv);
  return choice ? choice->tile : kSmallestTile;
}

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const Choice choice = choose(conv).value();
  const OutputTile tile = choice.tile;
  const InputTile in = input_of(conv, tile);
  const dim3 block(static_cast<unsigned>(tile.columns), static_cast<unsigned>(tile.rows / kPixels));
  const int filter_tiles = conv.groups * ceil_div(conv.K / conv.groups, choice.filters);
  const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * filter_tiles, 1, kMaxGridYZ));
  launch(choice.kernel, {grid, block, static_cast<std::size_t>(choice.bytes)}, conv,
         static_cast<unsigned>(in.rows), static_cast<unsigned>(in.columns), arrays.x,
         arrays.weights, arrays.bias, arrays.y);
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const Choice choice = choose(conv).value();
  return text(choice.unrolled ? text(conv.R, " x ", conv.S, " unrolled") : "any filter", ", ",
              choice.filters, choice.filters == 1 ? " filter a thread" : " filters a thread",
              idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_register_tile = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
