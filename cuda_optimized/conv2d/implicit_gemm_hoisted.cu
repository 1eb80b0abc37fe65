/// @file implicit_gemm_hoisted.cu
/// @brief conv2d as a matrix product: nothing is decoded inside of the loop over k.
///
/// - Before: implicit_gemm_register_tile.cu (four divisions for each gathered element)
/// - After:  implicit_gemm_vectorized.cu (packed weights, warp tiles, vector loads and stores)
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** An element of the columns lies at an offset of its pixel plus an offset of its k,
/// and neither depends on the other. A thread gathers for one pixel only, whose offset it finds
/// once. The offsets of all k are the same for all pixels: a small kernel writes them into a table
/// first (cuDNN names such a product "precomp"). Whether the tap lies in the padding depends on
/// both, but row and column apart from each other: R + S bits of the pixel.
///
///     pixel (once a thread)                       k (once a launch, in a table)
///     n, p, q -> offset of (h0, w0)               c, r, s -> offset c*H*W + r*dilation*W + ...
///             -> bits: rows r that lie in x               -> bits: row r and column s
///                      columns s that lie in x
///
///     in x?  needed bits & ~pixel's bits == 0                    address = offset + offset
///
///             r 0 1 2   s 0 1 2
///     pixel:    0 1 1     1 1 0      the top right corner, 3 x 3 filter, padding 1
///     needs:    1 0 0     0 1 0      tap (0, 1): bit r = 0 is missing, the element is zero
///
/// The divisions that stay, those of pixels and of the table, are by numbers known at the launch:
/// FastDivision makes three instructions of each.
///
/// **Expect.** A gathered element costs one load from the table (the whole warp reads the same
/// entry), a test, an addition and its load: some 8 instructions instead of 80. What limits now is
/// waiting, as loads and arithmetic take turns, and bank conflicts: about 28 TFLOP/s on an
/// H200, 8.5 ms for B10 (64x512x28x28, 512 filters 3x3).
/// **Costs.** A workspace of 16 bytes for each weight of a filter, and a launch to fill it.
/// Declines filters with R + S over 64, which the bits do not hold, and what why_no_product()
/// names.
/// **Try.** Replace the bits by comparisons of h and w with H and W. How many registers does it
/// take, and how many instructions in the loop?
#include "core/fast_division.hpp"
#include "cuda_optimized/conv2d/implicit_gemm.cuh"
#include "cuda_optimized/conv2d/tap_table.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTileK = 8;  ///< Steps of k a tile.

/// The sums of a block, kTileM filters x kTileN pixels, and of a thread.
template <int kTileM_, int kTileN_, int kThread_>
struct Tiles {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_;
  static constexpr int kThread = kThread_;  ///< kThread filters x kThread pixels
  static constexpr int kThreadsN = kTileN / kThread;
  static constexpr int kThreads = kTileM / kThread * kThreadsN;
  static_assert(kTileM * kTileK % kThreads == 0 && kTileN * kTileK % kThreads == 0);
  static_assert(kThreads % kTileN == 0, "all elements that a thread gathers are of one pixel");
};
using Large = Tiles<128, 128, 8>;
using Small = Tiles<32, 32, 4>;

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid (ceil(pixels/kTileN), <= ceil(filters/kTileM), <= groups), block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 2)
    conv2d_implicit_gemm_hoisted(Conv2dProblem conv, PixelDivisions divide, const float* x,
                                 const float* weights, const TapEntry* table, const float* bias,
                                 float* y) {
  __shared__ float w_tile[kTileK][T::kTileM];  // [k][m]: transposed, so that m is contiguous
  __shared__ float x_tile[kTileK][T::kTileN];  // [k][j]

  const ProductSizes sizes(conv);
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_m = thread / T::kThreadsN * T::kThread;
  const int thread_j = thread % T::kThreadsN * T::kThread;
  const int j0 = static_cast<int>(blockIdx.x) * T::kTileN;           // the block's first pixel
  const GatheredPixel pixel(conv, divide, j0 + thread % T::kTileN);  // that this thread gathers for

  // grid.y and grid.z end at 65535: with more filters or groups, a block takes several tiles.
  for (int group = static_cast<int>(blockIdx.z); group < conv.groups;
       group += static_cast<int>(gridDim.z)) {
    const float* group_x =
        x + std::int64_t{group} * (conv.C / conv.groups) * conv.H * conv.W;  // of image 0
    const std::int64_t first_filter = std::int64_t{group} * sizes.filters;
    for (std::int64_t m0 = std::int64_t{blockIdx.y} * T::kTileM; m0 < sizes.filters;
         m0 += std::int64_t{gridDim.y} * T::kTileM) {
      float sums[T::kThread][T::kThread] = {};
      for (int k0 = 0; k0 < sizes.depth; k0 += kTileK) {
        // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
#pragma unroll
        for (int e = 0; e < T::kTileM * kTileK / T::kThreads; ++e) {
          const int i = thread + e * T::kThreads;
          const int k = i % kTileK;  // neighbouring threads, neighbouring weights
          const int m = i / kTileK;
          w_tile[k][m] = m0 + m < sizes.filters && k0 + k < sizes.depth
                             ? weights[(first_filter + m0 + m) * sizes.depth + k0 + k]
                             : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < T::kTileN * kTileK / T::kThreads; ++e) {
          const int k = thread / T::kTileN + e * (T::kThreads / T::kTileN);
          float element = 0.0f;
          if (k0 + k < sizes.depth) {
            const TapEntry tap = table[k0 + k];
            if (pixel.has(tap)) element = group_x[pixel.offset + tap.offset];
          }
          x_tile[k][thread % T::kTileN] = element;
        }
        __syncthreads();  // separates these stores from the loads below
#pragma unroll
        for (int k = 0; k < kTileK; ++k) {
          float w_values[T::kThread], x_values[T::kThread];
#pragma unroll
          for (int i = 0; i < T::kThread; ++i) w_values[i] = w_tile[k][thread_m + i];
#pragma unroll
          for (int i = 0; i < T::kThread; ++i) x_values[i] = x_tile[k][thread_j + i];
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
        const int j = j0 + thread_j + e;
        if (j >= sizes.pixels) break;
        const int n = divide.image.quotient(j), in_image = divide.image.remainder(j, n);
#pragma unroll
        for (int i = 0; i < T::kThread; ++i) {
          if (m0 + thread_m + i >= sizes.filters) break;
          const std::int64_t filter = first_filter + m0 + thread_m + i;
          y[(std::int64_t{n} * conv.K + filter) * sizes.image_pixels + in_image] =
              (bias ? bias[filter] : 0.0f) + sums[i][e];
        }
      }
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product_row_by_row(conv)) return reason;
  return why_no_tap_table(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) { return tap_table_bytes(conv); }

/// Launches the kernel with these tiles.
template <class T>
void launch_with(const Conv2dProblem& conv, const Arguments& arrays, const TapEntry* table) {
  const ProductSizes sizes(conv);
  const dim3 grid(blocks_for(sizes.pixels, T::kTileN),
                  blocks_for(sizes.filters, T::kTileM, kMaxGridYZ),
                  blocks_for(conv.groups, 1, kMaxGridYZ));
  launch(conv2d_implicit_gemm_hoisted<T>, {grid, dim3(T::kThreads)}, conv, PixelDivisions(conv),
         arrays.in<float>("x"), arrays.in<float>("weights"), table,
         arrays.in_or_null<float>("bias"), arrays.out<float>("y"));
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const TapEntry* table = launch_tap_table(conv, arrays.workspace<void>());
  if (is_small<Large::kTileM, Large::kTileN>(ProductSizes(conv))) {
    launch_with<Small>(conv, arrays, table);
  } else {
    launch_with<Large>(conv, arrays, table);
  }
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_hoisted() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
