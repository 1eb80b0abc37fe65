/// @file direct_cp_async.cu
/// @brief conv2d, inputs and weights arrive in shared memory by themselves, several channels ahead.
///
/// - Before: direct_double_buffered.cu
/// - After: direct_register_window.cu, depthwise.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** `cp.async` copies from global to shared memory without passing through registers:
/// a thread starts the copy, goes on, and waits much later. Padding is not read and becomes zero
/// (`read_bytes` = 0), without a branch. A channel's copies are one group, and a ring of places
/// holds several groups:
///
///     place 0 | c0 arrives | c0 computed | c3 arrives . . . . . . .  | c3 computed    time ->
///     place 1 | c1 arrives . . . . . . . | c1 computed | c4 arrives . . . . . . .
///     place 2              | c2 arrives . . . . . . .  | c2 computed | c5 arrives
///                          wait for c0; barrier; start c2; compute c0
///
/// The registers that this frees hold outputs: 4 pixels of a row times 2 rows times up to 8
/// filters. Four pixels are a float4, which 8 threads read from all 32 banks at once. With stride 2
/// a row lies in shared memory as its even columns and behind them its odd ones (0 2 4 6 | 1 3 5
/// 7), so that neighbouring pixels still read neighbouring floats.
///
/// **Expect.** B1 (1x6x768x512, 6 filters 6x6): 21 loads of x and at least 54 of weights from
/// shared memory for 1728 multiply-adds a channel; 384 blocks, three an SM, all at once. At 67
/// TFLOP/s its arithmetic takes 15 us, that of B11 41, of B3 113; B2's 110 MB take 28 us at 4 TB/s.
/// **Costs.** With many channels and filters x is read K / 32 times, and implicit_gemm_cp_async.cu
/// is faster. What is not compiled in takes conv2d_cp_async_any(): a load for each tap and pixel.
/// Declined: NHWC, other types, windows and filters too large for shared memory.
/// **Try.** Let each thread have 8 pixels of one row instead of 4 of two. Which banks do the
/// threads 0 to 7 read then, and what does a profiler say about wavefronts?
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/direct_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kPixels = 4;  ///< Neighbouring outputs of a row that a thread computes: a float4.
/// Floats between the places of a thread's pixels on their way out: so that 32 threads meet no bank
/// twice, neither where they write (side by side) nor where they read (4 pixels of 8 threads).
constexpr int kPassPitch = 40;

/// What a block computes, and how it lies in shared memory. The filter is R x S, with the same
/// stride along both axes and no dilation.
///
/// A warp is kLanesX threads wide; a block is kWarpsY warps of pixels high, and kWarpsF groups of
/// warps compute other filters of the same pixels.
template <int kR, int kS, int kStride_, int kFilters_, int kRows_, int kLanesX_, int kWarpsY_,
          int kWarpsF_, int kChannels_, int kStages_, int kMinBlocks_>
struct Tile {
  static constexpr int R = kR, S = kS, kStride = kStride_;
  static constexpr int kRows = kRows_;        ///< Of pixels, one below the other, of a thread.
  static constexpr int kFilters = kFilters_;  ///< Of a thread.
  static constexpr int kLanesX = kLanesX_, kLanesY = 32 / kLanesX;
  static constexpr int kWarpsY = kWarpsY_, kWarpsF = kWarpsF_;
  static constexpr int kChannels = kChannels_;    ///< That arrive together.
  static constexpr int kStages = kStages_;        ///< Places for them.
  static constexpr int kMinBlocks = kMinBlocks_;  ///< Of an SM, at least.

  static constexpr int kWarps = kWarpsY * kWarpsF, kThreads = 32 * kWarps;
  static constexpr int kBlockFilters = kFilters * kWarpsF;
  static constexpr int kColumns = kPixels * kLanesX, kBlockRows = kRows * kLanesY * kWarpsY;

  // Inputs. Column u of the tile stands in plane u % kStride of its row, at u / kStride: so the
  // columns that neighbouring pixels read are neighbours also with a stride.
  static constexpr int kInRows = (kBlockRows - 1) * kStride + R;
  static constexpr int kInColumns = (kColumns - 1) * kStride + S;
  static constexpr int kVectors = (kPixels + (S - 1) / kStride + 3) / 4;  ///< Of a thread's window
  static constexpr int kPlane = kColumns - kPixels + 4 * kVectors;
  /// Where 8 threads that load together lie in two rows, these are half of the banks apart.
  static constexpr int pitch() {
    int floats = kStride * kPlane;
    if (kLanesX < 8) {
      while (kRows * kStride * floats % 32 != 16) floats += 4;
    }
    return floats;
  }
  static constexpr int kPitch = pitch();
  static constexpr int kInFloats = kInRows * kPitch;  ///< Of a channel.

  /// Rows of the filter that are unrolled: two, so that the window's rows change places for free.
  static constexpr int kUnrolled = kStride > 1 ? 1 : 2;

  // Weights [kWarpsF][channel][r][s][filter], an even number of filters.
  static constexpr int kPadded = kFilters % 2 == 0 ? kFilters : kFilters + 1;
  static constexpr int kWeightFloats =
      (R * S * kPadded + 3) / 4 * 4;  ///< Of a channel, for a warp.

  static constexpr int kStageFloats = kChannels * (kInFloats + kWarpsF * kWeightFloats);
  static constexpr int kPassFloats = kWarps * kRows * kPixels * kPassPitch;  ///< For the stores.

  /// Places that are used: no more than there are chunks of channels.
  static int places(const Conv2dProblem& conv) {
    return std::min(ceil_div(conv.C / conv.groups, kChannels), kStages);
  }
  static std::int64_t shared_bytes(const Conv2dProblem& conv) {
    return std::int64_t{4} * (places(conv) * kStageFloats + kPassFloats);
  }
};

/// The block begins to copy one channel's inputs: rows h0 ..., columns w0 ... of `channel`.
/// @param aligned the channel lies at a multiple of 16 bytes, and W and w0 are multiples of 4
template <class T>
__device__ void load_inputs(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                            bool aligned, float* to) {
  const int thread = static_cast<int>(threadIdx.x);
  if (T::kStride == 1 && aligned) {
    // Each thread keeps its column and goes down the rows. A vector is in x as a whole, or not.
    constexpr int kRowVectors = T::kPlane / 4, kAtOnce = T::kThreads / kRowVectors;
    const int row = thread / kRowVectors, w = w0 + thread % kRowVectors * 4;
    const bool column_inside = static_cast<unsigned>(w) < static_cast<unsigned>(conv.W);
    std::int64_t offset = std::int64_t{h0 + row} * conv.W + w;
    to += row * T::kPitch + thread % kRowVectors * 4;
#pragma unroll
    for (int i = 0; i < T::kInRows; i += kAtOnce) {
      if (row < min(kAtOnce, T::kInRows - i)) {
        const bool inside =
            column_inside && static_cast<unsigned>(h0 + row + i) < static_cast<unsigned>(conv.H);
        ptx::cp_async<16>(to + i * T::kPitch, channel + (inside ? offset : 0), inside ? 16 : 0);
      }
      offset += std::int64_t{kAtOnce} * conv.W;
    }
  } else {
    const int lane = thread % 32, warp = thread / 32;
#pragma unroll 1
    for (int u0 = 0; u0 < T::kInColumns; u0 += 32) {
      const int u = u0 + lane, w = w0 + u;
      const bool column_inside = static_cast<unsigned>(w) < static_cast<unsigned>(conv.W);
      std::int64_t offset = std::int64_t{h0 + warp} * conv.W + w;
      float* place = to + warp * T::kPitch + u % T::kStride * T::kPlane + u / T::kStride;
#pragma unroll 2
      for (int row = u < T::kInColumns ? warp : T::kInRows; row < T::kInRows; row += T::kWarps) {
        const bool inside =
            column_inside && static_cast<unsigned>(h0 + row) < static_cast<unsigned>(conv.H);
        ptx::cp_async<4>(place, channel + (inside ? offset : 0), inside ? 4 : 0);
        place += T::kWarps * T::kPitch;
        offset += std::int64_t{T::kWarps} * conv.W;
      }
    }
  }
}

/// The block begins to copy the weights of its filters for one channel. `weights` points to the
/// first filter's, `filter_size` floats before the next one's; there are `filters` of them.
template <class T>
__device__ void load_weights(const float* weights, std::int64_t filter_size, int filters,
                             float* to) {
  // Each thread keeps its filter, and goes on by kAtOnce taps.
  constexpr int kTaps = T::R * T::S, kAtOnce = T::kThreads / T::kBlockFilters;
  const int f = static_cast<int>(threadIdx.x) % T::kBlockFilters;
  const int first = static_cast<int>(threadIdx.x) / T::kBlockFilters;
  const bool there = f < filters;
  const float* from = weights + (there ? f * filter_size : 0);
  to += f / T::kFilters * T::kChannels * T::kWeightFloats + f % T::kFilters;
#pragma unroll 2
  for (int tap = first < kAtOnce ? first : kTaps; tap < kTaps; tap += kAtOnce) {
    ptx::cp_async<4>(to + tap * T::kPadded, from + tap, there ? 4 : 0);
  }
}

/// One tap's weights for the filters of a thread: the same address for the whole warp, one
/// wavefront.
template <class T>
__device__ void load_tap(const float* from, float (&weight)[T::kPadded]) {
  if constexpr (T::kPadded % 4 == 0) {
#pragma unroll
    for (int f = 0; f < T::kPadded; f += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + f);
      weight[f] = four.x;
      weight[f + 1] = four.y;
      weight[f + 2] = four.z;
      weight[f + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int f = 0; f < T::kPadded; f += 2) {
      const float2 two = *reinterpret_cast<const float2*>(from + f);
      weight[f] = two.x;
      weight[f + 1] = two.y;
    }
  }
}

/// Adds one channel's products to the sums. `window` is the thread's place in the inputs.
template <class T>
__device__ void multiply(const float* window, const float* weights,
                         float (&sums)[T::kFilters][T::kRows][kPixels]) {
  constexpr bool kSlides = T::kStride == 1;  // a row of the window moves up to the next pixel row
  constexpr int kWidth = 4 * T::kVectors;
  float values[T::kRows][T::kStride][kWidth];
  const auto load_row = [&](int j, int row) {
#pragma unroll
    for (int plane = 0; plane < T::kStride; ++plane) {
#pragma unroll
      for (int i = 0; i < kWidth; i += 4) {
        const float4 four =
            *reinterpret_cast<const float4*>(window + row * T::kPitch + plane * T::kPlane + i);
        values[j][plane][i] = four.x;
        values[j][plane][i + 1] = four.y;
        values[j][plane][i + 2] = four.z;
        values[j][plane][i + 3] = four.w;
      }
    }
  };
  if (kSlides) {
#pragma unroll
    for (int j = 0; j < T::kRows - 1; ++j) load_row(j, j);
  }
#pragma unroll(T::kUnrolled)
  for (int r = 0; r < T::R; ++r) {
    if (kSlides) {
      load_row(T::kRows - 1, T::kRows - 1 + r);
    } else {
#pragma unroll
      for (int j = 0; j < T::kRows; ++j) load_row(j, j * T::kStride + r);
    }
#pragma unroll
    for (int s = 0; s < T::S; ++s) {
      float weight[T::kPadded];
      load_tap<T>(weights + (r * T::S + s) * T::kPadded, weight);
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kPixels; ++e) {
            sums[f][j][e] += values[j][s % T::kStride][e + s / T::kStride] * weight[f];
          }
        }
      }
    }
    if (kSlides) {
#pragma unroll
      for (int j = 0; j < T::kRows - 1; ++j) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[j][0][i] = values[j + 1][0][i];
      }
    }
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Grid (tiles along
/// q, <= tiles along p, <= N * tiles of filters), block T::kThreads.
/// @param shift columns left of y at which the first tile begins, so that its inputs are aligned
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kMinBlocks)
    conv2d_cp_async(Conv2dProblem conv, int shift, bool aligned, const float* x,
                    const float* weights, const float* bias, float* y) {
  float* pass = dynamic_shared<float>();  // [warps][T::kRows][kPixels][kPassPitch]
  float* stages = pass + T::kPassFloats;  // ring of [inputs][weights]
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_f = warp / T::kWarpsY;
  const int column = lane % T::kLanesX * kPixels;
  const int row = (warp % T::kWarpsY * T::kLanesY + lane / T::kLanesX) * T::kRows;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, T::kBlockFilters);
  const int filter_tiles = conv.groups * group_tiles;
  const int chunks = ceil_div(group_c, T::kChannels);
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
  const std::int64_t filter_size = std::int64_t{group_c} * (T::R * T::S);
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;

  const int q0 = static_cast<int>(blockIdx.x) * T::kColumns - shift;
  const int w0 = q0 * T::kStride - conv.pad.left;
  pass += warp * (T::kRows * kPixels * kPassPitch);

  for (std::int64_t z = blockIdx.z; z < std::int64_t{conv.N} * filter_tiles; z += gridDim.z) {
    const int n = static_cast<int>(z / filter_tiles),
              filter_tile = static_cast<int>(z % filter_tiles);
    const int group = filter_tile / group_tiles;
    const int k0 = group * group_k + filter_tile % group_tiles * T::kBlockFilters;
    const int filters = min(T::kBlockFilters, (group + 1) * group_k - k0);  // of the block
    const float* tile_x = x + (std::int64_t{n} * conv.C + group * group_c) * channel_size;
    const float* tile_weights = weights + k0 * filter_size;

    for (std::int64_t tile_row = std::int64_t{blockIdx.y} * T::kBlockRows; tile_row < conv.P;
         tile_row += std::int64_t{gridDim.y} * T::kBlockRows) {
      const int p0 = static_cast<int>(tile_row), h0 = p0 * T::kStride - conv.pad.top;
      // Begins to copy a chunk of channels, and closes the group of copies, also an empty one: the
      // waits count groups.
      const auto load = [&](int chunk) {
        if (chunk < chunks) {
          float* stage = stages + chunk % T::kStages * T::kStageFloats;
#pragma unroll 1
          for (int i = 0; i < T::kChannels; ++i) {
            const int c = chunk * T::kChannels + i;
            if (c >= group_c) break;
            load_inputs<T>(conv, tile_x + c * channel_size, h0, w0, aligned,
                           stage + i * T::kInFloats);
            load_weights<T>(tile_weights + std::int64_t{c} * (T::R * T::S), filter_size, filters,
                            stage + T::kChannels * T::kInFloats + i * T::kWeightFloats);
          }
        }
        ptx::cp_async_commit_group();
      };
#pragma unroll 1
      for (int chunk = 0; chunk < T::kStages - 1; ++chunk) load(chunk);

      float sums[T::kFilters][T::kRows][kPixels];
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
        const int k = warp_f * T::kFilters + f;
        const float start = bias && k < filters ? bias[k0 + k] : 0.0f;
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kPixels; ++e) sums[f][j][e] = start;
        }
      }
#pragma unroll 1
      for (int chunk = 0; chunk < chunks; ++chunk) {
        // This thread's copies of the chunk have landed: only later groups are still under way.
        ptx::cp_async_wait_group<T::kStages - 2>();
        // The one barrier: between the copies, of all threads, and the reads below; and between the
        // reads of the chunk before and the copies that go to its place now.
        __syncthreads();
        load(chunk + T::kStages - 1);
        const float* stage = stages + chunk % T::kStages * T::kStageFloats;
#pragma unroll 1
        for (int i = 0; i < T::kChannels; ++i) {
          if (chunk * T::kChannels + i >= group_c) break;
          multiply<T>(
              stage + i * T::kInFloats + row * (T::kStride * T::kPitch) + column,
              stage + T::kChannels * T::kInFloats + (warp_f * T::kChannels + i) * T::kWeightFloats,
              sums);
        }
      }

      // A thread has 4 neighbouring pixels, and rows of y begin anywhere. So the warp passes them
      // through shared memory, and stores floats of neighbouring threads side by side.
      constexpr int kParts = T::kRows * kPixels;  // of 32 floats
      float* to = y + (std::int64_t{n} * conv.K + k0 + warp_f * T::kFilters) * y_plane;
      const int from = lane % kPixels * kPassPitch + lane / kPixels;  // the first float to read
      std::int64_t offsets[kParts];
      bool inside[kParts];
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        // The pass is [T::kRows][kLanesY][kColumns].
        const int place = i * 32 + lane, q = q0 + place % T::kColumns;
        const int p =
            p0 + (warp % T::kWarpsY * T::kLanesY + place / T::kColumns % T::kLanesY) * T::kRows +
            place / (T::kColumns * T::kLanesY);
        offsets[i] = std::int64_t{p} * conv.Q + q;
        inside[i] = p < conv.P && q >= 0 && q < conv.Q;
      }
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
        __syncwarp();  // between the reads of the filter before and these writes
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kPixels; ++e)
            pass[(j * kPixels + e) * kPassPitch + lane] = activated(conv.activation, sums[f][j][e]);
        }
        __syncwarp();  // between these writes and the reads below
        if (warp_f * T::kFilters + f < filters) {
#pragma unroll
          for (int i = 0; i < kParts; ++i) {
            if (inside[i])
              to[f * y_plane + offsets[i]] = pass[from + (i / kPixels * (kPixels * kPassPitch) +
                                                          i % kPixels * (32 / kPixels))];
          }
        }
      }
      __syncthreads();  // between the reads of the stages and the next tile's copies
    }
  }
}

// ---- Any filter, stride and dilation

constexpr int kAnyThreads = 128;
constexpr int kAnyPixels = 4;  ///< Of a thread, kAnyThreads apart.
constexpr int kAnyStages = 2;
constexpr OutputTile kLargestTile = {16, 32};  ///< kAnyThreads * kAnyPixels outputs
constexpr OutputTile kSmallestTile = {1, 1};

/// As conv2d_cp_async, for every filter. A ring of kAnyStages times one channel: inputs [rows]
/// [columns], weights [r][s][filter]. Block: any number of threads that has kAnyPixels a thread.
template <int kFilters>
__global__ void __launch_bounds__(kAnyThreads)
    conv2d_cp_async_any(Conv2dProblem conv, OutputTile tile, int in_rows, int in_columns,
                        const float* x, const float* weights, const float* bias, float* y) {
  float* ring = dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int taps = conv.R * conv.S;
  const int in_floats = ceil_div(in_rows * in_columns, 4) * 4;
  const int stage_floats = in_floats + taps * kFilters;  // a multiple of 4, or kFilters is 1
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
  const std::int64_t filter_size = std::int64_t{group_c} * taps;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  const int q0 = static_cast<int>(blockIdx.x) * tile.columns;
  const int w0 = q0 * conv.stride.w - conv.pad.left;
  int windows[kAnyPixels];  // places in the inputs
#pragma unroll
  for (int j = 0; j < kAnyPixels; ++j) {
    const int pixel = thread + j * threads;
    windows[j] = pixel < tile.rows * tile.columns
                     ? pixel / tile.columns * conv.stride.h * in_columns +
                           pixel % tile.columns * conv.stride.w
                     : 0;
  }

  for (std::int64_t z = blockIdx.z; z < std::int64_t{conv.N} * filter_tiles; z += gridDim.z) {
    const int n = static_cast<int>(z / filter_tiles);
    const int filter_tile = static_cast<int>(z % filter_tiles), group = filter_tile / group_tiles;
    const int k0 = group * group_k + filter_tile % group_tiles * kFilters;
    const int filters = min(kFilters, (group + 1) * group_k - k0);
    const float* tile_x = x + (std::int64_t{n} * conv.C + group * group_c) * channel_size;
    const float* tile_weights = weights + k0 * filter_size;

    for (std::int64_t tile_row = std::int64_t{blockIdx.y} * tile.rows; tile_row < conv.P;
         tile_row += std::int64_t{gridDim.y} * tile.rows) {
      const int p0 = static_cast<int>(tile_row), h0 = p0 * conv.stride.h - conv.pad.top;
      const auto load = [&](int c) {
        if (c < group_c) {
          float* stage = ring + c % kAnyStages * stage_floats;
          const float* channel = tile_x + c * channel_size;
          for (int i = thread; i < in_rows * in_columns; i += threads) {
            const int h = h0 + i / in_columns, w = w0 + i % in_columns;
            const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(conv.H) &&
                                static_cast<unsigned>(w) < static_cast<unsigned>(conv.W);
            ptx::cp_async<4>(stage + i, channel + (inside ? std::int64_t{h} * conv.W + w : 0),
                             inside ? 4 : 0);
          }
          for (int i = thread; i < taps * kFilters; i += threads) {
            const int f = i % kFilters;
            const bool there = f < filters;
            ptx::cp_async<4>(
                stage + in_floats + i,
                tile_weights +
                    (there ? f * filter_size + std::int64_t{c} * taps + i / kFilters : 0),
                there ? 4 : 0);
          }
        }
        ptx::cp_async_commit_group();  // also if empty: the waits count groups
      };
      for (int c = 0; c < kAnyStages - 1; ++c) load(c);
      float sums[kFilters][kAnyPixels];
#pragma unroll
      for (int f = 0; f < kFilters; ++f) {
        const float start = bias && f < filters ? bias[k0 + f] : 0.0f;
#pragma unroll
        for (int j = 0; j < kAnyPixels; ++j) sums[f][j] = start;
      }
      for (int c = 0; c < group_c; ++c) {
        ptx::cp_async_wait_group<kAnyStages - 2>();
        __syncthreads();  // as the one of conv2d_cp_async
        load(c + kAnyStages - 1);
        const float* in = ring + c % kAnyStages * stage_floats;
        const float* weight = in + in_floats;
        for (int r = 0; r < conv.R; ++r) {
          for (int s = 0; s < conv.S; ++s) {
            const int tap = r * conv.dilation.h * in_columns + s * conv.dilation.w;
            float values[kAnyPixels];
#pragma unroll
            for (int j = 0; j < kAnyPixels; ++j) values[j] = in[windows[j] + tap];
#pragma unroll
            for (int f = 0; f < kFilters; ++f) {
#pragma unroll
              for (int j = 0; j < kAnyPixels; ++j) sums[f][j] += values[j] * weight[f];
            }
            weight += kFilters;
          }
        }
      }
      float* to = y + (std::int64_t{n} * conv.K + k0) * y_plane;
#pragma unroll
      for (int j = 0; j < kAnyPixels; ++j) {
        const int pixel = thread + j * threads;
        const int p = p0 + pixel / tile.columns, q = q0 + pixel % tile.columns;
        if (pixel < tile.rows * tile.columns && p < conv.P && q < conv.Q) {
#pragma unroll
          for (int f = 0; f < kFilters; ++f) {
            if (f < filters)
              to[f * y_plane + std::int64_t{p} * conv.Q + q] =
                  activated(conv.activation, sums[f][j]);
          }
        }
      }
      __syncthreads();  // between the reads of the ring and the next tile's copies
    }
  }
}

template <int kFilters>
std::int64_t any_bytes(const Conv2dProblem& conv, OutputTile tile) {
  const InputTile in = input_of(conv, tile);
  return kAnyStages *
         (InputTile::bytes(in.rows, in.columns) + 16 + InputTile::bytes(conv.R, conv.S) * kFilters);
}

/// A tile for kFilters, if any fits.
template <int kFilters>
std::optional<OutputTile> any_tile(const Conv2dProblem& conv) {
  return fitting_tile(conv, kLargestTile, kSmallestTile.rows, any_bytes<kFilters>);
}

// ---- Which kernel

using TileKernel = void (*)(Conv2dProblem, int, bool, const float*, const float*, const float*,
                            float*);

/// A kernel of conv2d_cp_async, and what a launch must know of its tile.
struct Choice {
  TileKernel kernel;
  int threads, columns, rows, filters, stride, stages;
  int (*places)(const Conv2dProblem&);
  std::int64_t (*shared_bytes)(const Conv2dProblem&);
};

template <class T>
Choice choice() {
  return {conv2d_cp_async<T>, T::kThreads, T::kColumns, T::kBlockRows,  T::kBlockFilters,
          T::kStride,         T::kStages,  T::places,   T::shared_bytes};
}

/// Stride 1: few filters and large tiles of pixels, or many filters of fewer pixels.
template <int kR, int kS>
Choice with_stride_1(int filters) {
  if (filters <= 3) return choice<Tile<kR, kS, 1, 3, 2, 32, 4, 1, 1, 3, 5>>();
  if (filters <= 6) return choice<Tile<kR, kS, 1, 6, 2, 16, 4, 1, 1, 4, 3>>();
  if (filters <= 16) return choice<Tile<kR, kS, 1, 8, 2, 16, 4, 1, 1, 3, 3>>();
  return choice<Tile<kR, kS, 1, 8, 2, 8, 1, 4, 1, 3, 3>>();
}

template <int kR, int kS>
Choice with_stride_2(int filters) {
  if (filters <= 16) return choice<Tile<kR, kS, 2, 8, 2, 8, 4, 1, 1, 2, 3>>();
  if (filters <= 32) return choice<Tile<kR, kS, 2, 8, 2, 8, 1, 4, 1, 2, 3>>();
  return choice<Tile<kR, kS, 2, 8, 2, 4, 1, 4, 1, 2, 3>>();
}

/// The kernel for the problem's filter; nothing where only conv2d_cp_async_any() takes it.
std::optional<Choice> choose(const Conv2dProblem& conv) {
  const int filters = conv.K / conv.groups;
  if (conv.dilation.h != 1 || conv.dilation.w != 1 || conv.stride.h != conv.stride.w) return {};
  if (conv.R == conv.S && conv.stride.h == 1) {
    if (conv.R == 3) return with_stride_1<3, 3>(filters);
    if (conv.R == 5) return with_stride_1<5, 5>(filters);
    if (conv.R == 6) return with_stride_1<6, 6>(filters);
    if (conv.R == 7) return with_stride_1<7, 7>(filters);
    if (conv.R == 11) return with_stride_1<11, 11>(filters);
  }
  if (conv.stride.h == 2) {
    if (conv.R == 3 && conv.S == 3) return with_stride_2<3, 3>(filters);
    if (conv.R == 5 && conv.S == 5) return with_stride_2<5, 5>(filters);
    if (conv.R == 7 && conv.S == 7) return with_stride_2<7, 7>(filters);
    if (conv.R == 5 && conv.S == 20) return with_stride_2<5, 20>(filters);
  }
  return {};
}

/// What a block of conv2d_cp_async_any() computes.
struct AnyChoice {
  int filters;
  OutputTile tile;
};

/// As many filters as there is room for; nothing where not even one fits.
std::optional<AnyChoice> choose_any(const Conv2dProblem& conv) {
  if (conv.K / conv.groups > 1) {
    if (const auto tile = any_tile<8>(conv)) return AnyChoice{8, *tile};
  }
  if (const auto tile = any_tile<1>(conv)) return AnyChoice{1, *tile};
  return {};
}

/// Whether all rows of x begin at multiples of 16 bytes, if x does.
bool rows_are_vectors(const Conv2dProblem& conv) { return conv.W % 4 == 0; }

/// Columns left of y at which the first tile begins: then its column of x is a multiple of 4, at or
/// before -pad.left.
int shift_of(const Conv2dProblem& conv, const Choice& choice) {
  return choice.stride == 1 ? (4 - conv.pad.left % 4) % 4 : 0;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (choose(conv) || any_tile<1>(conv)) return {};
  return text("two channels of a filter of ", conv.R, " x ", conv.S,
              ", with the inputs of an output, take more than ", kMaxSharedBytes,
              " bytes of shared memory");
}

OutputTile tile_of(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (const auto choice = choose(conv)) return {choice->rows, choice->columns};
  const auto any = choose_any(conv);
  return any ? any->tile : kSmallestTile;
}

void run(const Conv2dProblem& problem, const Arguments& arrays) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const float* x = arrays.in<float>("x");
  const float* weights = arrays.in<float>("weights");
  const float* bias = arrays.in_or_null<float>("bias");
  float* y = arrays.out<float>("y");
  const int group_k = conv.K / conv.groups;
  const auto tiles_of_filters = [&](int filters) {
    return std::int64_t{conv.N} * conv.groups * ceil_div(group_k, filters);
  };
  if (const auto choice = choose(conv)) {
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(x) % sizeof(float4) == 0 && rows_are_vectors(conv);
    const int shift = shift_of(conv, *choice);
    const dim3 grid(blocks_for(std::int64_t{conv.Q} + shift, choice->columns),
                    blocks_for(conv.P, choice->rows, kMaxGridYZ),
                    blocks_for(tiles_of_filters(choice->filters), 1, kMaxGridYZ));
    launch(choice->kernel,
           {grid, static_cast<unsigned>(choice->threads),
            static_cast<std::size_t>(choice->shared_bytes(conv))},
           conv, shift, aligned, x, weights, bias, y);
    return;
  }
  const auto [filters, tile] = choose_any(conv).value();
  const InputTile in = input_of(conv, tile);
  const int pixels = std::min(tile.rows * tile.columns, kAnyThreads);
  const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                  blocks_for(tiles_of_filters(filters), 1, kMaxGridYZ));
  launch(filters == 8 ? conv2d_cp_async_any<8> : conv2d_cp_async_any<1>,
         {grid, static_cast<unsigned>(ceil_div(pixels, 32) * 32),
          static_cast<std::size_t>(filters == 8 ? any_bytes<8>(conv, tile)
                                                : any_bytes<1>(conv, tile))},
         conv, tile, static_cast<int>(in.rows), static_cast<int>(in.columns), x, weights, bias, y);
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (const auto choice = choose(conv)) {
    return text(conv.R, " x ", conv.S, ", stride ", choice->stride, ", ", choice->filters,
                " filters a block",
                choice->places(conv) < choice->stages ? ", fewer channels than places" : "",
                choice->stride == 1 && rows_are_vectors(conv) ? ", rows of x in fours" : "",
                shift_of(conv, *choice) > 0 ? ", shifted" : "", idle_strides_in_words(problem));
  }
  return text("any filter, ", how_many(choose_any(conv).value().filters, "filter"), " a block",
              idle_strides_in_words(problem));
}

}  // namespace

Implementation<Conv2dProblem> direct_cp_async() {
  return {.supports = supports, .run = run, .tile = tile_of, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
