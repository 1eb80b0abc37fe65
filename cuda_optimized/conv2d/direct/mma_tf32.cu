/// @file mma_tf32.cu
/// @brief TF32 `mma.sync` for few channels: fragments are read directly from a staged patch of x.
///
/// - Before: deinterleaved.cu
/// - After: mma.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** With few channels, windows overlap, but hardly any of their elements are
/// contiguous: an implicit GEMM copies each value of x R * S / stride^2 times, 4 bytes at a time.
/// Here a block copies the patch of x for its tile of y once, with zeros for the padding. The
/// matrix of windows is never stored: a lane reads the elements of a fragment from the patch, at
/// the sum of two offsets:
///
///     patch, 3 channels       y: filters x pixels      += weights: filters x k   * x: k x pixels
///     + - - - - - - - - +
///     |  tap k          |     at[k][pixel] = taps[k] + base[pixel]
///     |  . . . .        |     taps[k]:     (c, r, s) in the patch, a table in shared memory
///     |  . . . .        |     base[pixel]: the first tap of its window, in a register
///     + - - - - - - - - +
///
/// A block keeps its weights and computes tile after tile, while the next patch is in flight.
///
/// **Expect.** B3 (32x3x224x224, 64 filters 7x7, stride 2): 3.8 million mma of 16 x 8 x 8, at 160
/// TFLOP/s 49 us; each 16 of them need 26 cycles of shared memory (8 loads of x, 4 of weights, one
/// of taps): 29 us; y's 103 MB take 26 us. Together, 60 to 70 us. B11 (16x1x161x700, 32 filters
/// 5x20, stride 2): 30 us.
/// @expect on --n 1 --c 3 --h 34 --w 66 --k 64 --r 3 --s 3 --dtype tf32
/// @expect loads_per_output.x 3 * 4 * 66 / (2 * 64 * 64) = 0.097, the patch of 2 x 64 pixels, once
/// @expect bytes_per_lane.y.store 16, four neighbours
/// @expect sectors_per_request.y.store 16
/// @expect launches 1, nothing is prepared
/// **Costs.** Filters come 16 at a time: with 3 or 6 (B2, B1) row_tile.cu is faster. Not supported:
/// fp32, NHWC, compute capability below 8.0, what is too large for shared memory.
/// **Try.** Give the patch the pitch of a plain array. How many cycles does the load of x then take
/// for taps in one row, and in two?
#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/direct_mma/accumulators.cuh"
#include "cuda_optimized/conv2d/shared/direct_mma/halo_copy.cuh"
#include "cuda_optimized/conv2d/shared/direct_mma/tiling.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

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
    // A group's fragments have the pixels 0 1 4 5 8 ... and 2 3 6 7 10 ...: then a lane's
    // accumulators of both are four neighbours.
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

/// Grid (blocks that share the tiles, tiles of filters of all groups). Block (tiling.warps * 32).
/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
template <class S>
__global__ void __launch_bounds__(S::kWarps * 32, kBlocksPerSm)
    conv2d_direct_mma_tf32(Conv2dProblem conv, Tiling tiling, int tiles, const float* x,
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

/// Whether all rows of x, or of y, are aligned to 16 bytes, if the first one is.
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
  if (const Declined why = why_not("sm_80")) return why;
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
  // Of the weights of 16 filters and the inputs of 16 pixels, twice.
  return shared_need_in_words(bytes, most, compute_capability());
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  const float* x = arrays.x;
  float* y = arrays.y;
  const Tiling tiling =
      tiling_of(conv, rows_of_x_in_fours(conv) && reinterpret_cast<std::uintptr_t>(x) % 16 == 0,
                rows_of_y_in_fours(conv) && reinterpret_cast<std::uintptr_t>(y) % 16 == 0);
  const int tiles = conv.N * tiling.tiles_down * tiling.tiles_across;
  const std::int64_t parts =
      std::int64_t{conv.groups} * ceil_div(tiling.filters, 16 * tiling.filter_tiles);
  const unsigned grid_y = blocks_for(parts, 1, kMaxGridYZ);
  const int slots = kBlocksPerSm * multiprocessors();
  const unsigned grid_x = blocks_for(tiles, 1, ceil_div<std::int64_t>(slots, grid_y));
  launch(
      tiling.filter_tiles == FourFilterTiles::kFilterTiles ? conv2d_direct_mma_tf32<FourFilterTiles>
      : tiling.filter_tiles == TwoFilterTiles::kFilterTiles ? conv2d_direct_mma_tf32<TwoFilterTiles>
                                                            : conv2d_direct_mma_tf32<OneFilterTile>,
      {dim3(grid_x, grid_y), static_cast<unsigned>(tiling.warps * 32),
       static_cast<std::size_t>(tiling.floats()) * sizeof(float)},
      conv, tiling, tiles, x, arrays.weights, arrays.bias, y);
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

extern const Implementation<Conv2dArrays> direct_mma_tf32 = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
