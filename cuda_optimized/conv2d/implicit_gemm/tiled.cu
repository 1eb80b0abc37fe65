/// @file tiled.cu
/// @brief Shared-memory tiles: a block stages tiles of weights and of gathered columns.
///
/// - Before: cuda_naive/conv2d/implicit_gemm.cu
/// - After: register_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A block computes 32 filters x 32 pixels. Each weight is used for 32 pixels, and
/// each gathered element of x by 32 filters. So both are staged in shared memory, 32 steps of k at
/// a time, and an index is decoded once for 32 multiply-adds. The columns that im2col would write
/// to memory exist one tile at a time:
///
///     y tile 32 x 32 += weights [32][k..k+32] * x [k..k+32][32]     x: gathered, the windows of 32
///     pixels 256 threads: four loads of each tile, and four accumulators of a column, 8 rows apart
///
/// **Expect.** Decoding is most of the work: an element of x takes 140 instructions with four
/// divisions, more than 4 for each of the 32 multiply-adds that use it. With the loads from shared
/// memory (one for two multiply-adds, as the compiler loads four steps of w_tile at once) and the
/// copies there are 6.5 instructions per multiply-add. That leaves 10 of the 65 TFLOP/s of an H200;
/// with four fifths of the issue slots used, 8 TFLOP/s: 30 ms for B10 (64x512x28x28, 512 filters
/// 3x3), 0.93 ms for B4 (32x64x56x56, 64 filters 3x3).
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.weights 16 * 3 * 3 / 32 = 4.5, for 32 pixels each
/// @expect loads_per_output.x 16 * 46 * 46 / (16 * 16) / 32 = 4.133, 32 filters; 46 of 48 taps
/// @expect loads_per_output.shared 5 * 32 * (4 + 1) / 4 = 200, 5 values for 4 accumulators, as
/// @expect barriers_per_block 2 * 5 = 10, two a step of 32
/// **Costs.** Two barriers per step, and 8 KB of shared memory. Edges are computed as whole tiles.
/// Not supported: layouts other than NCHW, types other than float32, maps other than row_major, and
/// GEMMs whose sizes do not fit 31 bits.
/// **Try.** Let adjacent threads have adjacent thread_m instead of thread_j. Which loads and stores
/// suffer, and which bank conflicts arise?
#include "core/conv2d_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTileK = 32;  ///< Steps of k a tile.

/// The sums of a block, kTileM filters x kTileN pixels, and of a thread.
struct Tiles {
  static constexpr int kTileM = 32, kTileN = 32;
  static constexpr int kThread = 4;  ///< kThread filters, for one pixel
  static constexpr int kThreadsN = kTileN;
  static constexpr int kThreads = kTileM / kThread * kThreadsN;
  static constexpr int kLoadsM = kTileM * kTileK / kThreads;  ///< Loads of a thread for a tile.
  static constexpr int kLoadsN = kTileN * kTileK / kThreads;
  static_assert(kTileM * kTileK % kThreads == 0 && kTileN * kTileK % kThreads == 0);

  /// The i-th of a thread's filters, counted from its first one.
  HOST_DEVICE static constexpr int at(int i) { return i * (kTileM / kThread); }
};

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid: a block for each tile, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads)
    conv2d_implicit_gemm_tiled(Conv2dProblem conv, const float* x, const float* weights,
                               const float* bias, float* y) {
  __shared__ float w_tile[T::kTileM][kTileK];  // [m][k]
  __shared__ float x_tile[kTileK][T::kTileN];  // [k][j]

  const ProductSizes sizes(conv);
  const int group_c = conv.C / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const auto block = TileOfBlock::find<T>(sizes);
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_m = thread / T::kThreadsN, thread_j = thread % T::kThreadsN;

  const int first_filter = block.group * sizes.filters + block.filter;
  const int filters = sizes.filters - block.filter;  // of the group, from that one on
  // The thread's first weight of a tile; its others lie kThreads / kTileK filters apart.
  const int w_m = thread / kTileK, w_k = thread % kTileK;
  const std::int64_t w_at = (std::int64_t{first_filter} + w_m) * sizes.depth + w_k;
  float sums[T::kThread] = {};
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
      if (k < sizes.depth && j < sizes.pixels) {
        const Divided row = divided(k, conv.S), channel = divided(row.quotient, conv.R);
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
      w_tile[i / kTileK][i % kTileK] = w_loaded[e];
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const int i = thread + e * T::kThreads;
      x_tile[i / T::kTileN][i % T::kTileN] = x_loaded[e];
    }
    __syncthreads();  // separates these stores from the loads below
    for (int k = 0; k < kTileK; ++k) {
      const float x_value = x_tile[k][thread_j];
      for (int i = 0; i < T::kThread; ++i) sums[i] += w_tile[thread_m + T::at(i)][k] * x_value;
    }
    __syncthreads();  // separates these loads from the next step's stores
  }
  const int j = block.pixel + thread_j;
  if (j >= sizes.pixels) return;  // no barrier follows
  const Divided image = divided(j, sizes.image_pixels);
  for (int i = 0; i < T::kThread; ++i) {
    const int m = thread_m + T::at(i);
    if (m >= filters) break;
    const int filter = first_filter + m;
    y[(std::int64_t{image.quotient} * conv.K + filter) * sizes.image_pixels + image.remainder] =
        activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i]);
  }
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  launch(conv2d_implicit_gemm_tiled<Tiles>, {TileOfBlock::grid<Tiles>(conv), dim3(Tiles::kThreads)},
         conv, arrays.x, arrays.weights, arrays.bias, arrays.y);
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_tiled = {
    .supports = why_no_product_row_by_row,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
