/// @file direct_register_tile.cu
/// @brief conv2d, a thread computes a column of pixels for several output channels.
///
/// - Before: direct_constant_weights.cu (a thread computes one output)
/// - After:  direct_float4.cu (the tile is copied in vectors)
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** A value in a register can take part in many products; one in shared memory has to
/// be loaded for each. So a thread keeps 8 pixels, one below the other, times up to 8 output
/// channels as sums in registers. Each value that it loads serves all of its output channels, and
/// with vertical stride and dilation 1 also up to R of its pixels:
///
///            tx                    one thread, one column of the window, R = 3:
///          . o . .   pixel 0        v0   pixel 0 = v0 v1 v2   . w0 w1 w2
///          . o . .   pixel 1        v1   pixel 1 =    v1 v2 v3  . the same three weights
///          . o . .   ...            ...  ...
///          . o . .   pixel 7        v9   10 loads for 8 * 3 products of each output channel
///
/// The lanes of a warp stay neighbours along q: their loads from shared memory touch 32 different
/// banks, their stores whole lines of y. Pixels side by side in a thread would spoil both.
///
/// **Expect.** At 6 x 6 and 6 output channels, 13 loads from shared memory and 36 weights for 288
/// multiply-adds: the loop's loads are no longer the limit. Global memory is read once for all
/// output channels of a thread, not once for each. 128 registers a thread there (nvcc 13.0,
/// sm_90), so that four blocks fit an SM. What is left is the wait for the copy: 20 loads a thread
/// and channel.
/// **Costs.** 64 sums take registers, and a block computes 32 x 32 pixels: small images leave
/// threads idle. Other filters than 1, 3, 5, 6, 7 and 11 squared, vertical strides and dilations
/// have no values to share along the column: they load 8 for 8 products of each output channel. A
/// horizontal stride of 2 or more makes bank conflicts. Declined are filters of more than 16384
/// taps, and problems of which 8 rows of outputs need more than 64 KB of inputs; also other layouts
/// than NCHW and other types than float32.
#include "core/cuda/launch.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/direct_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kPixels = 8;                     ///< Outputs of a thread, one below the other.
constexpr OutputTile kLargestTile = {32, 32};  ///< Rows and columns: 4 x 32 threads.
constexpr OutputTile kSmallestTile = {kPixels, 1};
[[maybe_unused]] constexpr int kThreads = 4 * 32;  ///< Of a block, at most.
[[maybe_unused]] constexpr int kBlocks = 3;        ///< That shall fit an SM: up to 168 registers.

__constant__ float constant_weights[kConstantFloats];  ///< One WeightPiece: [k][c][r][s].

/// Copies the rows h0 ... and columns w0 ... of a channel into the tile [rows][columns], zeros
/// where they fall into the padding. Negative coordinates turn into huge unsigned ones, so that one
/// comparison checks both ends.
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

/// Adds one channel's products to the sums. `window` is the thread's place in the tile; filter f's
/// weights for the channel begin at constant_weights[first + f * filter_size].
template <int kR, int kS, int kFilters>
__device__ void multiply(const Conv2dProblem& conv, const float* window, int pitch, int first,
                         int filter_size, float (&sums)[kFilters][kPixels]) {
  if constexpr (kR > 0) {  // vertical stride and dilation are 1
#pragma unroll 1
    for (int s = 0; s < kS; ++s) {
      float values[kPixels + kR - 1];
#pragma unroll
      for (int i = 0; i < kPixels + kR - 1; ++i) {
        values[i] = window[i * pitch + s * conv.dilation.w];
      }
#pragma unroll
      for (int r = 0; r < kR; ++r) {
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
          const float weight = constant_weights[first + f * filter_size + r * kS + s];
#pragma unroll
          for (int i = 0; i < kPixels; ++i) sums[f][i] += values[i + r] * weight;
        }
      }
    }
  } else {
    for (int r = 0; r < conv.R; ++r) {
      for (int s = 0; s < conv.S; ++s) {
        const float* column = window + r * conv.dilation.h * pitch + s * conv.dilation.w;
        float values[kPixels];
#pragma unroll
        for (int i = 0; i < kPixels; ++i) values[i] = column[i * conv.stride.h * pitch];
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
          const float weight = constant_weights[first + f * filter_size + r * conv.S + s];
#pragma unroll
          for (int i = 0; i < kPixels; ++i) sums[f][i] += values[i] * weight;
        }
      }
    }
  }
}

/// x [N][C][H][W], bias [K] or null, y [N][K][P][Q]. The filter's size is R x S = kR x kS, with
/// vertical stride and dilation 1; all are free for 0 x 0. Grid (ceil(Q / tile columns), <= ceil(P
/// / tile rows), <= N * filter tiles of the piece), block (tile columns, tile rows / kPixels).
template <int kR, int kS, int kFilters>
__global__ void __launch_bounds__(kThreads, kBlocks)
    conv2d_register_tile(Conv2dProblem conv, WeightPiece piece, unsigned rows, unsigned columns,
                         const float* x, const float* bias, float* y) {
  float* tile = dynamic_shared<float>();  // [rows][columns], one channel
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y) * kPixels;
  const int tile_p = static_cast<int>(blockDim.y) * kPixels, tile_q = static_cast<int>(blockDim.x);
  const int taps = conv.R * conv.S, filter_size = (piece.c_end - piece.c_begin) * taps;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters);
  const int pitch = static_cast<int>(columns);
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const std::int64_t y_row = conv.Q, y_plane = conv.P * y_row;  // floats
  // The window of this thread's first pixel in the tile.
  const float* window = tile + ty * conv.stride.h * pitch + tx * conv.stride.w;

  const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  const int filter_tiles = piece.tile_end - piece.tile_begin;
  // grid.y and grid.z end at 65535: with more rows or images, a block takes several tiles. No
  // thread leaves early, not even one whose outputs lie outside of y: the block needs all for its
  // barriers.
  for (std::int64_t z = blockIdx.z; z < std::int64_t{conv.N} * filter_tiles; z += gridDim.z) {
    const int n = static_cast<int>(z / filter_tiles);
    const int filter_tile = piece.tile_begin + static_cast<int>(z % filter_tiles);
    const int group = filter_tile / group_tiles, c0 = group * group_c;
    const int k0 = group * group_k + filter_tile % group_tiles * kFilters;
    // The group's last tile may have fewer filters. In place of those that are not there, the
    // thread multiplies by whatever stands behind in constant memory, and does not store the sums.
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
      if (piece.c_begin > 0) {  // the sums over the channels before
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
#pragma unroll
          for (int j = 0; j < kPixels; ++j) {
            if (f < filters && j < pixels) sums[f][j] = y[output + f * y_plane + j * y_row];
          }
        }
      }
      int first = (k0 - piece.k_begin) * filter_size;  // weight of the tile's first filter
      for (int c = piece.c_begin; c < piece.c_end; ++c) {
        __syncthreads();  // between the reads of the channel before and this channel's writes
        load_tile(conv, x + x_at(n, c0 + c, 0, 0), p0 * conv.stride.h - conv.pad.top,
                  q0 * conv.stride.w - conv.pad.left, rows, columns, tile);
        __syncthreads();  // between these writes and the reads below
        multiply<kR, kS>(conv, window, pitch, first, filter_size, sums);
        first += taps;
      }
      const Activation activation = activation_of(conv, piece);
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kPixels; ++j) {
          if (f < filters && j < pixels)
            y[output + f * y_plane + j * y_row] = activated(activation, sums[f][j]);
        }
      }
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

/// A kernel and the output channels of its threads.
struct Choice {
  int filters;
  void (*kernel)(Conv2dProblem, WeightPiece, unsigned, unsigned, const float*, const float*,
                 float*);
};

template <int kFilters>
Choice kernel_with(const Conv2dProblem& conv) {
  const bool shared_column = conv.R == conv.S && conv.stride.h == 1 && conv.dilation.h == 1;
  switch (shared_column ? conv.R : 0) {
    case 1: return {kFilters, conv2d_register_tile<1, 1, kFilters>};
    case 3: return {kFilters, conv2d_register_tile<3, 3, kFilters>};
    case 5: return {kFilters, conv2d_register_tile<5, 5, kFilters>};
    case 6: return {kFilters, conv2d_register_tile<6, 6, kFilters>};
    case 7: return {kFilters, conv2d_register_tile<7, 7, kFilters>};
    case 11: return {kFilters, conv2d_register_tile<11, 11, kFilters>};
    default: return {kFilters, conv2d_register_tile<0, 0, kFilters>};
  }
}

/// As few tiles of filters as 8 a thread allow, and the smallest tile that is enough for that.
Choice choose(const Conv2dProblem& conv) {
  const int group_k = conv.K / conv.groups;
  const int wanted = ceil_div(group_k, ceil_div(group_k, 8));
  const bool fits = 8 * std::int64_t{conv.R} * conv.S <= kConstantFloats;
  if (wanted == 1 || !fits) return kernel_with<1>(conv);
  if (wanted <= 4) return kernel_with<4>(conv);
  if (wanted <= 6) return kernel_with<6>(conv);
  return kernel_with<8>(conv);
}

void run(const Conv2dProblem& problem, const Arguments& arrays) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const OutputTile tile = tile_of(conv);
  const InputTile in = input_of(conv, tile);
  const Choice choice = choose(conv);
  const dim3 block(static_cast<unsigned>(tile.columns), static_cast<unsigned>(tile.rows / kPixels));
  for_each_piece(conv, choice.filters, [&](const WeightPiece& piece) {
    upload(conv, piece, arrays.in<float>("weights"), constant_weights);
    const std::int64_t planes = std::int64_t{conv.N} * (piece.tile_end - piece.tile_begin);
    const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                    blocks_for(planes, 1, kMaxGridYZ));
    launch(choice.kernel, {grid, block, static_cast<std::size_t>(shared_bytes(conv, tile))}, conv,
           piece, static_cast<unsigned>(in.rows), static_cast<unsigned>(in.columns),
           arrays.in<float>("x"), arrays.in_or_null<float>("bias"), arrays.out<float>("y"));
  });
}

}  // namespace

Implementation<Conv2dProblem> direct_register_tile() {
  return {.supports = supports, .run = run, .tile = tile_of};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
