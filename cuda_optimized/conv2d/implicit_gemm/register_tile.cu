/// @file register_tile.cu
/// @brief Register tile: each thread holds 8 x 8 accumulators, so that a gathered element is used
/// 128 times.
///
/// - Before: tiled.cu
/// - After: precomputed_offsets.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** Eight weights and eight elements of x make 64 products. A thread with 8 x 8
/// accumulators loads one value for four multiply-adds, where tiled.cu loads one for two. A block
/// of 256 threads computes 128 filters x 128 pixels, 8 steps of k at a time.
///
///                            x: 8 values of a row
///                            [ . . . . ]  [ . . . . ]
///       weights: 8 values    + - - - - +  + - - - - +
///       of a column     [.]  | . . . . |  | . . . . |   one step of k: 64 multiply-adds for 16
///                       [.]  | . . . . |  | . . . . |   values. Four neighbours are one load; the
///                       ...  + - - - - +  + - - - - +   fours of a thread are 64 apart, so that
///                       [.]  | . . . . |  | . . . . |   those of a warp lie in different banks
///
/// **Expect.** Decoding is the limit: a thread gathers 4 elements per step with four divisions
/// each, 440 instructions. In total there are 1050 for 512 multiply-adds, 32 TFLOP/s at best on an
/// H200. The divisions are dependent instructions; if 70 % of the issue slots are used, 22 TFLOP/s:
/// 11 ms for B10 (64x512x28x28, 512 filters 3x3). B4, with 64 filters, decodes twice as much for
/// each.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.shared 16 * 3 * 3 * (4 + 4) / (4 * 4) = 72, in a small tile 4 x 4
/// @expect loads_per_output.x 16 * 46 * 46 / (16 * 16) / 32 = 4.133, 32 filters; 46 of 48 taps
/// @expect barriers_per_block 2 * 144 / 8 = 36, two a step of 8
/// @expect excess.shared.load 0
/// **Costs.** 64 registers for accumulators. Tiles are 64 x 128 where half of a large tile would be
/// empty or large tiles are few, and 32 x 32 for small problems; those decode more per
/// multiply-add. B7 (32x512x7x7) has only 104 tiles of 64 x 128. Not supported: as in tiled.cu.
/// **Try.** Exchange the loops over i and e around the multiply-adds. Does the compiler care?
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTileK = 8;  ///< Steps of k a tile.

/// The sums of a block, kTileM filters x kTileN pixels, and of a thread.
template <int kTileM_, int kTileN_, int kThread_, int kBlocks_>
struct Tiles {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_;
  static constexpr int kThread = kThread_;  ///< kThread filters x kThread pixels
  static constexpr int kThreadsN = kTileN / kThread;
  static constexpr int kThreads = kTileM / kThread * kThreadsN;
  static constexpr int kBlocks = kBlocks_;                    ///< Blocks that an SM must hold.
  static constexpr int kLoadsM = kTileM * kTileK / kThreads;  ///< Loads of a thread for a tile.
  static constexpr int kLoadsN = kTileN * kTileK / kThreads;
  static_assert(kTileM * kTileK % kThreads == 0 && kTileN * kTileK % kThreads == 0);

  /// The i-th of a thread's filters, or pixels, counted from its first one: pieces of four, as far
  /// apart as all threads' pieces are wide.
  HOST_DEVICE static constexpr int at(int i, int tile) {
    return i / 4 * (tile * 4 / kThread) + i % 4;
  }
};
using Large = Tiles<128, 128, 8, 2>;
using Half = Tiles<64, 128, 8, 3>;
using Small = Tiles<32, 32, 4, 8>;

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid: a block for each tile, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_register_tile(Conv2dProblem conv, const float* x, const float* weights,
                                       const float* bias, float* y) {
  // The weights are transposed, so that m is contiguous. A warp fills four columns of eight rows:
  // with four floats between the rows, these are 32 banks.
  __shared__ __align__(16) float w_tile[kTileK][T::kTileM + 4];  // [k][m]
  __shared__ __align__(16) float x_tile[kTileK][T::kTileN];      // [k][j]

  const ProductSizes sizes(conv);
  const int group_c = conv.C / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const auto block = TileOfBlock::find<T>(sizes);
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_m = thread / T::kThreadsN * 4, thread_j = thread % T::kThreadsN * 4;

  const int first_filter = block.group * sizes.filters + block.filter;
  const int filters = sizes.filters - block.filter;  // of the group, from that one on
  // The thread's first weight of a tile; its others lie kThreads / kTileK filters apart.
  const int w_m = thread / kTileK, w_k = thread % kTileK;
  const std::int64_t w_at = (std::int64_t{first_filter} + w_m) * sizes.depth + w_k;
  float sums[T::kThread][T::kThread] = {};
  for (int k0 = 0; k0 < sizes.depth; k0 += kTileK) {
    // All loads, then all stores: a store waits for its load, and would stall the loads after it.
    // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
    float w_loaded[T::kLoadsM], x_loaded[T::kLoadsN];
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      constexpr int kApart = T::kThreads / kTileK;
      w_loaded[e] = w_m + e * kApart < filters && k0 + w_k < sizes.depth
                        ? weights[w_at + std::int64_t{e * kApart} * sizes.depth + k0]
                        : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const int i = thread + e * T::kThreads;
      const int j = block.pixel + i % T::kTileN;
      const int k = k0 + i / T::kTileN;
      x_loaded[e] = 0.0f;
      const Divided row = divided(k, conv.S), channel = divided(row.quotient, conv.R);
      if (k < sizes.depth && j < sizes.pixels) {
        const Divided image = divided(j, sizes.image_pixels);
        const Divided pixel = divided(image.remainder, conv.Q);
        const int c = channel.quotient, r = channel.remainder, s = row.remainder;
        const int n = image.quotient, p = pixel.quotient, q = pixel.remainder;
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
        if (h >= 0 && h < conv.H && w >= 0 && w < conv.W) {
          x_loaded[e] = x[x_at(n, block.group * group_c + c, h, w)];
        }
      }
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      const int i = thread + e * T::kThreads;
      w_tile[i % kTileK][i / kTileK] = w_loaded[e];
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const int i = thread + e * T::kThreads;
      x_tile[i / T::kTileN][i % T::kTileN] = x_loaded[e];
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int k = 0; k < kTileK; ++k) {
      float w_values[T::kThread], x_values[T::kThread];
#pragma unroll
      for (int i = 0; i < T::kThread; ++i) {
        w_values[i] = w_tile[k][thread_m + T::at(i, T::kTileM)];
        x_values[i] = x_tile[k][thread_j + T::at(i, T::kTileN)];
      }
#pragma unroll
      for (int i = 0; i < T::kThread; ++i) {
#pragma unroll
        for (int e = 0; e < T::kThread; ++e) sums[i][e] += w_values[i] * x_values[e];
      }
    }
    __syncthreads();  // separates these loads from the next step's stores
  }
#pragma unroll
  for (int e = 0; e < T::kThread; ++e) {
    const int j = block.pixel + thread_j + T::at(e, T::kTileN);
    if (j >= sizes.pixels) break;
    const Divided image = divided(j, sizes.image_pixels);
#pragma unroll
    for (int i = 0; i < T::kThread; ++i) {
      const int m = thread_m + T::at(i, T::kTileM);
      if (m >= filters) break;
      const int filter = first_filter + m;
      y[(std::int64_t{image.quotient} * conv.K + filter) * sizes.image_pixels + image.remainder] =
          activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i][e]);
    }
  }
}

/// Launches the kernel with these tiles.
template <class T>
void launch_with(const Conv2dProblem& conv, const Conv2dArrays& arrays) {
  launch(conv2d_implicit_gemm_register_tile<T>, {TileOfBlock::grid<T>(conv), dim3(T::kThreads)},
         conv, arrays.x, arrays.weights, arrays.bias, arrays.y);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  switch (shape_for(conv)) {
    case TileShape::large: return launch_with<Large>(conv, arrays);
    case TileShape::half: return launch_with<Half>(conv, arrays);
    case TileShape::small: return launch_with<Small>(conv, arrays);
  }
}

std::string choice_in_words(const Conv2dProblem& conv) { return in_words(shape_for(conv)); }

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_register_tile = {
    .supports = why_no_product_row_by_row,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
