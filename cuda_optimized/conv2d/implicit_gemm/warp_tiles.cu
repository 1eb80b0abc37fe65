/// @file warp_tiles.cu
/// @brief Warp tiles: a warp's accumulators form one compact rectangle, with the fewest reads.
///
/// - Before: vectorized.cu
/// - After: cp_async.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** Which threads of a block form a warp decides what the warp reads and writes
/// together. In the previous rung a warp is 2 x 16 threads, and its accumulators are two strips of
/// 8 x 128: for each k it reads 16 + 128 floats. Here a warp is 4 x 8 threads, and its accumulators
/// are one tile of 32 x 64, for which it reads 96 floats:
///
///                          lanes 0 ... 7    lanes 0 ... 7
///                        + - - - - - - - + - - - - - - - +    + is lane 0: four pieces of
///     lanes 0, 8, 16, 24 | +             | +             |    4 x 4 sums
///                        + - - - - - - - + - - - - - - - +
///     lanes 0, 8, 16, 24 | +             | +             |
///                        + - - - - - - - + - - - - - - - +
///
/// The warp owns whole rows of its tile. Where accumulators are no aligned float4 of y, the lanes
/// exchange them through shared memory, so that a warp stores 32 neighbours (StoreImages).
///
/// **Expect.** The instructions of the main loop stay. A load of 16 bytes a lane is served eight
/// lanes at a time, in both arrangements, so what a compact tile saves there is little: 43 TFLOP/s
/// on an H200, 5.5 ms for B10 (64x512x28x28, 512 filters 3x3). Where P * Q is no multiple of four,
/// a request to y writes 5 sectors instead of 17.
/// @expect on --n 1 --c 16 --h 33 --w 33 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.weights 64 * 144 / 69696 = 0.13, each weight is packed once
/// @expect sectors_per_request.y.store 4.8, neighbours
/// @expect excess.shared.load 0
/// **Costs.** Up to 128 registers a thread, or 168 in blocks of 128. Not supported: what
/// vectorized.cu does not support.
/// **Try.** Number the lanes so that 0 and 1, and 2 and 3 of each four share their pixels, and 0
/// and 2, and 1 and 3 their filters. How many wavefronts does a load of x take?
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/precomputed_operands.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kTileK = 16;  ///< Steps of k a tile.

/// The sums of a block, kTileM filters x kTileN pixels, and of a thread, as
/// gemm/shared/thread_tile.cuh divides them: a warp is 4 x 8 threads.
template <int kTileM_, int kTileN_, int kThread_, int kBlocks_,
          class Base = gemm::ThreadTile<kTileM_, kTileN_, kTileK, kThread_, kThread_>>
struct Tiles : Base {
  using Base::Base, Base::kThreads;
  static constexpr int kTileM = kTileM_, kTileN = kTileN_;
  static constexpr int kThread = kThread_;  ///< kThread filters x kThread pixels
  static constexpr int kBlocks = kBlocks_;  ///< Blocks that an SM must hold.
  static constexpr int kLoadsM = kTileM * kTileK / 4 / kThreads;  ///< Of four floats.
  static constexpr int kLoadsN = kTileN * kTileK / kThreads;      ///< Of one.
  static_assert(kTileM * kTileK / 4 % kThreads == 0 && kTileN * kTileK % kThreads == 0);
  static_assert(kThreads % kTileN == 0, "all elements that a thread gathers are of one pixel");
};
using Large = Tiles<128, 128, 8, 2>;
using Half = Tiles<64, 128, 8, 3>;
using Small = Tiles<32, 32, 4, 8>;

/// x [N][C][H][W], packed [groups][k_rows][padded_m].
/// Grid: a block for each tile, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_warp_tiles(Conv2dProblem conv, PixelDivisions divide,
                                    GatheredProduct product, const float* x, const float* packed,
                                    const TapEntry* table, StoreImages store) {
  __shared__ float4 tiles[kTileK * (T::kTileM + T::kTileN) / 4];  // store() exchanges sums here
  float* const w_tile = &tiles[0].x;                  // [k][m], rows in the order in memory
  float* const x_tile = w_tile + kTileK * T::kTileM;  // [k][j]

  const ProductSizes sizes(conv);
  const auto block = TileOfBlock::find<T>(sizes);
  const int thread = static_cast<int>(threadIdx.x);
  const GatheredPixel pixel(conv, divide,
                            block.pixel + thread % T::kTileN);  // that this thread gathers for

  const std::int64_t corner =
      pixel.offset + std::int64_t{block.group} * (conv.C / conv.groups) * conv.H * conv.W;
  const float* const weights = packed +
                               std::int64_t{block.group} * product.k_rows * product.padded_m +
                               block.filter;  // of the block's tiles
  const T tile(threadIdx.x);
  float sums[T::kThread][T::kThread] = {};
  for (int k0 = 0; k0 < product.k_rows; k0 += kTileK) {
    // All loads, then all stores: a store waits for its load, and would stall the loads after it.
    float4 w_loaded[T::kLoadsM];
    float x_loaded[T::kLoadsN];
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      const int i = (thread + e * T::kThreads) * 4;
      w_loaded[e] = *reinterpret_cast<const float4*>(
          weights + std::int64_t{k0 + i / T::kTileM} * product.padded_m + i % T::kTileM);
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const TapEntry tap = table[k0 + thread / T::kTileN + e * (T::kThreads / T::kTileN)];
      x_loaded[e] = pixel.has(tap) ? x[corner + tap.offset] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      const int i = (thread + e * T::kThreads) * 4;
      *reinterpret_cast<float4*>(w_tile + i) = w_loaded[e];
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const int i = thread + e * T::kThreads;
      x_tile[i] = x_loaded[e];
    }
    __syncthreads();  // separates these stores from the loads below
    tile.template multiply<T::kTileM, T::kTileN>(w_tile, x_tile, sums);
    __syncthreads();  // separates these loads from the next step's stores, and the last one's
                      // from those of store()
  }
  const BlockPlace place{block.filter, block.pixel, block.group, 0};
  store.store(product, place, tile, sums, w_tile);
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
  launch(conv2d_implicit_gemm_warp_tiles<T>, {TileOfBlock::grid<T>(conv), dim3(T::kThreads)}, conv,
         PixelDivisions(conv), product_of(conv), arrays.x, packed, table,
         StoreImages(product_of(conv), arrays.y, arrays.bias, conv.activation));
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

std::string choice_in_words(const Conv2dProblem& conv) {
  return text(in_words(shape_for(conv)), conv.P * conv.Q % 4 == 0 ? ", pixels in fours" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_warp_tiles = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
