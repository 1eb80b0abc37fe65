/// @file row_tile.cu
/// @brief Row tile: a thread computes four adjacent pixels in each of two rows, and reads its
/// window as vectors.
///
/// - Before: cp_async.cu
/// - After: deinterleaved.cu, register_window.cu, winograd/split_rows.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** The registers that `cp.async` freed hold more accumulators: 4 adjacent pixels in 2
/// rows, for up to 8 filters. A row of their window is contiguous, so it is read as float4, by 8
/// threads from all 32 banks at once. All sizes are known at compile time, so the next pixel row
/// reuses window rows from registers:
///
///     window of a thread, 3 x 3:        v v v v | v v . .   filter row r: load window row r + 1,
///     two vectors, for 4 pixels a row   v v v v | v v . .   multiply, move it up
///
/// The outputs of a thread are adjacent, but those of adjacent threads are not. So a warp passes
/// its accumulators through shared memory and then stores 32 adjacent floats (RowStores in
/// shared/direct/row_tile.cuh).
///
/// **Expect.** B1 (1x6x768x512, 6 filters 6x6): 21 loads of x and at least 54 of weights from
/// shared memory for 1728 multiply-adds per channel; 384 blocks, three per SM, one wave. At 67
/// TFLOP/s its arithmetic takes 15 us; B2's 110 MB take 28 us at 4 TB/s.
/// @expect loads_per_output.shared 4 * (6 * 2 + 5 * 5 * 2) / 64 + 1 = 4.875, vectors; and sums
/// @expect lanes_per_output.shared.store 1, a warp passes its sums on
/// @expect sectors_per_request.y.store 4, 32 neighbours
/// @expect excess.shared.load 0
/// **Costs.** With many channels and filters x is read K / 32 times, and implicit_gemm/cp_async.cu
/// is faster. Compiled are 3 x 3 to 11 x 11 with stride 1; all else runs cp_async.cu and tiled.cu.
/// Not supported: NHWC, other types, what those do not support.
/// **Try.** Let each thread have 8 pixels of one row instead of 4 of two. Which banks do threads 0
/// to 7 read then, and how many wavefronts does a profiler report?
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

/// Few filters and large tiles of pixels, or many filters of fewer pixels.
constexpr RowTile kUpTo3{
    .filters = 3, .lanes_x = 32, .warps_y = 4, .warps_f = 1, .stages = 3, .min_blocks = 5};
constexpr RowTile kUpTo6{
    .filters = 6, .lanes_x = 16, .warps_y = 4, .warps_f = 1, .stages = 4, .min_blocks = 3};
constexpr RowTile kUpTo16{
    .filters = 8, .lanes_x = 16, .warps_y = 4, .warps_f = 1, .stages = 3, .min_blocks = 3};
constexpr RowTile kMore{
    .filters = 8, .lanes_x = 8, .warps_y = 1, .warps_f = 4, .stages = 3, .min_blocks = 3};

/// What a block computes, and how its inputs lie in shared memory.
template <int kR, int kS, RowTile kTile>
struct Tile : RowTileSizes<kR, kS, kTile> {
  using Sizes = RowTileSizes<kR, kS, kTile>;
  static constexpr int kInRows = Sizes::kBlockRows - 1 + kR;
  static constexpr int kInColumns = Sizes::kColumns - 1 + kS;
  static constexpr int kVectors = (kRowPixels + kS - 1 + 3) / 4;  ///< Of a window's row.
  static constexpr int kPitch = Sizes::kColumns - kRowPixels + 4 * kVectors;
  static constexpr int kInFloats = kInRows * kPitch;
  static constexpr int kStageFloats = kInFloats + Sizes::kWarpsF * Sizes::kWeightFloats;
};

/// Adds one channel's products to the accumulators. `window` is the thread's place in the tile;
/// `weights` are [r][s][T::kPadded].
template <class T>
__device__ void multiply(const float* window, const float* weights,
                         float (&sums)[T::kFilters][kRows][kRowPixels]) {
  constexpr int kWidth = 4 * T::kVectors;
  float values[kRows][kWidth];
  const auto load_row = [&](int j, int row) { load_vectors(window + row * T::kPitch, values[j]); };
#pragma unroll
  for (int j = 0; j < kRows - 1; ++j) load_row(j, j);
#pragma unroll 2  // so that the window's rows change places for free
  for (int r = 0; r < T::R; ++r) {
    load_row(kRows - 1, kRows - 1 + r);
#pragma unroll
    for (int s = 0; s < T::S; ++s) {
      float weight[T::kPadded];
      load_vectors(weights + (r * T::S + s) * T::kPadded, weight);
#pragma unroll
      for (int f = 0; f < T::kFilters; ++f) {
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int e = 0; e < kRowPixels; ++e) sums[f][j][e] += values[j][e + s] * weight[f];
        }
      }
    }
    // Each row of the window moves up to the next pixel row.
#pragma unroll
    for (int j = 0; j < kRows - 1; ++j) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[j][i] = values[j + 1][i];
    }
  }
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q]. Grid (tiles along
/// q, <= tiles along p, <= N * tiles of filters), block T::kThreads.
/// @param shift columns left of y at which the first tile begins, so that its inputs are aligned
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kMinBlocks)
    conv2d_direct_row_tile(Conv2dProblem conv, int shift, bool aligned, const float* x,
                           const float* weights, const float* bias, float* y) {
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

  const int q0 = static_cast<int>(blockIdx.x) * tile_q - shift;
  const int w0 = q0 - conv.pad.left;
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
      const int p0 = static_cast<int>(row), h0 = p0 - conv.pad.top;
      // Begins to copy channel c, and closes the group of copies, also an empty one: the waits
      // count groups.
      const auto load = [&](int c) {
        if (c < group_c) {
          float* stage = stages + c % kStages * stage_floats;
          load_tile<T>(conv, tile_x + c * channel_size, h0, w0, aligned, stage);
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
        multiply<T>(stage + ty * T::kPitch + tx, stage + tile_floats + warp_f * T::kWeightFloats,
                    sums);
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
  void (*kernel)(Conv2dProblem, int, bool, const float*, const float*, const float*, float*);
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
  return {T::kBlockFilters, conv2d_direct_row_tile<T>, {T::kBlockRows, T::kColumns}, floats * 4,
          T::kThreads,      stages == T::kStages};
}

template <int kR, int kS>
Choice with_filter(const Conv2dProblem& conv) {
  const int filters = conv.K / conv.groups;
  if (filters <= 3) return kernel_with<kR, kS, kUpTo3>(conv);
  if (filters <= 6) return kernel_with<kR, kS, kUpTo6>(conv);
  if (filters <= 16) return kernel_with<kR, kS, kUpTo16>(conv);
  return kernel_with<kR, kS, kMore>(conv);
}

/// The kernel for the problem's filter; nothing where none is compiled in.
std::optional<Choice> choose(const Conv2dProblem& conv) {
  if (conv.stride.h != 1 || conv.stride.w != 1) return {};
  if (conv.dilation.h != 1 || conv.dilation.w != 1 || conv.R != conv.S) return {};
  switch (conv.R) {
    case 3: return with_filter<3, 3>(conv);
    case 5: return with_filter<5, 5>(conv);
    case 6: return with_filter<6, 6>(conv);
    case 7: return with_filter<7, 7>(conv);
    case 11: return with_filter<11, 11>(conv);
    default: return {};
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (choose(without_idle_strides(conv))) return {};
  return any_filter(conv).supports(conv);
}

OutputTile tile_of(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  const auto choice = choose(conv);
  return choice ? choice->tile : any_filter(conv).tile(problem);
}

/// Whether all rows of x are aligned to 16 bytes, if x is.
bool rows_are_vectors(const Conv2dProblem& conv) { return conv.W % 4 == 0; }

/// Columns left of y at which the first tile begins: then its column of x is a multiple of 4, at or
/// before -pad.left.
int shift_of(const Conv2dProblem& conv) { return (4 - conv.pad.left % 4) % 4; }

void run(const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context& context) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (!choose(conv)) return any_filter(conv).run(problem, arrays, context);
  const Choice choice = choose(conv).value();
  const OutputTile tile = choice.tile;
  const float* x = arrays.x;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(x) % sizeof(float4) == 0 && rows_are_vectors(conv);
  const int shift = shift_of(conv);
  const dim3 block(static_cast<unsigned>(choice.threads));
  const int filter_tiles = conv.groups * ceil_div(conv.K / conv.groups, choice.filters);
  const dim3 grid(blocks_for(std::int64_t{conv.Q} + shift, tile.columns),
                  blocks_for(conv.P, tile.rows, kMaxGridYZ),
                  blocks_for(std::int64_t{conv.N} * filter_tiles, 1, kMaxGridYZ));
  launch(choice.kernel, {grid, block, static_cast<std::size_t>(choice.bytes)}, conv, shift, aligned,
         x, arrays.weights, arrays.bias, arrays.y);
}

std::string choice_in_words(const Conv2dProblem& problem) {
  const Conv2dProblem conv = without_idle_strides(problem);
  if (!choose(conv)) return any_filter(conv).choice(problem);
  const Choice choice = choose(conv).value();
  return text(conv.R, " x ", conv.S, ", stride 1, ", choice.filters, " filters a block",
              choice.all_stages ? "" : ", fewer channels than places",
              rows_are_vectors(conv) ? ", rows of x in fours" : "",
              shift_of(conv) > 0 ? ", shifted" : "", idle_strides_in_words(problem));
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_row_tile = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
