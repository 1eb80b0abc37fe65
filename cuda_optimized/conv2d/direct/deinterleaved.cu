/// @file deinterleaved.cu
/// @brief Deinterleaved columns: with a stride, a row's even columns are stored before its odd
/// ones, so that taps read vectors.
///
/// - Before: row_tile.cu
/// - After: mma_tf32.cu, depthwise/nchw.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** With stride 2, four adjacent pixels read the columns 0 2 4 6 for one tap and 1 3 5
/// 7 for the next: no vector, and adjacent threads have bank conflicts. So the copies (each
/// `cp.async` has its own destination) sort the columns into a plane of even ones and a plane of
/// odd ones, and a tap reads one plane without gaps:
///
///     row of x     0 1 2 3 4 5 6 7          four pixels, 3 taps, stride 2:
///     in shared    0 2 4 6 | 1 3 5 7        tap 0: 0 2 4 6    tap 1: 1 3 5 7    tap 2: 2 4 6 8
///
/// A window is then read as vectors again, and the loop is that of direct/row_tile with a second
/// plane. (In signal processing the planes are the *phases* of a signal.)
///
/// **Expect.** At 67 TFLOP/s the arithmetic of B11 (16x1x161x700, 32 filters 5x20, stride 2) takes
/// 41 us, that of B3 (32x3x224x224, 64 filters 7x7, stride 2) 113 us.
/// @expect on --n 1 --c 4 --h 67 --w 132 --k 8 --r 5 --s 5 --stride 2
/// @expect loads_per_output.shared 4 * (2 * 5 * 4 + 5 * 5 * 2) / 64 + 1 = 6.625, 2 vectors a plane
/// @expect excess.shared.load 0, also with a stride
/// @expect bytes_per_lane.x.async 4, sorting takes single floats
/// **Costs.** Sorted columns are copied as single floats. The next pixel row does not reuse window
/// rows from registers. Compiled are 3 x 3, 5 x 5, 7 x 7 and 5 x 20 with stride 2; all else runs
/// row_tile.cu, which also has stride 1.
/// **Try.** Copy the columns in their order, and let multiply() pick every second one of two
/// vectors. How many floats does a thread load then for each that it uses?
#include <algorithm>
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct/direct_plan.cuh"
#include "cuda_optimized/conv2d/shared/direct/register_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct/row_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kStride = 2;  ///< Of the filter, along both axes.

/// Few filters and large tiles of pixels, or many filters of fewer pixels.
constexpr RowTile kUpTo16{
    .filters = 8, .lanes_x = 8, .warps_y = 4, .warps_f = 1, .stages = 2, .min_blocks = 3};
constexpr RowTile kUpTo32{
    .filters = 8, .lanes_x = 8, .warps_y = 1, .warps_f = 4, .stages = 2, .min_blocks = 3};
constexpr RowTile kMore{
    .filters = 8, .lanes_x = 4, .warps_y = 1, .warps_f = 4, .stages = 2, .min_blocks = 3};

/// What a block computes, and how its inputs lie in shared memory. Column u of the tile stands in
/// plane u % kStride of its row, at u / kStride.
template <int kR, int kS, RowTile kTile>
struct Tile : RowTileSizes<kR, kS, kTile> {
  using Sizes = RowTileSizes<kR, kS, kTile>;
  static constexpr int kInRows = (Sizes::kBlockRows - 1) * kStride + kR;
  static constexpr int kInColumns = (Sizes::kColumns - 1) * kStride + kS;
  static constexpr int kVectors = (kRowPixels + (kS - 1) / kStride + 3) / 4;  ///< Of a window's row
  static constexpr int kPlane = Sizes::kColumns - kRowPixels + 4 * kVectors;
  /// Where 8 threads that load together lie in two rows, these are half of the banks apart.
  static constexpr int pitch() {
    int floats = kStride * kPlane;
    if (Sizes::kLanesX < 8) {
      while (kRows * kStride * floats % 32 != 16) floats += 4;
    }
    return floats;
  }
  static constexpr int kPitch = pitch();
  static constexpr int kInFloats = kInRows * kPitch;
  static constexpr int kStageFloats = kInFloats + Sizes::kWarpsF * Sizes::kWeightFloats;
};

/// Starts to copy the rows h0 ... and columns w0 ... of a channel into the tile, with zeros in the
/// padding.
template <class T>
__device__ void load_tile(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                          float* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (int u0 = 0; u0 < T::kInColumns; u0 += 32) {
    const int u = u0 + lane, w = w0 + u;
    const bool column_inside = static_cast<unsigned>(w) < static_cast<unsigned>(conv.W);
    std::int64_t offset = std::int64_t{h0 + warp} * conv.W + w;
    float* place = tile + warp * T::kPitch + u % kStride * T::kPlane + u / kStride;
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

/// Adds one channel's products to the accumulators. `window` is the thread's place in the tile;
/// `weights` are [r][s][T::kPadded].
template <class T>
__device__ void multiply(const float* window, const float* weights,
                         float (&sums)[T::kFilters][kRows][kRowPixels]) {
  constexpr int kWidth = 4 * T::kVectors;
  float values[kRows][kStride][kWidth];
  const auto load_row = [&](int j, int row) {
#pragma unroll
    for (int plane = 0; plane < kStride; ++plane) {
      load_vectors(window + row * T::kPitch + plane * T::kPlane, values[j][plane]);
    }
  };
#pragma unroll 1
  for (int r = 0; r < T::R; ++r) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) load_row(j, j * kStride + r);
#pragma unroll
    for (int s = 0; s < T::S; ++s) {
      float weight[T::kPadded];
      load_vectors(weights + (r * T::S + s) * T::kPadded, weight);
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kRowPixels; ++e) {
            sums[f][j][e] += values[j][s % kStride][e + s / kStride] * weight[f];
          }
        }
      }
    }
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Grid (tiles along
/// q, <= tiles along p, <= N * tiles of filters), block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kMinBlocks)
    conv2d_direct_deinterleaved(Conv2dProblem conv, const float* x, const float* weights,
                                const float* bias, float* y) {
  constexpr int kFilters = T::kBlockFilters, kStages = T::kStages;
  const int taps = T::R * T::S, tile_floats = T::kInFloats, stage_floats = T::kStageFloats;
  const int tile_p = T::kBlockRows, tile_q = T::kColumns;
  float* pass = dynamic_shared<float>();  // [warps][kRows][kRowPixels][kPassPitch], then
  float* stages = pass + T::kPassFloats;  // [kStages][inputs, weights]
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_f = warp / T::kWarpsY;
  const int tx = lane % T::kLanesX * kRowPixels;
  const int ty = (warp % T::kWarpsY * T::kLanesY + lane / T::kLanesX) * kRows;
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const int group_tiles = ceil_div(group_k, kFilters), filter_tiles = conv.groups * group_tiles;
  const std::int64_t channel_size = std::int64_t{conv.H} * conv.W;
  const std::int64_t filter_size = std::int64_t{group_c} * taps;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  pass += warp * (kRows * kRowPixels * kPassPitch);

  const int q0 = static_cast<int>(blockIdx.x) * tile_q;
  const int w0 = q0 * kStride - conv.pad.left;
  for (std::int64_t z = blockIdx.z; z < std::int64_t{conv.N} * filter_tiles; z += gridDim.z) {
    const int n = static_cast<int>(z / filter_tiles);
    const int filter_tile = static_cast<int>(z % filter_tiles);
    const int group = filter_tile / group_tiles, c0 = group * group_c;
    const int k0 = group * group_k + filter_tile % group_tiles * kFilters;
    const int filters = min(kFilters, (group + 1) * group_k - k0);  // of the block
    const float* tile_x = x + (std::int64_t{n} * conv.C + c0) * channel_size;
    const float* tile_weights = weights + k0 * filter_size;

    for (std::int64_t row = std::int64_t{blockIdx.y} * tile_p; row < conv.P;
         row += std::int64_t{gridDim.y} * tile_p) {
      const int p0 = static_cast<int>(row), h0 = p0 * kStride - conv.pad.top;
      // Begins to copy channel c, and closes the group of copies, also an empty one: the waits
      // count groups.
      const auto load = [&](int c) {
        if (c < group_c) {
          float* stage = stages + c % kStages * stage_floats;
          load_tile<T>(conv, tile_x + c * channel_size, h0, w0, stage);
          load_filters<T>(tile_weights + std::int64_t{c} * taps, filter_size, filters,
                          stage + tile_floats);
        }
        ptx::cp_async_commit_group();
      };
#pragma unroll 1
      for (int c = 0; c < kStages - 1; ++c) load(c);
      float sums[T::kFilters][kRows][kRowPixels];
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
        const int k = warp_f * T::kFilters + f;
        const float start = bias && k < filters ? bias[k0 + k] : 0.0f;
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kRowPixels; ++e) sums[f][j][e] = start;
        }
      }
#pragma unroll 1
      for (int c = 0; c < group_c; ++c) {
        // This thread's copies of the channel have landed: only later groups are still in flight.
        ptx::cp_async_wait_group<kStages - 2>();
        // The one barrier: between the copies, of all threads, and the reads below; and between the
        // reads of the channel before and the copies that go to its place now.
        __syncthreads();
        load(c + kStages - 1);
        const float* stage = stages + c % kStages * stage_floats;
        multiply<T>(stage + ty * (kStride * T::kPitch) + tx,
                    stage + tile_floats + warp_f * T::kWeightFloats, sums);
      }
      float* to = y + (std::int64_t{n} * conv.K + k0 + warp_f * T::kFilters) * y_plane;
      const RowStores<T> stores(conv, p0, q0);
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
        __syncwarp();  // between the reads of the filter before and these writes
        stores.pass_on(conv, sums[f], pass);
        __syncwarp();  // between these writes and the reads below
        if (warp_f * T::kFilters + f < filters) stores.store(pass, to + f * y_plane);
      }
      __syncthreads();  // between the reads of the stages and the next tile's copies
    }
  }
}

/// A kernel, the output channels of its blocks, its tile and what it takes of shared memory.
struct Choice {
  int filters;
  void (*kernel)(Conv2dProblem, const float*, const float*, const float*, float*);
  OutputTile tile;
  std::int64_t bytes;
  int threads;
  bool all_stages;  ///< There are as many channels.
};

template <int kR, int kS, RowTile kTile>
Choice kernel_with(const Conv2dProblem& conv) {
  using T = Tile<kR, kS, kTile>;
  const int stages = std::min(conv.C / conv.groups, T::kStages);
  const std::int64_t floats = T::kPassFloats + stages * T::kStageFloats;
  return {T::kBlockFilters,
          conv2d_direct_deinterleaved<T>,
          {T::kBlockRows, T::kColumns},
          floats * 4,
          T::kThreads,
          stages == T::kStages};
}

template <int kR, int kS>
Choice with_filter(const Conv2dProblem& conv) {
  const int filters = conv.K / conv.groups;
  if (filters <= 16) return kernel_with<kR, kS, kUpTo16>(conv);
  if (filters <= 32) return kernel_with<kR, kS, kUpTo32>(conv);
  return kernel_with<kR, kS, kMore>(conv);
}

/// The kernel for the problem's filter; nothing where none is compiled in.
std::optional<Choice> choose(const Conv2dProblem& conv) {
  if (conv.stride.h != kStride || conv.stride.w != kStride) return {};
  if (conv.dilation.h != 1 || conv.dilation.w != 1) return {};
  if (conv.R == 3 && conv.S == 3) return with_filter<3, 3>(conv);
  if (conv.R == 5 && conv.S == 5) return with_filter<5, 5>(conv);
  if (conv.R == 7 && conv.S == 7) return with_filter<7, 7>(conv);
  if (conv.R == 5 && conv.S == 20) return with_filter<5, 20>(conv);
  return {};
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (choose(without_idle_strides(conv))) return {};
  return direct_row_tile.supports(conv);
}

OutputTile tile_of(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const auto choice = choose(conv);
  return choice ? choice->tile : direct_row_tile.tile(problem);
}

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context& context) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (!choose(conv)) return direct_row_tile.run(problem, arrays, context);
  const Choice choice = choose(conv).value();
  const OutputTile tile = choice.tile;
  const dim3 block(static_cast<unsigned>(choice.threads));
  const int filter_tiles = conv.groups * ceil_div(conv.K / conv.groups, choice.filters);
  const dim3 grid(blocks_for(conv.Q, tile.columns), blocks_for(conv.P, tile.rows, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * filter_tiles, 1, kMaxGridYZ));
  launch(choice.kernel, {grid, block, static_cast<std::size_t>(choice.bytes)}, conv, arrays.x,
         arrays.weights, arrays.bias, arrays.y);
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (!choose(conv)) return direct_row_tile.choice(problem);
  const Choice choice = choose(conv).value();
  return text(conv.R, " x ", conv.S, ", stride 2, ", choice.filters, " filters a block",
              choice.all_stages ? "" : ", fewer channels than places",
              idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_deinterleaved = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
