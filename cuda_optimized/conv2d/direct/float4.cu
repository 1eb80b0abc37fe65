/// @file float4.cu
/// @brief Vector access: the input tile is loaded with 16-byte loads.
///
/// - Before: register_tile.cu
/// - After: double_buffered.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** A load instruction takes an issue slot and an address whether it loads 4 or 16
/// bytes. A float4 must be aligned to 16 bytes. If x is, and W is a multiple of 4, every row is
/// aligned. So the tile begins at the multiple of 4 at or before the first column that is needed:
///
///     column of x      -4 . . .  0 . . .  4 . . .  8 . . .
///     needed                  o  o o o o  o o           first column -1, after the left padding
///     copied            0 0 0 0  x x x x  x x x x       3 columns early, whole vectors
///
/// Because W is a multiple of 4, no vector crosses the end of a row: all four floats are in x, or
/// all four are padding. Otherwise, which run() decides once per launch, the four floats are loaded
/// and tested one by one; the tile in shared memory is the same.
///
/// **Expect.** At 6 x 6 (B1) a thread waits for 3 loads of x per channel instead of 20, and 2 of
/// weights, beside 1728 multiply-adds. B2 (1x3x1920x2400, 3 filters 3x3) has an eighth of these
/// multiply-adds for almost as many loads, and gains more. Counting vectors instead of rows and
/// columns also leaves no lane idle at the end of a row.
/// @expect bytes_per_lane.x.load 16, vectors alone
/// @expect requests_per_block.x.load 4 * 12 = 48, of 32 vectors; of rows 4 * 72
/// @expect loads_per_output.x 4 * 36 * (10 + 9) / 2 / (8 * 32 * 32) = 0.167, 10 or 9 vectors a row
/// @expect barriers_per_block 2 * 4 = 8, two a channel as before
/// **Costs.** Three to six columns of the tile are not used. All else as in direct/register_tile.
/// **Try.** Time a problem with W = 510 instead of 512. Which loads does the rung use then, and how
/// much of its gain over direct/register_tile is left?
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

/// Where four neighbouring columns of x lie.
struct Four {
  std::int64_t offset;  ///< of the first one, from the beginning of its channel
  unsigned inside;      ///< Bit e is set if column e is in x, not in the padding.
};

/// Columns w ... w + 3 of row h; w is a multiple of 4. Negative coordinates have turned into huge
/// unsigned ones, so that one comparison checks both ends.
__device__ Four four_at(const Conv2dProblem& conv, unsigned h, unsigned w) {
  unsigned inside = 0;
  if (h < static_cast<unsigned>(conv.H)) {
#pragma unroll
    for (unsigned e = 0; e < 4; ++e) {
      if (w + e < static_cast<unsigned>(conv.W)) inside |= 1u << e;
    }
  }
  return {inside != 0 ? std::int64_t{h} * conv.W + w : 0, inside};
}

/// Their values in one channel, zeros for the padding.
/// @param aligned x lies at a multiple of 16 bytes, and W is a multiple of 4
__device__ float4 load4(const float* channel, Four four, bool aligned) {
  const float* x = channel + four.offset;
  float4 values = {0.0f, 0.0f, 0.0f, 0.0f};
  if (aligned) {  // all four are in x, or none
    if (four.inside != 0) values = *reinterpret_cast<const float4*>(x);
  } else {
    if (four.inside & 1) values.x = x[0];
    if (four.inside & 2) values.y = x[1];
    if (four.inside & 4) values.z = x[2];
    if (four.inside & 8) values.w = x[3];
  }
  return values;
}

/// Copies the rows h0 ... and columns w0 ... of a channel into the tile [rows][row_vectors].
__device__ void load_tile(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                          unsigned rows, unsigned row_vectors, bool aligned, float4* tile) {
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (unsigned i = thread; i < rows * row_vectors; i += blockDim.x * blockDim.y) {
    const Four four = four_at(conv, static_cast<unsigned>(h0) + i / row_vectors,
                              static_cast<unsigned>(w0) + i % row_vectors * 4);
    tile[i] = load4(channel, four, aligned);
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. The filter's size
/// is R x S = kR x kS, with vertical stride and dilation 1; all are free for 0 x 0. Grid (ceil(Q /
/// tile columns), <= ceil(P / tile rows), <= N * filter tiles), block (tile columns, tile rows /
/// kPixels).
template <int kR, int kS, int kFilters>
__global__ void __launch_bounds__(kThreads, kBlocks)
    conv2d_direct_float4(Conv2dProblem conv, unsigned rows, unsigned row_vectors, bool aligned,
                         const float* x, const float* weights, const float* bias, float* y) {
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int taps = conv.R * conv.S;
  float* filter_room = dynamic_shared<float>();  // [taps][kTapPitch], then [rows][row_vectors]
  float4* tile = reinterpret_cast<float4*>(filter_room + filter_tile_floats<kFilters>(taps));
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y) * kPixels;
  const int tile_p = static_cast<int>(blockDim.y) * kPixels, tile_q = static_cast<int>(blockDim.x);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t filter_size = std::int64_t{group_c} * taps;
  const int pitch = static_cast<int>(row_vectors) * 4;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const std::int64_t y_row = conv.Q, y_plane = conv.P * y_row;  // floats

  const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  // The tile's first column, and the multiple of 4 at or before it (also for negative ones).
  const int w0 = q0 * conv.stride.w - conv.pad.left, aligned_w0 = w0 & ~3;
  // The window of this thread's first pixel in the tile.
  const float* window = reinterpret_cast<const float*>(tile) + ty * conv.stride.h * pitch +
                        (w0 - aligned_w0) + tx * conv.stride.w;
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
        load_tile(conv, x + x_at(n, c0 + c, 0, 0), p0 * conv.stride.h - conv.pad.top, aligned_w0,
                  rows, row_vectors, aligned, tile);
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

/// Vectors in a row of the tile, enough for any place of its first column among multiples of 4.
std::int64_t row_vectors(InputTile in) { return ceil_div(in.columns + 3, std::int64_t{4}); }

/// A channel's inputs and weights.
template <int kFilters>
std::int64_t shared_bytes(const Conv2dProblem& conv, OutputTile tile) {
  const InputTile in = input_of(conv, tile);
  const std::int64_t weights = InputTile::bytes(conv.R, conv.S) * kTapPitch<kFilters> + 16;
  return weights + InputTile::bytes(in.rows, 4 * row_vectors(in));
}

/// A kernel, the output channels of its threads, its tile and what it takes of shared memory.
struct Choice {
  int filters;
  void (*kernel)(Conv2dProblem, unsigned, unsigned, bool, const float*, const float*, const float*,
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
                  kernel != conv2d_direct_float4<0, 0, kFilters>};
  };
  const bool shared_column = conv.R == conv.S && conv.stride.h == 1 && conv.dilation.h == 1;
  switch (shared_column ? conv.R : 0) {
    case 1: return with(conv2d_direct_float4<1, 1, kFilters>);
    case 3: return with(conv2d_direct_float4<3, 3, kFilters>);
    case 5: return with(conv2d_direct_float4<5, 5, kFilters>);
    case 6: return with(conv2d_direct_float4<6, 6, kFilters>);
    case 7: return with(conv2d_direct_float4<7, 7, kFilters>);
    case 11: return with(conv2d_direct_float4<11, 11, kFilters>);
    default: return with(conv2d_direct_float4<0, 0, kFilters>);
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

/// Whether all rows of x are aligned to 16 bytes, if x is.
bool rows_are_vectors(const Conv2dProblem& conv) { return conv.W % 4 == 0; }

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const Choice choice = choose(conv).value();
  const OutputTile tile = choice.tile;
  const InputTile in = input_of(conv, tile);
  const float* x = arrays.x;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(x) % sizeof(float4) == 0 && rows_are_vectors(conv);
  const dim3 block(static_cast<unsigned>(tile.columns), static_cast<unsigned>(tile.rows / kPixels));
  const int filter_tiles = conv.groups * ceil_div(conv.K / conv.groups, choice.filters);
  const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * filter_tiles, 1, kMaxGridYZ));
  launch(choice.kernel, {grid, block, static_cast<std::size_t>(choice.bytes)}, conv,
         static_cast<unsigned>(in.rows), static_cast<unsigned>(row_vectors(in)), aligned, x,
         arrays.weights, arrays.bias, arrays.y);
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const Choice choice = choose(conv).value();
  return text(choice.unrolled ? text(conv.R, " x ", conv.S, " unrolled") : "any filter", ", ",
              choice.filters, choice.filters == 1 ? " filter a thread" : " filters a thread",
              rows_are_vectors(conv) ? ", rows of x in fours" : "", idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_float4 = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
