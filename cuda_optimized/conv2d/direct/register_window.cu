/// @file register_window.cu
/// @brief Register window: x is loaded straight into registers, which are refilled as soon as they
/// are free.
///
/// - Before: row_tile.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** With a 3 x 3 filter and few channels the problem is a copy with some arithmetic,
/// and shared memory costs more than it saves: a copy, a barrier and a load per value. Here a
/// thread loads its own window; values that neighbours have loaded come from the L1 cache:
///
///     lane 0    x x x x                  two outputs a lane and row: two loads of 8 bytes, the
///     lane 1        x x x x              second one in L1 already
///     lane 2            x x x x          stores: 32 lanes, 256 bytes without a gap
///
/// The loop has no barrier. A thread hides its own latency: after a row of the window has been used
/// in all its products, its registers are loaded with the same row of the next channel, or of the
/// block's next tile, while the other rows are computed:
///
///     row 0   | products | load ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ | products | load ~ ~      time ->
///     row 1              | products | load ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~  | products |
///              channel 0                                channel 1
///
/// **Expect.** B2 (1x3x1920x2400, 3 filters 3x3): 4 rows of 4 outputs and 3 filters per thread, 24
/// loads of 8 bytes and 7 of weights for 432 multiply-adds per channel; 128 registers, 16 warps per
/// SM, each with 3 KB in flight: DRAM needs some 40 KB. The 110 MB take 28 us at 4 TB/s.
/// @expect on --n 1 --c 3 --h 34 --w 130 --k 3 --r 3 --s 3
/// @expect loads_per_output.x 3 * 24 / (4 * 4 * 3) = 1.5, of 4 rows of 4 outputs and 3 filters
/// @expect bytes_per_lane.x.load 8
/// @expect barriers_per_block 2, none in the loop: as many for any number of channels
/// @expect sectors_per_request.y.store 8, 256 bytes without a gap
/// **Costs.** Only 3 x 3, stride 1, dilation 1: adjacent tiles read their halo again. x is read
/// again per tile of filters. Not supported: NHWC, other types, weights that exceed shared memory.
/// **Try.** Load the next rows together at the end of the channel. How many "long scoreboard"
/// stalls are there?
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct/register_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/row_segment.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTaps = 3;                           ///< Rows and columns of the filter.
constexpr int kWarps = 4, kThreads = 32 * kWarps;  ///< Of a block: warps, one below the other.
constexpr int kPairs = 2;                    ///< Pairs of neighbouring outputs in a thread's row,
constexpr int kApart = 64;                   ///< so many columns apart: a warp's pairs lie between.
constexpr int kColumns = kPairs * kApart;    ///< Of a tile.
constexpr int kWidth = 2 + kTaps - 1;        ///< Inputs of a pair.
[[maybe_unused]] constexpr int kBlocks = 4;  ///< Of an SM, at least: up to 128 registers.

template <int kFilters>
constexpr int kWeights = (kTaps * kTaps * kFilters + 3) / 4 * 4;  ///< Floats of a channel.

/// The tiles of outputs, counted along q, then p, then n.
struct Tiles {
  int count;
  FastDivision by_columns, by_rows;  ///< Tiles along q and p.
};

/// A place in y, without its channel.
struct OutputPixel {
  int n, p, q;
};

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q]; stride and
/// dilation 1. A thread computes kRows rows. Grid (<= tiles, <= tiles of filters), block kThreads.
/// @tparam kLoad,kStore which inputs of a pair are loaded, and whether outputs are stored, together
template <int kFilters, int kRows, Pairs kLoad, bool kStore>
__global__ void __launch_bounds__(kThreads, kBlocks)
    conv2d_direct_register_window(Conv2dProblem conv, Tiles tiles, const float* x,
                                  const float* weights, const float* bias, float* y) {
  float* room = dynamic_shared<float>();  // [channel][r][s][filter], each channel's rounded up
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;

  for (int filter_tile = static_cast<int>(blockIdx.y); filter_tile < filter_tiles;
       filter_tile += static_cast<int>(gridDim.y)) {
    const int group = filter_tile / group_tiles;
    const int k0 = group * group_k + filter_tile % group_tiles * kFilters;
    const int filters = min(kFilters, (group + 1) * group_k - k0);  // of the block
    for (int i = thread; i < group_c * kTaps * kTaps * kFilters; i += kThreads) {
      const int f = i % kFilters, tap = i / kFilters % (kTaps * kTaps);
      const int c = i / (kFilters * kTaps * kTaps);
      room[c * kWeights<kFilters> + tap * kFilters + f] =
          f < filters ? weights[(std::int64_t{k0 + f} * group_c + c) * (kTaps * kTaps) + tap]
                      : 0.0f;
    }
    float* starts = room + group_c * kWeights<kFilters>;  // bias, or 0
    if (thread < kFilters) starts[thread] = bias && thread < filters ? bias[k0 + thread] : 0.0f;

    // The thread's first output of a tile.
    const auto place_in = [&](int tile) {
      const int row = tiles.by_columns.quotient(tile), n = tiles.by_rows.quotient(row);
      return OutputPixel{n, (tiles.by_rows.remainder(row, n) * kWarps + warp) * kRows,
                         tiles.by_columns.remainder(tile, row) * kColumns + 2 * lane};
    };
    // The window that is loaded next: `corner` is the address of its first value, in row h: a
    // number, as it may lie in the padding. Bit e of inside[g]: column e of pair g is in x.
    constexpr int kWindow = kRows + kTaps - 1;
    float values[kWindow][kPairs][kWidth];
    std::uintptr_t corner = 0;
    int h = 0;
    unsigned inside[kPairs] = {};
    const auto look_at = [&](int tile) {
      const OutputPixel first = place_in(min(tile, tiles.count - 1));
      h = first.p - conv.pad.top;
      const int w = first.q - conv.pad.left;
      const std::int64_t offset =
          ((std::int64_t{first.n} * conv.C + group * group_c) * conv.H + h) * conv.W + w;
      corner = reinterpret_cast<std::uintptr_t>(x) + sizeof(float) * offset;
#pragma unroll
      for (int g = 0; g < kPairs; ++g) {
        inside[g] = 0;
#pragma unroll
        for (int e = 0; e < kWidth; ++e) {
          const auto column = static_cast<unsigned>(w + g * kApart + e);
          // After the last tile there is nothing to load.
          if (tile < tiles.count && column < static_cast<unsigned>(conv.W)) inside[g] |= 1u << e;
        }
      }
    };
    const auto load_row = [&](int i) {
      const bool row_inside = static_cast<unsigned>(h + i) < static_cast<unsigned>(conv.H);
      const std::uintptr_t row = corner + sizeof(float) * (std::int64_t{i} * conv.W);
#pragma unroll
      for (int g = 0; g < kPairs; ++g) {
        load_columns<kLoad>(row + sizeof(float) * g * kApart, row_inside ? inside[g] : 0,
                            values[i][g]);
      }
    };
    look_at(static_cast<int>(blockIdx.x));
#pragma unroll
    for (int i = 0; i < kWindow; ++i) load_row(i);
    __syncthreads();  // between the writes of the weights and their reads, by all threads

    for (int tile = static_cast<int>(blockIdx.x); tile < tiles.count;
         tile += static_cast<int>(gridDim.x)) {
      float sums[kFilters][kRows][kPairs][2];
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int g = 0; g < kPairs; ++g) sums[f][j][g][0] = sums[f][j][g][1] = starts[f];
        }
      }
#pragma unroll 1
      for (int c = 0; c < group_c; ++c) {
        if (c + 1 < group_c) {
          corner += sizeof(float) * channel_size;
        } else {
          look_at(tile + static_cast<int>(gridDim.x));
        }
        float weight[kWeights<kFilters>];
        load_vectors(room + c * kWeights<kFilters>, weight);
#pragma unroll
        for (int i = 0; i < kWindow; ++i) {
          // Row i of the window meets filter row r in the outputs' row i - r.
#pragma unroll
          for (int r = 0; r < kTaps; ++r) {
            if (i < r || i - r >= kRows) continue;
#pragma unroll
            for (int s = 0; s < kTaps; ++s) {
#pragma unroll
              for (int f = 0; f < kFilters; ++f) {
#pragma unroll
                for (int g = 0; g < kPairs; ++g) {
#pragma unroll
                  for (int e = 0; e < 2; ++e) {
                    sums[f][i - r][g][e] +=
                        values[i][g][e + s] * weight[(r * kTaps + s) * kFilters + f];
                  }
                }
              }
            }
          }
          load_row(i);  // of the next window: the registers are free
        }
      }
      const OutputPixel first = place_in(tile);
      float* to = y + ((std::int64_t{first.n} * conv.K + k0) * conv.P + first.p) * conv.Q + first.q;
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
        float* row = to;
        to += y_plane;
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int g = 0; g < kPairs; ++g) {
            const int columns = f < filters && first.p + j < conv.P
                                    ? conv.Q - first.q - g * kApart
                                    : 0;  // that are inside of y, or <= 0
            store_pair<kStore>(row + g * kApart, columns,
                               activated(conv.activation, sums[f][j][g][0]),
                               activated(conv.activation, sums[f][j][g][1]));
          }
          row += conv.Q;
        }
      }
    }
    __syncthreads();  // between the reads of the weights and the next filters' writes
  }
}

/// A kernel, and what a launch must know of it.
struct Choice {
  void (*kernel)(Conv2dProblem, Tiles, const float*, const float*, const float*, float*);
  int filters, rows;
  std::int64_t bytes;
  Pairs load;
  bool store_pairs;
};

template <int kFilters, int kRows>
std::optional<Choice> with_filters(const Conv2dProblem& conv, bool load_pairs, bool store_pairs) {
  const std::int64_t bytes = (std::int64_t{conv.C / conv.groups} * kWeights<kFilters> + kFilters) *
                             std::int64_t{sizeof(float)};
  if (bytes > std::int64_t{kMaxSharedBytes}) return {};
  const auto with = [&]<Pairs kLoad>() {
    const auto kernel = store_pairs ? conv2d_direct_register_window<kFilters, kRows, kLoad, true>
                                    : conv2d_direct_register_window<kFilters, kRows, kLoad, false>;
    return Choice{kernel, kFilters, kRows, bytes, kLoad, store_pairs};
  };
  if (!load_pairs) return with.template operator()<Pairs::none>();
  if (conv.pad.left % 2 == 0) return with.template operator()<Pairs::even>();
  return with.template operator()<Pairs::odd>();
}

/// As many filters a thread as there are, up to 4, or 1 if the weights of more do not fit.
std::optional<Choice> choose(const Conv2dProblem& conv, bool load_pairs, bool store_pairs) {
  const int group_k = conv.K / conv.groups;
  std::optional<Choice> choice;
  if (group_k == 2 || group_k == 3) {
    choice = with_filters<3, 4>(conv, load_pairs, store_pairs);
  } else if (group_k > 3) {
    choice = with_filters<4, 2>(conv, load_pairs, store_pairs);
  }
  return choice ? choice : with_filters<1, 4>(conv, load_pairs, store_pairs);
}

/// Whether all rows of x, or of y, begin at multiples of 8 bytes, if the first one does.
bool rows_of_x_in_pairs(const Conv2dProblem& conv) { return conv.W % 2 == 0; }
bool rows_of_y_in_pairs(const Conv2dProblem& conv) { return conv.Q % 2 == 0; }

std::int64_t tile_count(const Conv2dProblem& conv, const Choice& choice) {
  return std::int64_t{conv.N} * ceil_div(conv.P, kWarps * choice.rows) * ceil_div(conv.Q, kColumns);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.R != kTaps || conv.S != kTaps) return "filters of 3 x 3 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return "dilation 1 only";
  const auto choice = choose(conv, false, false);
  if (!choice) {
    return text("a filter's weights of ", conv.C / conv.groups, " channels take more than ",
                kMaxSharedBytes, " bytes of shared memory");
  }
  if (tile_count(conv, *choice) > INT32_MAX / 2) return "2^30 and more tiles";
  return {};
}

OutputTile tile_of(const Conv2dProblem& conv) {
  const auto choice = choose(conv, false, false);
  return {choice ? kWarps * choice->rows : 0, kColumns};
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const float* x = arrays.x;
  float* y = arrays.y;
  const bool load_pairs = rows_of_x_in_pairs(conv) && reinterpret_cast<std::uintptr_t>(x) % 8 == 0;
  const bool store_pairs = rows_of_y_in_pairs(conv) && reinterpret_cast<std::uintptr_t>(y) % 8 == 0;
  const Choice choice = choose(conv, load_pairs, store_pairs).value();
  const Tiles tiles{static_cast<int>(tile_count(conv, choice)),
                    FastDivision(ceil_div(conv.Q, kColumns)),
                    FastDivision(ceil_div(conv.P, kWarps * choice.rows))};
  const int filter_tiles = conv.groups * ceil_div(conv.K / conv.groups, choice.filters);
  const int resident = std::max(1, kBlocks * multiprocessors() / filter_tiles);
  const dim3 grid(blocks_for(tiles.count, 1, resident), blocks_for(filter_tiles, 1, kMaxGridYZ));
  launch(choice.kernel, {grid, kThreads, static_cast<std::size_t>(choice.bytes)}, conv, tiles, x,
         arrays.weights, arrays.bias, y);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Choice choice = choose(conv, rows_of_x_in_pairs(conv), rows_of_y_in_pairs(conv)).value();
  return text(choice.filters, choice.filters == 1 ? " filter" : " filters", " a thread, ",
              in_words(choice.load), choice.store_pairs ? ", pairs stored" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_register_window = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
