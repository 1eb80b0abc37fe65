/// @file packed_weights.cu
/// @brief Packed weights: a small kernel transposes them once and pads them to whole tiles.
///
/// - Before: precomputed_offsets.cu
/// - After: vectorized.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The weights are constant. A block needs them as rows along m, but they lie in
/// memory as rows along k. In the previous rung every block transposes its tiles on their way into
/// shared memory, and tests each element against the edges of the matrix. Here a small kernel
/// transposes the weights once and pads them with zeros to whole tiles:
///
///     weights [m][k]  ->  packed [k][m, rounded up]        tile of weights: 8 rows of 128 floats,
///                                                          as they lie in memory
///
/// The main loop then copies weights without a test. A warp loads 32 neighbours of a row, one line
/// of 128 bytes, where it loaded eight floats from each of four filters. The rows in shared memory
/// need no padding, because threads store them in the order in which they are read.
///
/// **Expect.** Per thread and step, 4 loads of weights lose 2 comparisons each, and their requests
/// fall from 4 sectors of 32 bytes in 4 lines to 4 sectors in one line. The 512 multiply-adds and
/// the gather stay: about 2 % fewer instructions, 7.0 ms for B10 (64x512x28x28, 512 filters 3x3) on
/// an H200. Packing writes 9 MB for B10, 6 us.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.workspace 4.5 + 4.5 = 9, the table and the weights, each for 32 x 32
/// @expect loads_per_output.weights 64 * 144 / 16384 = 0.5625, each weight is packed once
/// @expect launches 3, the table, packing and the product
/// **Costs.** A second copy of the weights in the workspace, 9 MB for B10, and a launch to make it.
/// Not supported: what precomputed_offsets.cu does not support, and filters that have 2^31 weights
/// once they are padded.
/// **Try.** Swap the roles of tx and ty in shared/implicit_gemm/precomputed_operands.cuh. Which of
/// the two accesses is no longer coalesced, and what does it cost for B10?
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/precomputed_operands.cuh"
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
  static constexpr int kBlocks = kBlocks_;  ///< Blocks that an SM must hold.
  static constexpr int kBlockM = kTileM, kBlockN = kTileN, kBlockK = kTileK;  ///< For planned().
  static constexpr int kLoadsM = kTileM * kTileK / kThreads;  ///< Loads of a thread for a tile.
  static constexpr int kLoadsN = kTileN * kTileK / kThreads;
  static_assert(kTileM * kTileK % kThreads == 0 && kTileN * kTileK % kThreads == 0);
  static_assert(kThreads % kTileN == 0, "all elements that a thread gathers are of one pixel");

  /// The i-th of a thread's filters, or pixels, counted from its first one: pieces of four, as
  /// far apart as all threads' pieces are wide.
  HOST_DEVICE static constexpr int at(int i, int tile) {
    return i / 4 * (tile * 4 / kThread) + i % 4;
  }
};
using Large = Tiles<128, 128, 8, 2>;
using Half = Tiles<64, 128, 8, 3>;
using Small = Tiles<32, 32, 4, 8>;

/// x [N][C][H][W], packed [groups][k_rows][padded_m], bias [K] or null, y [N][K][P][Q].
/// Grid: a block for each tile, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_packed_weights(Conv2dProblem conv, PixelDivisions divide,
                                        GatheredProduct product, const float* x,
                                        const float* packed, const TapEntry* table,
                                        const float* bias, float* y) {
  __shared__ __align__(16) float w_tile[kTileK][T::kTileM];  // [k][m], rows in the order in memory
  __shared__ __align__(16) float x_tile[kTileK][T::kTileN];  // [k][j]

  const ProductSizes sizes(conv);
  const auto block = TileOfBlock::find<T>(sizes);
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_m = thread / T::kThreadsN * 4, thread_j = thread % T::kThreadsN * 4;
  const GatheredPixel pixel(conv, divide,
                            block.pixel + thread % T::kTileN);  // that this thread gathers for

  const std::int64_t corner =
      pixel.offset + std::int64_t{block.group} * (conv.C / conv.groups) * conv.H * conv.W;
  const int first_filter = block.group * sizes.filters + block.filter;
  const int filters = sizes.filters - block.filter;  // of the group, from that one on
  const float* const weights = packed +
                               std::int64_t{block.group} * product.k_rows * product.padded_m +
                               block.filter;  // of the block's tiles
  float sums[T::kThread][T::kThread] = {};
  for (int k0 = 0; k0 < product.k_rows; k0 += kTileK) {
    // All loads, then all stores: a store waits for its load, and would stall the loads after it.
    float w_loaded[T::kLoadsM], x_loaded[T::kLoadsN];
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      const int i = thread + e * T::kThreads;
      w_loaded[e] = weights[std::int64_t{k0 + i / T::kTileM} * product.padded_m + i % T::kTileM];
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const TapEntry tap = table[k0 + thread / T::kTileN + e * (T::kThreads / T::kTileN)];
      x_loaded[e] = pixel.has(tap) ? x[corner + tap.offset] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      const int i = thread + e * T::kThreads;
      w_tile[i / T::kTileM][i % T::kTileM] = w_loaded[e];
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
    const int n = divide.image.quotient(j), in_image = divide.image.remainder(j, n);
#pragma unroll
    for (int i = 0; i < T::kThread; ++i) {
      const int m = thread_m + T::at(i, T::kTileM);
      if (m >= filters) break;
      const int filter = first_filter + m;
      y[(std::int64_t{n} * conv.K + filter) * sizes.image_pixels + in_image] =
          activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i][e]);
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product_row_by_row(conv)) return reason;
  if (const Declined reason = why_no_tap_table(conv)) return reason;
  return why_no_padded_product(conv.K / conv.groups, conv.C / conv.groups,
                               std::int64_t{conv.R} * conv.S);
}

/// The product in the tiles that suit it.
GatheredProduct product_of(const Conv2dProblem& conv) {
  switch (shape_for(conv)) {
    case TileShape::large: return planned<Large>(forward_product(conv), true);
    case TileShape::half: return planned<Half>(forward_product(conv), true);
    default: return planned<Small>(forward_product(conv), true);
  }
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const auto floats = static_cast<std::size_t>(product_of(conv).packed_floats());
  return tap_table_bytes(conv) + floats * sizeof(float);
}

/// Launches the kernel with these tiles.
template <class T>
void launch_with(const Conv2dProblem& conv, const Conv2dArrays& arrays, const TapEntry* table,
                 const float* packed) {
  launch(conv2d_implicit_gemm_packed_weights<T>, {TileOfBlock::grid<T>(conv), dim3(T::kThreads)},
         conv, PixelDivisions(conv), product_of(conv), arrays.x, packed, table, arrays.bias,
         arrays.y);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  auto* table = context.workspace_as<TapEntry>();
  auto* packed = reinterpret_cast<float*>(table + table_entries(conv));
  launch_tap_table(conv, table);
  launch_pack(product_of(conv), arrays.weights, packed);
  switch (shape_for(conv)) {
    case TileShape::large: return launch_with<Large>(conv, arrays, table, packed);
    case TileShape::half: return launch_with<Half>(conv, arrays, table, packed);
    case TileShape::small: return launch_with<Small>(conv, arrays, table, packed);
  }
}

std::string choice_in_words(const Conv2dProblem& conv) { return in_words(shape_for(conv)); }

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_packed_weights = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
