/// @file vectorized.cu
/// @brief Vector access: 16-byte loads and stores, 16 steps of k per tile.
///
/// - Before: packed_weights.cu
/// - After: warp_tiles.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** A 16-byte load occupies one issue slot, as a 4-byte load does. Rows of packed
/// weights are aligned to 16 bytes, so a thread copies them as float4. The eight values that a
/// thread reads from a row of a tile are two float4 (gemm/shared/thread_tile.cuh, the inner loop of
/// the rungs from here on). Four adjacent accumulators of a row are one float4 of y, where P * Q is
/// a multiple of four and y is aligned:
///
///     weights   global -> shared      float4     rows along m, padded to whole tiles
///     x         global -> shared      float      with taps and padding, rows begin anywhere
///     tiles     shared -> registers   float4     two for each operand and step of k
///     y         registers -> global   float4     or single floats, where P * Q is no multiple
///
/// The copies of weights now take so few instructions that a step of 16 k pays, with half as many
/// barriers as a step of 8.
///
/// **Expect.** 1250 instructions for 1024 multiply-adds, 16 steps of k. With half as many barriers
/// and 75 % of the issue slots used, 40 TFLOP/s on an H200, 5.9 ms for B10 (64x512x28x28, 512
/// filters 3x3).
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.workspace 4.5 + 4.5 / 4 = 5.625, the table; weights in vectors
/// @expect loads_per_output.shared 144 * (1 + 1) / (4 * 4) + 9 / 16 = 18.5625, vectors; packing
/// @expect bytes_per_lane.y.store 16
/// **Costs.** Stores of single floats where P * Q is no multiple of four (B7: 7 x 7 pixels): a warp
/// then writes every fourth float of a line. Not supported: as in packed_weights.cu.
/// **Try.** Count the distinct float4 that a warp loads from each tile per step of k. How many
/// would a warp of 4 x 8 threads load?
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
/// gemm/shared/thread_tile.cuh divides them: each row of threads is as long as the tile.
template <int kTileM_, int kTileN_, int kThread_, int kBlocks_,
          class Base = gemm::ThreadTile<kTileM_, kTileN_, kTileK, kThread_, kThread_,
                                        32 * kThread_ / kTileN_>>
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

/// x [N][C][H][W], packed [groups][k_rows][padded_m], bias [K] or null, y [N][K][P][Q].
/// Grid: a block for each tile, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_vectorized(Conv2dProblem conv, PixelDivisions divide,
                                    GatheredProduct product, const float* x, const float* packed,
                                    const TapEntry* table, const float* bias, float* y) {
  __shared__ __align__(16) float w_tile[kTileK][T::kTileM];  // [k][m], rows in the order in memory
  __shared__ __align__(16) float x_tile[kTileK][T::kTileN];  // [k][j]

  const ProductSizes sizes(conv);
  const auto block = TileOfBlock::find<T>(sizes);
  const int thread = static_cast<int>(threadIdx.x);
  const GatheredPixel pixel(conv, divide,
                            block.pixel + thread % T::kTileN);  // that this thread gathers for

  const std::int64_t corner =
      pixel.offset + std::int64_t{block.group} * (conv.C / conv.groups) * conv.H * conv.W;
  const int first_filter = block.group * sizes.filters + block.filter;
  const int filters = sizes.filters - block.filter;  // of the group, from that one on
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
      *reinterpret_cast<float4*>(&w_tile[i / T::kTileM][i % T::kTileM]) = w_loaded[e];
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const int i = thread + e * T::kThreads;
      x_tile[i / T::kTileN][i % T::kTileN] = x_loaded[e];
    }
    __syncthreads();  // separates these stores from the loads below
    tile.template multiply<T::kTileM, T::kTileN>(w_tile[0], x_tile[0], sums);
    __syncthreads();  // separates these loads from the next step's stores
  }
  // Whether four pixels of a tile lie in one image, at a multiple of 16 bytes.
  const bool fours =
      sizes.image_pixels % 4 == 0 && reinterpret_cast<std::uintptr_t>(y) % sizeof(float4) == 0;
#pragma unroll
  for (int e = 0; e < T::kThread; ++e) {
    const int j = block.pixel + tile.n + T::column(e);
    if (j >= sizes.pixels) break;
    const int n = divide.image.quotient(j), in_image = divide.image.remainder(j, n);
#pragma unroll
    for (int i = 0; i < T::kThread; ++i) {
      const int m = tile.m + T::row(i);
      if (m >= filters) break;
      const int filter = first_filter + m;
      const auto result = [&](int next) {
        return activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i][e + next]);
      };
      float* const plane = y + (std::int64_t{n} * conv.K + filter) * sizes.image_pixels;
      if (!fours) {
        plane[in_image] = result(0);
      } else if (e % 4 == 0) {
        reinterpret_cast<float4*>(plane)[in_image / 4] = {result(0), result(1), result(2),
                                                          result(3)};
      }
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
  launch(conv2d_implicit_gemm_vectorized<T>, {TileOfBlock::grid<T>(conv), dim3(T::kThreads)}, conv,
         PixelDivisions(conv), product_of(conv), arrays.x, packed, table, arrays.bias, arrays.y);
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

extern const Implementation<Conv2dArrays> implicit_gemm_vectorized = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
