/// @file vectorized.cu
/// @brief conv2d as a matrix product: packed weights, warp tiles, and vectors wherever they fit.
///
/// - Before: precomputed_offsets.cu
/// - After: cp_async.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The weights are constant. A block needs them as rows along m, but they lie in
/// memory as rows along k. A small kernel turns them once, instead of every block again and again,
/// and pads them with zeros to whole tiles. Then a thread copies two float4 a step, without a test
/// and without a transposition.
///
///     weights [m][k]  ->  packed [k][m, rounded up]        tile of weights: 16 rows of 128 floats,
///                                                          as they lie in memory
///
/// The gathered elements stay single floats: with taps and padding, a row of them begins anywhere.
/// The sums of a warp form one rectangle (gemm/shared/thread_tile.cuh draws it), so that loads from
/// shared memory are vectors, and so are stores to y, where P * Q is a multiple of four and y is
/// aligned. Elsewhere the sums change places in shared memory, so that a warp stores 32 neighbours.
///
/// **Expect.** 1220 instructions for 1024 multiply-adds, 16 steps of k: 54 TFLOP/s at best on an
/// H200, little more than before. But a tile now has room for 16 steps instead of 8, and a block
/// waits half as often: with 80 % of the issue slots used, 43 TFLOP/s, 5.5 ms for B10
/// (64x512x28x28, 512 filters 3x3). B4 (64 filters) gathers twice as much for each multiply-add.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.workspace 4.5 + 4.5 / 4 = 5.625, the table; weights in vectors
/// @expect loads_per_output.shared 144 * (1 + 1) / (4 * 4) + 9 / 16 = 18.5625, vectors; packing
/// @expect bytes_per_lane.y.store 16
/// @expect launches 3
/// **Costs.** A second copy of the weights in the workspace, 9 MB for B10, and a launch to make it.
/// Up to 128 registers a thread (two blocks of 256 an SM) or 168 (three of 128). Declines what
/// precomputed_offsets.cu declines, and filters that have 2^31 weights once they are padded.
/// **Try.** Let a thread's 8 x 8 sums be one square, as before: change row() and column() of
/// gemm/shared/thread_tile.cuh. How many of a warp's loads meet the same bank?
#include "core/conv2d_problem.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pack_weights.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/store_images.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/tap_table.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/tile_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using Large = gemm::ThreadTile<128, 128, 16>;
using Half = gemm::ThreadTile<64, 128, 16>;
using Small = gemm::ThreadTile<32, 32, 8, 4, 4>;

/// x [N][C][H][W], table [depth], packed [groups][k_rows][padded_m].
/// Grid m_tiles * n_tiles * groups, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kThreads == 128 ? 3 : 512 / T::kThreads)
    conv2d_implicit_gemm_vectorized(Conv2dProblem conv, PixelDivisions divide,
                                    GatheredProduct product, StoreImages store, const float* x,
                                    const TapEntry* table, const float* packed) {
  constexpr int kFloatsA = T::kBlockK * T::kBlockM, kFloatsB = T::kBlockK * T::kBlockN;
  constexpr int kFloatsStore = T::kThreads * T::kThreadN;
  constexpr int kFloats = kFloatsA + kFloatsB > kFloatsStore ? kFloatsA + kFloatsB : kFloatsStore;
  __shared__ float4 shared[kFloats / 4];
  float* const w_tile = &shared[0].x;       // [k][m]
  float* const x_tile = w_tile + kFloatsA;  // [k][n]

  const int thread = static_cast<int>(threadIdx.x);
  const auto m_tiles = static_cast<unsigned>(product.m_tiles);
  const auto n_tiles = static_cast<unsigned>(product.n_tiles);
  const BlockPlace place{static_cast<int>(blockIdx.x % m_tiles) * T::kBlockM,
                         static_cast<int>(blockIdx.x / m_tiles % n_tiles) * T::kBlockN,
                         static_cast<int>(blockIdx.x / m_tiles / n_tiles), 0};
  const GatheredPixel pixel(conv, divide, place.n + thread % T::kBlockN);
  const std::int64_t corner =
      pixel.offset + std::int64_t{place.group} * product.channels * conv.H * conv.W;
  const float* weights = packed + std::int64_t{place.group} * product.k_rows * product.padded_m +
                         place.m;  // of the block's tiles

  constexpr int kFoursA = kFloatsA / 4 / T::kThreads, kLoadsB = kFloatsB / T::kThreads;
  static_assert(T::kThreads % T::kBlockN == 0, "a thread gathers for one pixel");
  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  for (int k0 = 0; k0 < product.k_rows; k0 += T::kBlockK) {
    // All loads, then all stores: a store waits for its load, and would hold up those behind it.
    float4 w_loaded[kFoursA];
    float x_loaded[kLoadsB];
#pragma unroll
    for (int e = 0; e < kFoursA; ++e) {
      const int i = (thread + e * T::kThreads) * 4;
      w_loaded[e] = *reinterpret_cast<const float4*>(
          weights + std::int64_t{k0 + i / T::kBlockM} * product.padded_m + i % T::kBlockM);
    }
#pragma unroll
    for (int e = 0; e < kLoadsB; ++e) {
      const TapEntry tap = table[k0 + thread / T::kBlockN + e * (T::kThreads / T::kBlockN)];
      x_loaded[e] = pixel.has(tap) ? x[corner + tap.offset] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < kFoursA; ++e) {
      *reinterpret_cast<float4*>(w_tile + (thread + e * T::kThreads) * 4) = w_loaded[e];
    }
#pragma unroll
    for (int e = 0; e < kLoadsB; ++e) x_tile[thread + e * T::kThreads] = x_loaded[e];
    __syncthreads();  // separates these stores from the loads below
    tile.template multiply<T::kBlockM, T::kBlockN>(w_tile, x_tile, sums);
    __syncthreads();  // separates these loads from the next step's stores, and the last one's from
                      // those of store()
  }
  store.store(product, place, tile, sums, w_tile);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product_row_by_row(conv)) return reason;
  if (const Declined reason = why_no_tap_table(conv)) return reason;
  return why_no_padded_product(conv.K / conv.groups, conv.C / conv.groups,
                               std::int64_t{conv.R} * conv.S);
}

/// A type as a value.
template <class T>
struct Tag {
  using Tile = T;
};

/// Calls body(Tag<T>, the product planned for T) for the tile T that suits the problem.
template <class Body>
auto with_tile(const Conv2dProblem& conv, const Body& body) {
  const auto with = [&]<class T>(Tag<T> tag) {
    return body(tag, planned<T>(forward_product(conv), true));
  };
  switch (shape_for(conv)) {
    case TileShape::large: return with(Tag<Large>{});
    case TileShape::half: return with(Tag<Half>{});
    default: return with(Tag<Small>{});
  }
}

/// The workspace, front to back.
struct Workspace {
  TapEntry* table;
  float* packed;      ///< Weights.
  std::size_t bytes;  ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const Conv2dProblem& conv, const GatheredProduct& product,
                       std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.table = cutter.take<TapEntry>(table_entries(conv));
  work.packed = cutter.take<float>(product.packed_floats());
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return with_tile(conv, [&](auto, const GatheredProduct& product) {
    return workspace_at(conv, product, nullptr).bytes;
  });
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  with_tile(conv, [&](auto tag, const GatheredProduct& product) {
    using T = typename decltype(tag)::Tile;
    const Workspace work = workspace_at(conv, product, context.workspace_as<std::byte>());
    launch_tap_table(conv, work.table);
    launch_pack(product, arrays.weights, work.packed);
    const StoreImages store(product, arrays.y, arrays.bias, conv.activation);
    const std::int64_t blocks = std::int64_t{product.m_tiles} * product.n_tiles * product.groups;
    launch(conv2d_implicit_gemm_vectorized<T>,
           {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads)}, conv, PixelDivisions(conv),
           product, store, arrays.x, static_cast<const TapEntry*>(work.table),
           static_cast<const float*>(work.packed));
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_tile(conv, [&](auto, const GatheredProduct& product) {
    return text(in_words(shape_for(conv)), pixels_in_fours(product) ? ", pixels in fours" : "");
  });
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_vectorized = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
