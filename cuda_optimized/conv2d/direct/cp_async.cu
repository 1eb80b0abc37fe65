/// @file cp_async.cu
/// @brief `cp.async` pipeline: inputs and weights are copied to shared memory without passing
/// through registers.
///
/// - Before: double_buffered.cu
/// - After: row_tile.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** `cp.async` copies from global to shared memory asynchronously: a thread starts the
/// copy, continues, and waits much later. Padding is not read and becomes zero (`read_bytes` = 0),
/// without a branch. A channel's copies are one group, and a ring of stages holds several groups:
///
///     stage 0 | c0 arrives | c0 computed | c3 arrives . . . . . . .  | c3 computed    time ->
///     stage 1 | c1 arrives . . . . . . . | c1 computed | c4 arrives . . . . . . .
///     stage 2              | c2 arrives . . . . . . .  | c2 computed | c5 arrives
///                          wait for c0; barrier; start c2; compute c0
///
/// The waits count groups, not copies: "all but the newest one". So each channel commits a group,
/// and after the last channel an empty one.
///
/// **Expect.** The 30 prefetch registers of direct/double_buffered are free, and the prefetch may
/// be larger: all vectors and weights of a tile, also of a large one, and two channels ahead. B1
/// (1x6x768x512, 6 filters 6x6) has 6 channels of 7 KB each: three stages of three blocks are 63 KB
/// of an SM's shared memory.
/// @expect lanes.global.load 0, nothing passes through registers
/// @expect bytes_per_lane.x.async 16
/// @expect requests_per_block.x.async 4 * 12 = 48, of 32 vectors each
/// @expect barriers_per_block 4 + 1 = 5, one a channel and one after a tile
/// **Costs.** A third stage in shared memory, or a smaller tile where three do not fit. Where W is
/// not a multiple of 4, a copy for each float. Before compute capability 8.0 there is no
/// `cp.async`, and the same code loads and stores. All else as in direct/double_buffered.
/// **Try.** Count the groups wrongly: wait for kStages - 1 instead of kStages - 2. Does `./ladder
/// compare conv2d --backend emulated --rung direct/cp_async` notice? Would a GPU?
#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
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
constexpr int kStages = 3;                         ///< Channels that a block has room for.

/// Starts to copy the rows h0 ... and columns w0 ... of a channel into the tile
/// [rows][row_vectors], with zeros in the padding. Negative coordinates become huge unsigned ones,
/// so that one comparison checks both ends.
/// @param aligned the channel lies at a multiple of 16 bytes, and W and w0 are multiples of 4
__device__ void load_tile(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                          unsigned rows, unsigned row_vectors, bool aligned, float* tile) {
  const unsigned threads = blockDim.x * blockDim.y;
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  if (aligned) {  // a vector is in x as a whole, or not
    for (unsigned i = thread; i < rows * row_vectors; i += threads) {
      const unsigned h = static_cast<unsigned>(h0) + i / row_vectors;
      const unsigned w = static_cast<unsigned>(w0) + i % row_vectors * 4;
      const bool inside = h < static_cast<unsigned>(conv.H) && w < static_cast<unsigned>(conv.W);
      const std::int64_t offset = std::int64_t{h} * conv.W + w;
      ptx::cp_async<16>(tile + 4 * i, channel + (inside ? offset : 0), inside ? 16 : 0);
    }
  } else {
    for (unsigned i = thread; i < rows * row_vectors * 4; i += threads) {
      const unsigned h = static_cast<unsigned>(h0) + i / (row_vectors * 4);
      const unsigned w = static_cast<unsigned>(w0) + i % (row_vectors * 4);
      const bool inside = h < static_cast<unsigned>(conv.H) && w < static_cast<unsigned>(conv.W);
      const std::int64_t offset = std::int64_t{h} * conv.W + w;
      ptx::cp_async<4>(tile + i, channel + (inside ? offset : 0), inside ? 4 : 0);
    }
  }
}

/// Starts to copy a channel's weights to [taps][kTapPitch].
template <int kFilters>
__device__ void load_filters(const FilterTile<kFilters>& tile, float* to) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int i = thread; i < tile.taps * kFilters; i += threads) {
    if (tile.has(i)) ptx::cp_async<4>(to + tile.place(i), tile.at(i));
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. The filter's size
/// is R x S = kR x kS, with vertical stride and dilation 1; all are free for 0 x 0. Grid (ceil(Q /
/// tile columns), <= ceil(P / tile rows), <= N * filter tiles), block (tile columns, tile rows /
/// kPixels).
template <int kR, int kS, int kFilters>
__global__ void __launch_bounds__(kThreads, kBlocks)
    conv2d_direct_cp_async(Conv2dProblem conv, unsigned rows, unsigned row_vectors, bool aligned,
                           const float* x, const float* weights, const float* bias, float* y) {
  const int taps = conv.R * conv.S, pitch = static_cast<int>(row_vectors) * 4;
  const int tile_floats = static_cast<int>(rows) * pitch;
  const int stage_floats = tile_floats + static_cast<int>(filter_tile_floats<kFilters>(taps));
  float* stages = dynamic_shared<float>();  // [kStages][inputs, weights]
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y) * kPixels;
  const int tile_p = static_cast<int>(blockDim.y) * kPixels, tile_q = static_cast<int>(blockDim.x);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
  const std::int64_t filter_size = std::int64_t{group_c} * taps;
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const std::int64_t y_row = conv.Q, y_plane = conv.P * y_row;  // floats

  const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  // The tile's first column, and the multiple of 4 at or before it (also for negative ones).
  const int w0 = q0 * conv.stride.w - conv.pad.left, aligned_w0 = w0 & ~3;
  // The window of this thread's first pixel in a tile.
  const int window = ty * conv.stride.h * pitch + (w0 - aligned_w0) + tx * conv.stride.w;
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
    const float* tile_x = x + (std::int64_t{n} * conv.C + c0) * channel_size;
    const float* tile_weights = weights + k0 * filter_size;

    for (std::int64_t row = std::int64_t{blockIdx.y} * tile_p; row < conv.P;
         row += std::int64_t{gridDim.y} * tile_p) {
      const int p0 = static_cast<int>(row), h0 = p0 * conv.stride.h - conv.pad.top;
      const int pixels = q < conv.Q ? min(kPixels, conv.P - p0 - ty) : 0;  // inside of y, or <= 0
      const std::int64_t output = y_at(n, k0, p0 + ty, q);
      // Starts the copies of channel c, and commits them as a group, also an empty one: the waits
      // count groups.
      const auto load = [&](int c) {
        if (c < group_c) {
          float* stage = stages + c % kStages * stage_floats;
          load_tile(conv, tile_x + c * channel_size, h0, aligned_w0, rows, row_vectors, aligned,
                    stage);
          load_filters<kFilters>(
              {tile_weights + std::int64_t{c} * taps, filter_size, filters, taps},
              stage + tile_floats);
        }
        ptx::cp_async_commit_group();
      };
#pragma unroll 1
      for (int c = 0; c < kStages - 1; ++c) load(c);
      float sums[kFilters][kPixels];
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
        const float start = bias && f < filters ? bias[k0 + f] : 0.0f;
#pragma unroll
        for (int j = 0; j < kPixels; ++j) sums[f][j] = start;
      }
#pragma unroll 1
      for (int c = 0; c < group_c; ++c) {
        // This thread's copies of the channel have landed: only later groups are still in flight.
        ptx::cp_async_wait_group<kStages - 2>();
        // The one barrier separates the copies of all threads from the reads below, and the reads
        // of the previous channel from the copies that overwrite its stage.
        __syncthreads();
        load(c + kStages - 1);
        const float* stage = stages + c % kStages * stage_floats;
        // for r, s, f, i: sums[f][i] += tile(pixel i, tap r, s) * weight(r, s, filter f)
        multiply<kR, kS>(conv, stage + window, pitch, stage + tile_floats, sums);
      }
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kPixels; ++j) {
          if (f < filters && j < pixels)
            y[output + f * y_plane + j * y_row] = activated(conv.activation, sums[f][j]);
        }
      }
      __syncthreads();  // between the reads of the stages and the next tile's copies
    }
  }
}

/// Vectors in a row of the tile, enough for any place of its first column among multiples of 4.
std::int64_t row_vectors(InputTile in) { return ceil_div(in.columns + 3, std::int64_t{4}); }

/// The stages: no more than there are channels.
template <int kFilters>
std::int64_t shared_bytes(const Conv2dProblem& conv, OutputTile tile) {
  const InputTile in = input_of(conv, tile);
  const std::int64_t weights = InputTile::bytes(conv.R, conv.S) * kTapPitch<kFilters> + 16;
  return std::min(conv.C / conv.groups, kStages) *
         (weights + InputTile::bytes(in.rows, 4 * row_vectors(in)));
}

/// A kernel, the output channels of its threads, its tile and what it takes of shared memory.
struct Choice {
  int filters;
  void (*kernel)(Conv2dProblem, unsigned, unsigned, bool, const float*, const float*, const float*,
                 float*);
  OutputTile tile;
  std::int64_t bytes;
  bool unrolled;    ///< Over the filter's taps.
  bool all_stages;  ///< There are as many channels.
};

template <int kFilters>
std::optional<Choice> kernel_with(const Conv2dProblem& conv) {
  const auto tile = fitting_tile(conv, kLargestTile, kSmallestTile.rows, shared_bytes<kFilters>);
  if (!tile) return {};
  const auto with = [&](auto kernel) {
    return Choice{kFilters,
                  kernel,
                  *tile,
                  shared_bytes<kFilters>(conv, *tile),
                  kernel != conv2d_direct_cp_async<0, 0, kFilters>,
                  conv.C / conv.groups >= kStages};
  };
  const bool shared_column = conv.R == conv.S && conv.stride.h == 1 && conv.dilation.h == 1;
  switch (shared_column ? conv.R : 0) {
    case 1: return with(conv2d_direct_cp_async<1, 1, kFilters>);
    case 3: return with(conv2d_direct_cp_async<3, 3, kFilters>);
    case 5: return with(conv2d_direct_cp_async<5, 5, kFilters>);
    case 6: return with(conv2d_direct_cp_async<6, 6, kFilters>);
    case 7: return with(conv2d_direct_cp_async<7, 7, kFilters>);
    case 11: return with(conv2d_direct_cp_async<11, 11, kFilters>);
    default: return with(conv2d_direct_cp_async<0, 0, kFilters>);
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
              choice.all_stages ? "" : ", fewer channels than places",
              rows_are_vectors(conv) ? ", rows of x in fours" : "", idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_cp_async = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
