/// @file direct_mma_tf32.cu
/// @brief conv2d of few channels on the tensor cores: they read windows out of a staged patch.
///
/// - Before: implicit_gemm_mma_tf32.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** With few channels, windows overlap, but hardly anything of them lies side by side:
/// an implicit GEMM copies each value of x R * S / stride^2 times, 4 bytes at a time. Here a block
/// copies the patch of x under its tile of y once, with zeros for the padding. The product's factor
/// is never stored: a lane reads its elements of a fragment where they lie in the patch, at the sum
/// of two numbers:
///
///     patch, 3 channels       y: filters x pixels      += weights: filters x k   * x: k x pixels
///     + - - - - - - - - +
///     |  tap k          |     at[k][pixel] = taps[k] + base[pixel]
///     |  . . . .        |     taps[k]:     (c, r, s) in the patch, a table in shared memory
///     |  . . . .        |     base[pixel]: the first tap of its window, in a register
///     + - - - - - - - - +
///
/// A block keeps its weights and takes tile after tile, while the next patch is on its way.
///
/// **Expect.** B3 (32x3x224x224, 64 filters 7x7, stride 2): 3.8 million mma of 16 x 8 x 8, at 160
/// TFLOP/s 49 us; each 16 of them need 26 cycles of shared memory (8 loads of x, 4 of weights, one
/// of taps): 29 us; y's 103 MB take 26 us. All at once, 60 to 70 us. B11 (16x1x161x700, 32 filters
/// 5x20, stride 2): 30 us.
/// **Costs.** Filters come 16 at a time: with 3 or 6 (B2, B1) direct_cp_async.cu is faster.
/// Declined: fp32, NHWC, compute capability below 8.0, what is too large for shared memory.
/// **Try.** Give the patch the pitch of a plain array. How many cycles does the load of x then take
/// for taps in one row, and in two?
#include <algorithm>
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "core/rung.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kBlocksPerSm = 2;  // one computes while the other loads or stores
constexpr int kMaxRows = 32;     // of a tile of y

/// What a kernel computes: a warp has 16 * kFilterTiles filters, and 16 * kGroups pixels at a time.
template <int kFilterTileCount, int kGroupCount, int kWarpCount>
struct Shape {
  static constexpr int kFilterTiles = kFilterTileCount;  ///< of 16 filters: all of a block
  static constexpr int kGroups = kGroupCount;            ///< of 16 pixels side by side
  static constexpr int kWarps = kWarpCount;              ///< of a block, at most
  /// A warp's draft: sums of 8 filters on their way to y. An odd multiple of 16 floats, so that
  /// two rows of 16 floats meet 32 banks.
  static constexpr int kDraftPitch = 16 * (kGroupCount | 1);
};
using Wide = Shape<4, 2, 8>;
using Medium = Shape<2, 4, 8>;
using Narrow = Shape<1, 4, 8>;

/// How a problem is cut up, and how a block uses its shared memory, all in floats:
///     weights [steps][filter_tiles][32][4] | taps [steps][4][2] | biases [16 * filter_tiles] | 0 |
///     drafts [warps][8][kDraftPitch] | two patches [channels][plane]
struct Tiling {
  int filter_tiles;         ///< of 16 filters, of a block
  int rows, across;         ///< of a tile of y: rows, and groups of 16 columns
  int in_rows, in_columns;  ///< of its patch of x
  int width, shift;         ///< floats of a copy; columns before the first one that is needed
  int pitch, plane;         ///< from a row of the patch to the next, from a channel
  int channels, filters;    ///< of a group
  int depth, steps;         ///< products of a sum; in steps of 8, the last one filled up
  int warps;                ///< of a block
  Step stride;              ///< of the problem, 1 where there is one output
  int tiles_down, tiles_across;
  int draft_floats;  ///< of a warp; 0: sums are stored directly, four floats at a time
  FastDivision by_across, by_in_rows, by_tiles_down, by_tiles_across;

  HOST_DEVICE int weight_floats() const { return steps * filter_tiles * 128; }
  HOST_DEVICE int taps_at() const { return weight_floats(); }
  HOST_DEVICE int biases_at() const { return taps_at() + steps * 8; }
  HOST_DEVICE int zero_at() const { return biases_at() + 16 * filter_tiles; }
  HOST_DEVICE int drafts_at() const { return zero_at() + 4; }
  HOST_DEVICE int patch_at(int buffer) const {
    return drafts_at() + warps * draft_floats + buffer * channels * plane;
  }
  HOST_DEVICE int floats() const { return patch_at(2); }
};

/// A tile's first pixel: image, row and column of y.
struct OutputPixel {
  int n, p, q;
};

__device__ inline OutputPixel place_of(const Tiling& tiling, int tile) {
  const int rest = tiling.by_tiles_across.quotient(tile);
  const int across = tiling.by_tiles_across.remainder(tile, rest);
  const int n = tiling.by_tiles_down.quotient(rest);
  const int down = tiling.by_tiles_down.remainder(rest, n);
  return {n, down * tiling.rows, across * tiling.across * 16};
}

/// Rounds four floats at a multiple of 16 bytes.
__device__ inline void round_four(float* four) {
  const float4 v = *reinterpret_cast<const float4*>(four);
  *reinterpret_cast<uint4*>(four) = {ptx::to_tf32(v.x), ptx::to_tf32(v.y), ptx::to_tf32(v.z),
                                     ptx::to_tf32(v.w)};
}

/// Calls body(c, i, line) for the lines that this thread's warp copies: row i of the patch's
/// channel c, whose first float is `line`.
template <class Body>
__device__ void for_own_lines(const Tiling& tiling, float* patch, const Body& body) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int n = warp; n < tiling.channels * tiling.in_rows; n += tiling.warps) {
    const int c = tiling.by_in_rows.quotient(n), i = tiling.by_in_rows.remainder(n, c);
    body(c, i, patch + c * tiling.plane + i * tiling.pitch);
  }
}

/// Asks for the patch that a tile needs, kWidth floats at a time: zeros for the padding.
/// @param x the group's first channel of the first image
template <int kWidth>
__device__ void ask_for_patch(const Conv2dProblem& conv, const Tiling& tiling, OutputPixel at,
                              const float* x, float* patch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int h0 = at.p * tiling.stride.h - conv.pad.top;
  const int w0 = at.q * tiling.stride.w - conv.pad.left - tiling.shift;
  const float* const image = x + std::int64_t{at.n} * conv.C * conv.H * conv.W;
  for_own_lines(tiling, patch, [&](int c, int i, float* line) {
    // Negative coordinates turn into huge unsigned ones.
    const bool row_inside = static_cast<unsigned>(h0 + i) < static_cast<unsigned>(conv.H);
    const float* const row =
        image + (std::int64_t{c} * conv.H + (row_inside ? h0 + i : 0)) * conv.W;
#pragma unroll 1  // most lines are one or two steps
    for (int j = lane * kWidth; j < tiling.in_columns; j += 32 * kWidth) {
      const bool inside =
          row_inside && static_cast<unsigned>(w0 + j) < static_cast<unsigned>(conv.W);
      ptx::cp_async<4 * kWidth>(line + j, row + (inside ? w0 + j : 0), inside ? 4 * kWidth : 0);
    }
  });
}

/// Rounds what this very thread has asked for, once it has landed.
template <int kWidth>
__device__ void round_patch(const Tiling& tiling, float* patch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for_own_lines(tiling, patch, [&](int, int, float* line) {
    for (int j = lane * kWidth; j < tiling.in_columns; j += 32 * kWidth) {
      if constexpr (kWidth == 4) {
        round_four(line + j);
      } else {
        line[j] = __uint_as_float(ptx::to_tf32(line[j]));
      }
    }
  });
}

/// Filters f0 ... of a group of the convolution: what a block computes at a time.
struct Filters {
  int group, count;    ///< the convolution's group; filters, at most 16 * kFilterTiles
  std::int64_t first;  ///< among all K
};

/// Asks for the weights in the order of mma's a, and writes what else stays in shared memory: the
/// taps' places in the patch, in bytes and in pairs as a lane needs them, biases, and a zero.
template <class S>
__device__ void stage_filters(const Conv2dProblem& conv, const Tiling& tiling,
                              const Filters& filters, const float* weights, const float* bias,
                              float* shared) {
  const int thread = static_cast<int>(threadIdx.x), threads = tiling.warps * 32;
  for (int i = thread; i < tiling.weight_floats() / 4; i += threads) {
    const int f = i / 32 % S::kFilterTiles * 16 + i % 32 / 4;
    const int k = i / 32 / S::kFilterTiles * 8 + i % 4;
    const std::int64_t from = (filters.first + f) * tiling.depth + k;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool inside = f + e % 2 * 8 < filters.count && k + e / 2 * 4 < tiling.depth;
      ptx::cp_async<4>(shared + 4 * i + e,
                       weights + (inside ? from + e % 2 * 8 * tiling.depth + e / 2 * 4 : 0),
                       inside ? 4 : 0);
    }
  }
  auto* const taps = reinterpret_cast<int*>(shared + tiling.taps_at());
  for (int k = thread; k < tiling.steps * 8; k += threads) {
    const int s = k % conv.S, r = k / conv.S % conv.R, c = k / conv.S / conv.R;
    taps[k / 8 * 8 + k % 4 * 2 + k % 8 / 4] =
        k < tiling.depth
            ? 4 * (c * tiling.plane + r * conv.dilation.h * tiling.pitch + s * conv.dilation.w)
            : 4 * tiling.zero_at();
  }
  for (int f = thread; f < 16 * S::kFilterTiles; f += threads) {
    shared[tiling.biases_at() + f] =
        bias != nullptr && f < filters.count ? bias[filters.first + f] : 0.0f;
  }
  if (thread == 0) shared[tiling.zero_at()] = 0.0f;
}

/// A warp's sums: filters in 16s, pixels in groups of two fragments, as mma's d.
template <class S>
using Sums = float[S::kFilterTiles][S::kGroups][2][4];

/// Biases and products of a warp's filters and the groups of pixels from `first` on.
template <class S>
__device__ void multiply(const Tiling& tiling, const float* shared, int patch_at, int first,
                         Sums<S>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, place = lane % 4;  // of the fragments, as in mma_m16n8k8_tf32()
  int base[S::kGroups][2];                       // where this lane's windows begin, in bytes
#pragma unroll
  for (int j = 0; j < S::kGroups; ++j) {
    const int g = first + j < tiling.rows * tiling.across ? first + j : 0;
    const int row = tiling.by_across.quotient(g);
    // A group's fragments have the pixels 0 1 4 5 8 ... and 2 3 6 7 10 ...: then a lane's sums of
    // both are four neighbours.
    const int column = tiling.by_across.remainder(g, row) * 16 + group / 2 * 4 + group % 2;
    base[j][0] = 4 * (patch_at + tiling.shift + row * tiling.stride.h * tiling.pitch +
                      column * tiling.stride.w);
    base[j][1] = base[j][0] + 8 * tiling.stride.w;
  }
#pragma unroll
  for (int m = 0; m < S::kFilterTiles; ++m) {
    const float low = shared[tiling.biases_at() + 16 * m + group];
    const float high = shared[tiling.biases_at() + 16 * m + group + 8];
#pragma unroll
    for (int j = 0; j < S::kGroups; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        sums[m][j][h][0] = sums[m][j][h][1] = low;
        sums[m][j][h][2] = sums[m][j][h][3] = high;
      }
    }
  }
  const auto* const taps = reinterpret_cast<const int2*>(shared + tiling.taps_at());
  // Places are counted in bytes: an address is then one multiply-add.
  const auto bits_at = [&](int place_in_bytes) {
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(shared) +
                                                   place_in_bytes);
  };
#pragma unroll 1
  for (int step = 0; step < tiling.steps; ++step) {
    const int2 tap = taps[step * 4 + place];
    // Past the last product, `tap` is where the zero is, for all pixels.
    const int real0 = step * 8 + place < tiling.depth, real1 = step * 8 + place + 4 < tiling.depth;
    std::uint32_t a[S::kFilterTiles][4];
#pragma unroll
    for (int m = 0; m < S::kFilterTiles; ++m) {
      const uint4 four =
          *reinterpret_cast<const uint4*>(shared + ((step * S::kFilterTiles + m) * 32 + lane) * 4);
      a[m][0] = four.x;
      a[m][1] = four.y;
      a[m][2] = four.z;
      a[m][3] = four.w;
    }
#pragma unroll
    for (int j = 0; j < S::kGroups; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const std::uint32_t b[2] = {bits_at(base[j][h] * real0 + tap.x),
                                    bits_at(base[j][h] * real1 + tap.y)};
#pragma unroll
        for (int m = 0; m < S::kFilterTiles; ++m) {
          ptx::mma_m16n8k8_tf32(sums[m][j][h], a[m], b);
        }
      }
    }
  }
}

/// Stores a warp's sums: four floats at a time, or by way of the warp's draft, 32 neighbours at a
/// time.
/// @param y the first filter's plane of the tile's image
template <class S>
__device__ void store(const Conv2dProblem& conv, const Tiling& tiling, OutputPixel at, int first,
                      int filters, const Sums<S>& sums, float* draft, float* y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, place = lane % 4;
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  // Pixel `i` of the warp's, as an offset in a plane of y; -1: there is none.
  const auto pixel_at = [&](int i) -> std::int64_t {
    const int g = first + i / 16;
    const int row = tiling.by_across.quotient(g);
    const int p = at.p + row;
    const int q = at.q + tiling.by_across.remainder(g, row) * 16 + i % 16;
    const bool inside = g < tiling.rows * tiling.across && p < conv.P && q < conv.Q;
    return inside ? std::int64_t{p} * conv.Q + q : -1;
  };
  const auto four_of = [&](int m, int j, int half) {  // of filter 16 m + 8 half + group
    const auto value = [&](int h, int e) {
      return activated(conv.activation, sums[m][j][h][2 * half + e]);
    };
    return float4{value(0, 0), value(0, 1), value(1, 0), value(1, 1)};
  };
  if (tiling.draft_floats == 0) {
#pragma unroll
    for (int j = 0; j < S::kGroups; ++j) {
      std::int64_t to = pixel_at(16 * j + 4 * place);
      if (to < 0) continue;
      to += group * plane;
#pragma unroll
      for (int m = 0; m < S::kFilterTiles; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (16 * m + 8 * half + group < filters) {
            *reinterpret_cast<float4*>(y + to) = four_of(m, j, half);
          }
          to += 8 * plane;
        }
      }
    }
    return;
  }
  constexpr int kStores = (16 * S::kGroups + 31) / 32;
  std::int64_t pixels[kStores], filter_at = 0;
#pragma unroll
  for (int i = 0; i < kStores; ++i) {
    pixels[i] = lane + 32 * i < 16 * S::kGroups ? pixel_at(lane + 32 * i) : -1;
  }
#pragma unroll
  for (int m = 0; m < S::kFilterTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      __syncwarp();  // separates the loads of the filters before from these stores
#pragma unroll
      for (int j = 0; j < S::kGroups; ++j) {
        *reinterpret_cast<float4*>(draft + group * S::kDraftPitch + 16 * j + 4 * place) =
            four_of(m, j, half);
      }
      __syncwarp();  // separates these stores from the loads below
      const int rows = min(filters - 16 * m - 8 * half, 8);
#pragma unroll 1  // else the compiler keeps the offsets of all filters in registers
      for (int f = 0; f < rows; ++f) {
#pragma unroll
        for (int i = 0; i < kStores; ++i) {
          if (pixels[i] >= 0) {
            y[filter_at + pixels[i]] = draft[f * S::kDraftPitch + lane + 32 * i];
          }
        }
        filter_at += plane;
      }
    }
  }
}

/// Grid (blocks that share the tiles, tiles of filters of all groups). Block (tiling.warps * 32).
/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
template <class S>
__global__ void __launch_bounds__(S::kWarps * 32, kBlocksPerSm)
    conv2d_direct_mma(Conv2dProblem conv, Tiling tiling, int tiles, const float* x,
                      const float* weights, const float* bias, float* y) {
  constexpr int kFilters = 16 * S::kFilterTiles;
  float* const shared = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x), threads = tiling.warps * 32;
  const int warp = thread / 32;
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int filter_tiles = ceil_div(tiling.filters, kFilters);

  for (std::int64_t part = blockIdx.y; part < std::int64_t{conv.groups} * filter_tiles;
       part += gridDim.y) {
    const int group = static_cast<int>(part / filter_tiles);
    const int f0 = static_cast<int>(part % filter_tiles) * kFilters;
    const Filters filters{group, min(tiling.filters - f0, kFilters),
                          std::int64_t{group} * tiling.filters + f0};
    const float* const group_x = x + std::int64_t{group} * tiling.channels * conv.H * conv.W;
    const auto ask_for = [&](int tile, int buffer) {
      if (tile >= tiles) return;
      const OutputPixel at = place_of(tiling, tile);
      float* const patch = shared + tiling.patch_at(buffer);
      if (tiling.width == 4) {
        ask_for_patch<4>(conv, tiling, at, group_x, patch);
      } else {
        ask_for_patch<1>(conv, tiling, at, group_x, patch);
      }
    };

    stage_filters<S>(conv, tiling, filters, weights, bias, shared);
    ask_for(block, 0);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    for (int i = thread; i < tiling.weight_floats() / 4; i += threads) round_four(shared + 4 * i);

    int buffer = 0;
    for (int tile = block; tile < tiles; tile += blocks) {
      ptx::cp_async_wait_group<0>();
      if (tiling.width == 4) {
        round_patch<4>(tiling, shared + tiling.patch_at(buffer));
      } else {
        round_patch<1>(tiling, shared + tiling.patch_at(buffer));
      }
      // Makes the patch visible to all, at first the weights too; separates the loads of the tile
      // before from the copies that now overwrite its patch.
      __syncthreads();
      ask_for(tile + blocks, 1 - buffer);
      ptx::cp_async_commit_group();

      const OutputPixel at = place_of(tiling, tile);
      for (int first = warp * S::kGroups; first < tiling.rows * tiling.across;
           first += tiling.warps * S::kGroups) {
        Sums<S> sums;
        multiply<S>(tiling, shared, tiling.patch_at(buffer), first, sums);
        store<S>(conv, tiling, at, first, filters.count, sums,
                 shared + tiling.drafts_at() + warp * tiling.draft_floats,
                 y + (std::int64_t{at.n} * conv.K + filters.first) * conv.P * conv.Q);
      }
      buffer = 1 - buffer;
    }
    __syncthreads();  // separates the last loads from the next part's copies
  }
}

/// The least number from `floats` on that is `bank` modulo `banks`.
std::int64_t at_bank(std::int64_t floats, std::int64_t bank, int banks) {
  return floats + ((bank - floats) % banks + banks) % banks;
}

/// Bytes of shared memory of a tiling with tiles of rows x 16 * across pixels; the patch's sizes
/// are filled in unless the bytes are more than `limit`.
std::int64_t lay_out(const Conv2dProblem& conv, std::int64_t limit, Tiling* tiling) {
  const std::int64_t extent_w = window_extent(conv.S, conv.dilation.w);
  const std::int64_t in_rows =
      (tiling->rows - 1) * std::int64_t{tiling->stride.h} + window_extent(conv.R, conv.dilation.h);
  const std::int64_t in_columns =
      ceil_div<std::int64_t>(
          tiling->shift + (tiling->across * 16 - 1) * std::int64_t{tiling->stride.w} + extent_w,
          tiling->width) *
      tiling->width;
  const std::int64_t fixed = tiling->patch_at(0) * std::int64_t{sizeof(float)};
  const auto cut = [](std::int64_t floats) { return std::min(floats, std::int64_t{1} << 18); };
  const std::int64_t least = fixed + 2 * tiling->channels * cut(cut(in_rows) * cut(in_columns)) *
                                         std::int64_t{sizeof(float)};
  if (least > limit) return least;
  // A row of the window should go on in the banks behind those of the row before, which the eight
  // pixels 0 1 4 5 8 9 12 13 use. With stride 2, these repeat every 8 banks.
  const int banks = tiling->stride.w == 2 ? 8 : 32;
  const std::int64_t behind =
      ceil_div<std::int64_t>(extent_w + 13 * std::int64_t{tiling->stride.w}, tiling->width);
  const std::int64_t pitch = at_bank(in_columns, behind * tiling->width, banks);
  const std::int64_t plane =
      at_bank(in_rows * pitch, ((conv.R - 1) * std::int64_t{conv.dilation.h} + 1) * pitch, banks);
  tiling->in_rows = static_cast<int>(in_rows);
  tiling->in_columns = static_cast<int>(in_columns);
  tiling->pitch = static_cast<int>(pitch);
  tiling->plane = static_cast<int>(plane);
  return fixed + 2 * tiling->channels * plane * std::int64_t{sizeof(float)};
}

/// Bytes of the weights of 16 * filter_tiles filters.
std::int64_t weight_bytes(const Conv2dProblem& conv, int filter_tiles) {
  const std::int64_t depth = std::int64_t{conv.C / conv.groups} * conv.R * conv.S;
  return ceil_div<std::int64_t>(depth, 8) * 8 * 16 * filter_tiles * std::int64_t{sizeof(float)};
}

/// One group of pixels, one warp. The sums must be short enough for weight_bytes() to fit.
Tiling smallest_tiling(const Conv2dProblem& conv, int filter_tiles, int width) {
  Tiling tiling{};
  tiling.filter_tiles = filter_tiles;
  tiling.rows = tiling.across = tiling.warps = 1;
  tiling.width = width;
  tiling.shift = (width - conv.pad.left % width) % width;
  tiling.channels = conv.C / conv.groups;
  tiling.filters = conv.K / conv.groups;
  tiling.depth = tiling.channels * conv.R * conv.S;
  tiling.steps = ceil_div(tiling.depth, 8);
  tiling.stride = {conv.P == 1 ? 1 : conv.stride.h, conv.Q == 1 ? 1 : conv.stride.w};
  return tiling;
}

/// The tiling of shape S that should take the least time, with at most `limit` bytes.
template <class S>
std::optional<Tiling> tile_with(const Conv2dProblem& conv, int width, bool direct,
                                std::int64_t limit) {
  if (weight_bytes(conv, S::kFilterTiles) > limit) return {};
  Tiling base = smallest_tiling(conv, S::kFilterTiles, width);
  base.draft_floats = direct ? 0 : 8 * S::kDraftPitch;
  const int all_across = ceil_div(conv.Q, 16);
  const std::int64_t parts =
      std::int64_t{conv.groups} * ceil_div(base.filters, 16 * S::kFilterTiles);
  const int sms = multiprocessors();
  std::optional<Tiling> best;
  double best_cost = 0;
  for (int pieces = 1; pieces <= std::min(all_across, 64); ++pieces) {
    Tiling tiling = base;
    tiling.across = ceil_div(all_across, pieces);
    for (tiling.rows = 1; tiling.rows <= std::min(conv.P, kMaxRows); ++tiling.rows) {
      const int groups = tiling.rows * tiling.across;
      const int passes = ceil_div(groups, S::kWarps * S::kGroups);
      tiling.warps = ceil_div(groups, passes * S::kGroups);
      if (lay_out(conv, limit, &tiling) > limit) continue;
      tiling.tiles_down = ceil_div(conv.P, tiling.rows);
      tiling.tiles_across = ceil_div(all_across, tiling.across);
      // In instructions of warps; an mma counts as three.
      constexpr int kStep = 2 * (3 * S::kFilterTiles + 4) * S::kGroups + S::kFilterTiles + 6;
      constexpr int kPass = (12 * S::kFilterTiles + 40) * S::kGroups;
      const double work =
          double{1} * passes * std::max(tiling.warps, 6) * (base.steps * kStep + kPass) +
          double{1} * base.channels * tiling.in_rows *
              (40 + 16 * ceil_div(tiling.in_columns, 32 * width)) +
          200 * tiling.warps;
      const std::int64_t tiles =
          std::max(conv.N, 1) * parts * tiling.tiles_down * tiling.tiles_across;
      // Tiles one after the other on an SM, of which kBlocksPerSm share the time; and one more for
      // the first copies and the last stores.
      const double rounds =
          1.0 +
          static_cast<double>(kBlocksPerSm * ceil_div<std::int64_t>(tiles, kBlocksPerSm * sms));
      if (!best || work * rounds < best_cost) {
        best_cost = work * rounds;
        best = tiling;
      }
    }
  }
  if (best) {
    best->by_across = FastDivision(best->across);
    best->by_in_rows = FastDivision(best->in_rows);
    best->by_tiles_down = FastDivision(best->tiles_down);
    best->by_tiles_across = FastDivision(best->tiles_across);
  }
  return best;
}

/// Shared memory of a block, where an SM holds kBlocksPerSm; `most` is that of one alone.
std::int64_t shared_bytes_each(std::int64_t most) { return (most + 1024) / kBlocksPerSm - 1024; }

/// Two blocks an SM if possible, else one; as many filters a block as possible.
std::optional<Tiling> choose(const Conv2dProblem& conv, int width, bool direct) {
  const std::int64_t most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int filters = conv.K / conv.groups;
  for (const std::int64_t limit : {shared_bytes_each(most), most}) {
    if (filters > 32) {
      if (const auto tiling = tile_with<Wide>(conv, width, direct, limit)) return tiling;
    }
    if (filters > 16) {
      if (const auto tiling = tile_with<Medium>(conv, width, direct, limit)) return tiling;
    }
    if (const auto tiling = tile_with<Narrow>(conv, width, direct, limit)) return tiling;
  }
  return {};
}

/// Whether all rows of x, or of y, begin at multiples of 16 bytes, if the first one does.
bool rows_of_x_in_fours(const Conv2dProblem& conv) { return conv.W % 4 == 0; }
bool rows_of_y_in_fours(const Conv2dProblem& conv) { return conv.Q % 4 == 0; }

/// What choose() finds, with copies of four floats where x and y allow them, or of single floats
/// where there is no room.
Tiling tiling_of(const Conv2dProblem& conv, bool in_fours, bool out_fours) {
  const auto tiling = choose(conv, in_fours ? 4 : 1, out_fours);
  return tiling ? *tiling : choose(conv, 1, false).value();
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (compute_capability() < 80) {
    return "tensor cores take TF32 from compute capability 8.0 on, and this device has less";
  }
  if (std::int64_t{conv.N} * conv.P * ceil_div(conv.Q, 16) > std::int64_t{1} << 30) {
    return "more than 2^30 groups of 16 pixels";
  }
  if (choose(conv, 1, false)) return {};
  const std::int64_t most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  std::int64_t bytes = weight_bytes(conv, 1);
  if (bytes <= most) {
    Tiling tiling = smallest_tiling(conv, 1, 1);
    bytes = lay_out(conv, most, &tiling);
  }
  return text("the weights of 16 filters and the inputs of 16 pixels, twice, take at least ", bytes,
              " bytes of shared memory, more than ", most);
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* x = arrays.in<float>("x");
  float* y = arrays.out<float>("y");
  const Tiling tiling =
      tiling_of(conv, rows_of_x_in_fours(conv) && reinterpret_cast<std::uintptr_t>(x) % 16 == 0,
                rows_of_y_in_fours(conv) && reinterpret_cast<std::uintptr_t>(y) % 16 == 0);
  const int tiles = conv.N * tiling.tiles_down * tiling.tiles_across;
  const std::int64_t parts =
      std::int64_t{conv.groups} * ceil_div(tiling.filters, 16 * tiling.filter_tiles);
  const unsigned grid_y = blocks_for(parts, 1, kMaxGridYZ);
  const int slots = kBlocksPerSm * multiprocessors();
  const unsigned grid_x = blocks_for(tiles, 1, ceil_div<std::int64_t>(slots, grid_y));
  launch(tiling.filter_tiles == Wide::kFilterTiles     ? conv2d_direct_mma<Wide>
         : tiling.filter_tiles == Medium::kFilterTiles ? conv2d_direct_mma<Medium>
                                                       : conv2d_direct_mma<Narrow>,
         {dim3(grid_x, grid_y), static_cast<unsigned>(tiling.warps * 32),
          static_cast<std::size_t>(tiling.floats()) * sizeof(float)},
         conv, tiling, tiles, x, arrays.in<float>("weights"), arrays.in_or_null<float>("bias"), y);
}

OutputTile tile_of(const Conv2dProblem& conv) {
  const Tiling tiling = tiling_of(conv, rows_of_x_in_fours(conv), rows_of_y_in_fours(conv));
  return {tiling.rows, tiling.across * 16};
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Tiling tiling = tiling_of(conv, rows_of_x_in_fours(conv), rows_of_y_in_fours(conv));
  const std::int64_t most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return text(16 * tiling.filter_tiles, " filters a block", tiling.width == 4 ? ", x in fours" : "",
              tiling.draft_floats == 0 ? ", y in fours" : "",
              tiling.floats() * std::int64_t{sizeof(float)} > shared_bytes_each(most)
                  ? ", one block an SM"
                  : "");
}

}  // namespace

Implementation<Conv2dProblem> direct_mma_tf32() {
  return {.supports = supports, .run = run, .tile = tile_of, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
