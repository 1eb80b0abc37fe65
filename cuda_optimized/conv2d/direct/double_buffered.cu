/// @file double_buffered.cu
/// @brief Double buffering: the tile of the next channel is prefetched during the arithmetic.
///
/// - Before: float4.cu
/// - After: cp_async.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** A thread does not stall at a load, but at the first use of its result. So the
/// loads of the next channel are issued before the arithmetic of this one, into registers, and are
/// stored to shared memory after it. With two tiles in shared memory, no thread reads the tile that
/// others write, and one barrier per channel suffices:
///
///     registers -> shared   A: c0 |           B: c1 |           A: c2 |
///     global -> registers         | c1 . . . .      | c2 . . . .      |        time ->
///     arithmetic                  | A =========     | B =========     | A =========
///                                 the one barrier of each channel
///
/// **Expect.** The latency of global memory, some 600 cycles per channel, is hidden by the block's
/// own arithmetic; before, only the other blocks of the SM hid a part of it. Three blocks per SM
/// still fit, with at most 168 registers per thread (B1). The three channels of B2 leave little to
/// overlap.
/// @expect barriers_per_block 4, one a channel
/// @expect loads_per_output.x 4 * 36 * (10 + 9) / 2 / (8 * 32 * 32) = 0.167, no more than before
/// @expect loads_per_output.shared 4 * (5 * 12 + 5 * 5 * 2) / 64 = 6.875, as before
/// @expect races 0, two tiles are enough
/// **Costs.** 30 registers: four vectors, their offsets, two weights. A second tile in shared
/// memory. With one channel per group (depthwise) there is no next channel, and direct/float4 is
/// faster. A thread prefetches at most 4 vectors and 2 weights; what larger tiles (strides of 2 and
/// more) and filters need beyond that is loaded without overlap. All else as in direct/float4.
/// **Try.** Move the loads of the next channel after multiply(). The result stays correct. What
/// hides the latency now, and what does a profiler say about "long scoreboard" stalls?
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
constexpr unsigned kFetched = 4;  ///< Vectors of the next channel that a thread holds in registers.
constexpr int kFetchedWeights = 2;  ///< And so many of its weights.

/// Four neighbouring columns of x, as in float4.cu.
struct Four {
  std::int64_t offset;  ///< of the first one, from the beginning of its channel
  unsigned inside;      ///< Bit e is set if column e is in x, not in the padding.
};

/// Columns w ... w + 3 of row h; w is a multiple of 4. Negative coordinates are huge unsigned ones,
/// so that one comparison checks both ends.
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

/// Copies what the registers of the block have no room for: the tile [rows][row_vectors] at row h0
/// and column w0 of x, without its first kFetched vectors for each thread.
__device__ void load_rest(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                          unsigned rows, unsigned row_vectors, bool aligned, float4* tile) {
  const unsigned threads = blockDim.x * blockDim.y;
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (unsigned i = kFetched * threads + thread; i < rows * row_vectors; i += threads) {
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
    conv2d_direct_double_buffered(Conv2dProblem conv, unsigned rows, unsigned row_vectors,
                                  bool aligned, const float* x, const float* weights,
                                  const float* bias, float* y) {
  const int taps = conv.R * conv.S;
  const int filter_floats = static_cast<int>(filter_tile_floats<kFilters>(taps));
  float* filter_rooms = dynamic_shared<float>();  // [2][taps][kTapPitch], then
  float4* tiles = reinterpret_cast<float4*>(filter_rooms + 2 * filter_floats);  // [2][rows]
  unsigned buffer = 0;  // the tile that is written next
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y) * kPixels;
  const int tile_p = static_cast<int>(blockDim.y) * kPixels, tile_q = static_cast<int>(blockDim.x);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t filter_size = std::int64_t{group_c} * taps;
  const int pitch = static_cast<int>(row_vectors) * 4;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  const unsigned vectors = rows * row_vectors;  // of a tile
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
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
      // The vectors of the tile that this thread fetches through registers: thread, thread +
      // threads ...
      const int h0 = p0 * conv.stride.h - conv.pad.top;
      Four fours[kFetched];
#pragma unroll
      for (unsigned j = 0; j < kFetched; ++j) {
        const unsigned i = thread + j * threads;
        fours[j] = i < vectors ? four_at(conv, static_cast<unsigned>(h0) + i / row_vectors,
                                         static_cast<unsigned>(aligned_w0) + i % row_vectors * 4)
                               : Four{0, 0};
      }
      const float* channel = x + x_at(n, c0, 0, 0);
      float4 fetched[kFetched];
#pragma unroll
      for (unsigned j = 0; j < kFetched; ++j) fetched[j] = load4(channel, fours[j], aligned);
      FilterTile<kFilters> channel_weights{weights + k0 * filter_size, filter_size, filters, taps};
      float fetched_weights[kFetchedWeights];
      const auto fetch_weights = [&] {
#pragma unroll
        for (int j = 0; j < kFetchedWeights; ++j) {
          const int i = static_cast<int>(thread + j * threads);
          fetched_weights[j] = channel_weights.has(i) ? channel_weights.value(i) : 0.0f;
        }
      };
      fetch_weights();
      for (int c = 0; c < group_c; ++c) {
        float4* tile = tiles + buffer * vectors;
        float* filter_room = filter_rooms + buffer * filter_floats;
        buffer ^= 1;
#pragma unroll
        for (unsigned j = 0; j < kFetched; ++j) {
          if (thread + j * threads < vectors) tile[thread + j * threads] = fetched[j];
        }
#pragma unroll
        for (int j = 0; j < kFetchedWeights; ++j) {
          const int i = static_cast<int>(thread + j * threads);
          if (i < taps * kFilters) filter_room[FilterTile<kFilters>::place(i)] = fetched_weights[j];
        }
        load_filters<kFilters>(channel_weights, kFetchedWeights * static_cast<int>(threads),
                               static_cast<int>(thread), static_cast<int>(threads), filter_room);
        load_rest(conv, channel, h0, aligned_w0, rows, row_vectors, aligned, tile);
        // The one barrier: between these writes and the reads below. It also separates the reads
        // of this tile two channels ago from these writes: a thread that writes here has passed the
        // barrier of the channel in between, which all threads reach only after those reads.
        __syncthreads();
        if (c + 1 < group_c) {
          channel += channel_size;
          channel_weights.weights += taps;
          fetch_weights();
#pragma unroll
          for (unsigned j = 0; j < kFetched; ++j) fetched[j] = load4(channel, fours[j], aligned);
        }
        // for r, s, f, i: sums[f][i] += tile(pixel i, tap r, s) * weight(r, s, filter f)
        multiply<kR, kS>(conv, reinterpret_cast<const float*>(tile) + window, pitch, filter_room,
                         sums);
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

/// Two channels' inputs and weights.
template <int kFilters>
std::int64_t shared_bytes(const Conv2dProblem& conv, OutputTile tile) {
  const InputTile in = input_of(conv, tile);
  const std::int64_t weights = InputTile::bytes(conv.R, conv.S) * kTapPitch<kFilters> + 16;
  return 2 * (weights + InputTile::bytes(in.rows, 4 * row_vectors(in)));
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
                  kernel != conv2d_direct_double_buffered<0, 0, kFilters>};
  };
  const bool shared_column = conv.R == conv.S && conv.stride.h == 1 && conv.dilation.h == 1;
  switch (shared_column ? conv.R : 0) {
    case 1: return with(conv2d_direct_double_buffered<1, 1, kFilters>);
    case 3: return with(conv2d_direct_double_buffered<3, 3, kFilters>);
    case 5: return with(conv2d_direct_double_buffered<5, 5, kFilters>);
    case 6: return with(conv2d_direct_double_buffered<6, 6, kFilters>);
    case 7: return with(conv2d_direct_double_buffered<7, 7, kFilters>);
    case 11: return with(conv2d_direct_double_buffered<11, 11, kFilters>);
    default: return with(conv2d_direct_double_buffered<0, 0, kFilters>);
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

extern const Implementation<Conv2dArrays> direct_double_buffered = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
