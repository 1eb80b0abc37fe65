/// @file split_rows.cu
/// @brief Winograd F(3, 3) along rows: rows of four to six taps are two pieces of three taps, for
/// few channels.
///
/// - Before: direct/row_tile.cu
///
/// **The idea.** direct/row_tile.cu is limited by its instructions, and most of those are
/// multiply-adds. A row of six taps is two pieces of three, and F(3, 3) has five products for three
/// outputs of a piece. Few channels and filters need no V in memory: a thread reads eight elements
/// of a row, transforms both windows in registers, and multiplies them with the pieces of all six
/// filters. Its four rows of outputs are 4 * 6 * 5 accumulators, which stay in registers over all
/// rows and channels and are transformed back once:
///
///     x, in shared memory     d0 d1 d2 d3 d4 d5 d6 d7          for y0 y1 y2 of a row
///     V, in registers        |---- V0 -----|                   18 operations for both,
///                                     |---- V1 -----|          for four rows of y and six filters
///     sums of a filter        m += V0 * U0 + V1 * U1           10 multiply-adds instead of 18
///
/// Each block transforms the weights of six channels at a time; each of these values is a broadcast
/// that is used for four rows.
///
/// **Expect.** For 12 outputs of six filters a thread has 1440 multiply-adds per channel (by the
/// definition 2592), 162 more operations and 162 loads. At the rate of direct/row_tile, three
/// instructions per cycle, B1 (1x6x768x512, 6 filters 6x6) takes 17 us: 264 blocks, two per SM.
/// @expect on --n 1 --c 6 --h 37 --w 52 --k 6 --r 6 --s 5
/// @expect loads_per_output.shared 6 * (9 * 8 + 6 * 15) / 72 + 1 = 14.5, rows of x, weights; sums
/// @expect lanes_per_output.shared.store 1 + 6 * 6 * 60 / (32 * 48 * 6) = 1.234375, weights
/// @expect loads_per_output.weights 6 * 6 * 6 * 5 / (32 * 48 * 6) = 0.1171875, each once a block
/// @expect excess.shared.load 0
/// **Costs.** 255 registers: two warps per scheduler. Five taps cost as much as six. Prologue and
/// epilogue stay as long as before. With many channels or filters other rungs are faster. Not
/// supported: what cpu_reference/conv2d/winograd_split_rows.cpp does not support.
/// **Try.** Give a thread two rows of outputs instead of four, and four blocks per SM. For how many
/// rows is a broadcast used then, and which counter shows it?
#include <algorithm>
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct/register_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/row_tile.cuh"
#include "cuda_optimized/conv2d/shared/winograd/winograd_three.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kM = Winograd3::kM, kN = Winograd3::kN;  ///< Outputs, as many as taps; products.
constexpr int kPieces = 2;                             ///< Of a row of a filter.
constexpr int kMostRows = 6;                           ///< Of a filter.
constexpr int kFilters = 6;                            ///< Of a block, and of each of its threads.
constexpr int kDown = 4;      ///< Rows of y of a thread, with a tile in each.
constexpr int kChannels = 6;  ///< Whose weights are transformed together.

/// A block's outputs, and how their inputs lie in shared memory, in the order of load_tile().
struct Tile {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;  ///< Of a block.
  static constexpr int kLanesX = 16;  ///< Threads of a warp along a row; the others are below.
  static constexpr int kColumns = kM * kLanesX,                    ///< Outputs of a block: columns,
      kWarpRows = kDown * (32 / kLanesX),                          ///< rows of a warp,
      kRows = kWarps * kWarpRows;                                  ///< and in all.
  static constexpr int kInRows = kRows - 1 + kMostRows;            ///< Inputs: rows
  static constexpr int kInColumns = kColumns - 1 + kM * kPieces;   ///< and columns.
  static constexpr int kPitch = 60, kInFloats = kInRows * kPitch;  ///< Floats of a row, of all.
  static constexpr int kStages = 3;  ///< Channels of x that there is room for.
};
// The halves of a warp lie kDown rows apart: half of the banks.
static_assert(Tile::kPitch >= Tile::kInColumns && kDown * Tile::kPitch % 32 == 16);

using Weights = PieceWeights<Tile::kThreads, kFilters, kPieces, kChannels * kMostRows>;
constexpr int kRowFloats = Weights::kRowFloats;
constexpr int kWeightFloats = kChannels * kMostRows * kRowFloats;
/// Floats between rows of y on their way out: likewise.
constexpr int kOutPitch = Tile::kColumns + 4;
static_assert(kDown * kOutPitch % 32 == 16);
constexpr int kOutFloats = kFilters * Tile::kWarpRows * kOutPitch;  ///< Of a warp.
/// Outputs lie where weights and x were.
constexpr int kSharedFloats =
    std::max(kWeightFloats + Tile::kStages * Tile::kInFloats, kOutFloats* Tile::kWarps);

/// Adds one channel's products to the accumulators. `window` is the thread's place in x; `weights`
/// are [r][kN][kPieces][kFilters], of kR rows, or of conv.R if that is 0.
template <int kR>
__device__ void multiply(const Conv2dProblem& conv, const float* window, const float* weights,
                         float (&sums)[kFilters][kDown][kN]) {
  float values[kDown][kPieces][kN];
  const auto load_row = [&](int j, int row) {
    constexpr int kWidth = kM * kPieces + 2;
    float line[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) line[i] = window[row * Tile::kPitch + i];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece)
      Winograd3::times_b(line + kM * piece, values[j][piece]);
  };
#pragma unroll
  for (int j = 0; j < kDown - 1; ++j) load_row(j, j);
  const int rows = kR > 0 ? kR : conv.R;
#pragma unroll(kR > 0 ? kR : 1)  // so that V's rows change places for free
  for (int r = 0; r < rows; ++r) {
    load_row(kDown - 1, kDown - 1 + r);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      float weight[kPieces * kFilters];
      load_vectors(weights + r * kRowFloats + i * (kPieces * kFilters), weight);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
        for (int j = 0; j < kDown; ++j) {
#pragma unroll
          for (int f = 0; f < kFilters; ++f)
            sums[f][j][i] += values[j][piece][i] * weight[piece * kFilters + f];
        }
      }
    }
    // Each row of V moves up to the next row of y.
#pragma unroll
    for (int j = 0; j < kDown - 1; ++j) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
        for (int i = 0; i < kN; ++i) values[j][piece][i] = values[j + 1][piece][i];
      }
    }
  }
}

/// How many blocks there are.
struct Plan {
  int down, across, filters;  ///< Along the rows and columns of y, and the filters of a group.

  HOST_DEVICE explicit Plan(const Conv2dProblem& conv)
      : down(ceil_div(conv.P, Tile::kRows)), across(ceil_div(conv.Q, Tile::kColumns)),
        filters(ceil_div(conv.K / conv.groups, kFilters)) {}
};

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Grid: for each
/// image, group and block of filters the blocks of outputs; block Tile::kThreads.
/// @param aligned rows of x, and of the blocks' inputs, are aligned to 16 bytes
template <int kR>
__global__ void __launch_bounds__(Tile::kThreads, 2)
    conv2d_winograd_split_rows(Conv2dProblem conv, bool aligned, const float* x,
                               const float* weights, const float* bias, float* y) {
  float* const shared = dynamic_shared<float>();
  float* const u = shared;                       // [kChannels][r][kRowFloats]
  float* const stages = shared + kWeightFloats;  // [kStages][kInRows][kPitch]
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;

  const Plan plan(conv);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  int place = static_cast<int>(blockIdx.x);
  const int q0 = place % plan.across * Tile::kColumns;
  place /= plan.across;
  const int p0 = place % plan.down * Tile::kRows;
  place /= plan.down;
  const int filter_block = place % plan.filters;
  place /= plan.filters;
  const int group = place % conv.groups, n = place / conv.groups;
  const int k0 = group * group_k + filter_block * kFilters;
  const int filters = min(kFilters, group_k - filter_block * kFilters);  // of the block

  const int rows = kR > 0 ? kR : conv.R;
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
  const std::int64_t filter_size = std::int64_t{group_c} * rows * conv.S;
  Weights next_weights;
  const auto load_weights = [&](int c) {
    next_weights.load(conv, weights + k0 * filter_size + std::int64_t{c} * rows * conv.S,
                      filter_size, filters, min(kChannels, group_c - c) * rows);
  };
  const float* const block_x = x + (std::int64_t{n} * conv.C + group * group_c) * channel_size;
  // Begins to copy channel c, and closes the group of copies, also an empty one: the waits count
  // groups.
  const auto load = [&](int c) {
    if (c < group_c) {
      load_tile<Tile>(conv, block_x + c * channel_size, p0 - conv.pad.top, q0 - conv.pad.left,
                      aligned, stages + c % Tile::kStages * Tile::kInFloats);
    }
    ptx::cp_async_commit_group();
  };
  float bias_lane = 0;  // that of filter `lane`
  if (bias && lane < filters) bias_lane = bias[k0 + lane];

  const int tx = lane % Tile::kLanesX * kM;
  const int ty = warp * Tile::kWarpRows + lane / Tile::kLanesX * kDown;
  float sums[kFilters][kDown][kN] = {};
#pragma unroll 1
  for (int first = 0; first < group_c; first += kChannels) {
    load_weights(first);
    if (first == 0) {
#pragma unroll 1
      for (int c = 0; c < Tile::kStages - 1; ++c) load(c);
    } else {
      __syncthreads();  // between the reads of the weights before and these writes
    }
    next_weights.store(u);
    const int end = min(first + kChannels, group_c);
#pragma unroll 1
    for (int c = first; c < end; ++c) {
      // This thread's copies of the channel have landed: only later groups are still in flight.
      ptx::cp_async_wait_group<Tile::kStages - 2>();
      // Between the copies and the weights, of all threads, and the reads below; and between the
      // reads of the channel before and the copies that go to its place now.
      __syncthreads();
      load(c + Tile::kStages - 1);
      multiply<kR>(conv, stages + c % Tile::kStages * Tile::kInFloats + ty * Tile::kPitch + tx,
                   u + (c - first) * rows * kRowFloats, sums);
    }
  }

  __syncthreads();  // between the reads of x and weights and these writes
  float* const out = shared + warp * kOutFloats;  // [kFilters][kWarpRows][kOutPitch]
  float* const mine = out + lane / Tile::kLanesX * (kDown * kOutPitch) + tx;
#pragma unroll
  for (int f = 0; f < kFilters; ++f) {
#pragma unroll
    for (int j = 0; j < kDown; ++j) {
      float line[kM];
      Winograd3::times_a(sums[f][j], line);
#pragma unroll
      for (int e = 0; e < kM; ++e) mine[(f * Tile::kWarpRows + j) * kOutPitch + e] = line[e];
    }
  }
  __syncwarp();  // between these writes and the reads below
  // Half of a warp stores 16 neighbours of a row.
  const int p = p0 + warp * Tile::kWarpRows + lane / 16 * kDown, q = q0 + lane % 16;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  const float* from = out + lane / 16 * (kDown * kOutPitch) + lane % 16;
  float* to = y + (std::int64_t{n} * conv.K + k0) * y_plane;
  const std::int64_t offset = std::int64_t{p} * conv.Q + q;
#pragma unroll 1  // short: the instructions of a way out are read from memory, too
  for (int f = 0; f < filters; ++f) {
    const float bias_k = __shfl_sync(~0u, bias_lane, f);
#pragma unroll
    for (int j = 0; j < kDown; ++j) {
#pragma unroll
      for (int column = 0; column < Tile::kColumns; column += 16) {
        if (p + j < conv.P && q + column < conv.Q)
          to[offset + (std::int64_t{j} * conv.Q + column)] =
              activated(conv.activation, from[j * kOutPitch + column] + bias_k);
      }
    }
    from += Tile::kWarpRows * kOutPitch;
    to += y_plane;
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R > kMostRows || conv.S <= 3 || conv.S > kM * kPieces)
    return "filters of 1 to 6 rows and 4 to 6 columns only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  constexpr int kMost = std::numeric_limits<int>::max() - 1024;  // blocks end beyond y, and K
  if (conv.C > kMost || conv.K > kMost || conv.P > kMost || conv.Q > kMost)
    return "an extent of 2^31 - 1024 or more";
  const Plan plan(conv);
  if (checked_product({conv.N, conv.groups, plan.filters, plan.down, plan.across}, "blocks") >
      kMaxGridX)
    return "2^31 or more blocks of 6 filters and 32 x 48 outputs";
  return {};
}

OutputTile tile_of(const Conv2dProblem&) { return {Tile::kRows, Tile::kColumns}; }

/// Whether all rows of x are aligned to 16 bytes, if x is, and those of blocks with them.
bool rows_are_vectors(const Conv2dProblem& conv) {
  return conv.W % 4 == 0 && conv.pad.left % 4 == 0;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const Plan plan(conv);
  const float* x = arrays.x;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(x) % sizeof(float4) == 0 && rows_are_vectors(conv);
  const std::int64_t blocks =
      std::int64_t{conv.N} * conv.groups * plan.filters * plan.down * plan.across;
  launch(
      conv.R == kMostRows ? conv2d_winograd_split_rows<kMostRows> : conv2d_winograd_split_rows<0>,
      {dim3(static_cast<unsigned>(blocks)), Tile::kThreads, kSharedFloats * sizeof(float)}, conv,
      aligned, x, arrays.weights, arrays.bias, arrays.y);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(conv.R == kMostRows ? "six rows, unrolled" : "fewer rows",
              rows_are_vectors(conv) ? ", rows of x in fours" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_split_rows = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
