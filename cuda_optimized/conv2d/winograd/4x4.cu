/// @file 4x4.cu
/// @brief Winograd F(4 x 4, 3 x 3): 36 batched GEMMs between two transforms.
///
/// - Before: cuda_naive/conv2d/winograd_2x2.cu
/// - After: fused.cu, 3xtf32.cu
/// - The same maths: cpu_reference/conv2d/winograd_4x4.cpp
///
/// **The idea.** A tile of 4 x 4 outputs has 36 frequencies where four tiles of 2 x 2 have 64: 2.25
/// elements of V and M per pixel instead of 4, and as many products. Both limits of winograd_2x2,
/// bytes and multiply-adds, fall to 56 %. The GEMM has copies in flight and 8 x 8 accumulators per
/// thread, and needs no edge tests: the transforms pad filters, tiles and channels with zeros to
/// whole tiles of U and V, and U has the filter innermost.
///
///     per frequency   U [C][filters]  x  V [C][tiles]  ->  M [filters][tiles]     no edges
///                         0 0 0 0           0 0 0            beyond: computed, not used
///
/// The code computes with 3 G instead of G (cpu_reference/conv2d/winograd_4x4.cpp), and y is
/// divided by 9 before the bias is added: integers stay integers.
///
/// **Expect.** B4 (32x64x56x56, 64 filters): 116 MB of V and M, written and read, and 52 MB of x
/// and y: 68 us at 4.2 TB/s; the GEMMs, 1.85 GFLOP, 35 us at 80 % of the multiply-adds' peak; with
/// the launches 115 us. B6 85 us, B7 90 us, B9 850 us, B10 1450 us.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect lanes_per_output.workspace.store 2.25 + 1.125 + 1.125 = 4.5, U, V, M in fours; 32 tiles
/// @expect loads_per_output.x 16 * 22 * 22 / 16384 = 0.4727, windows of 6, 22 of 24 rows inside
/// @expect launches 4
/// @expect loads_per_output.workspace 1.125 + 2.25 = 3.375, U and V in fours; M
/// **Costs.** Rounding errors: some ten times those of the definition. Workspace. Padding: with few
/// channels per group, most products are zero (depthwise: all but one in 8). NaN and infinity
/// spread over a tile. Not supported: all but 3 x 3 with stride and dilation 1, NHWC, and other
/// types than float32.
/// **Try.** B7 has images of 7 x 7, and tiles for 8 x 8. What would F(2 x 2) with this GEMM take?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/winograd/winograd_transforms.cuh"
#include "cuda_optimized/conv2d/shared/winograd/winograd_weights.cuh"
#include "cuda_optimized/conv2d/winograd/4x4.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using W = Winograd4;
constexpr int kThreads = 128;  ///< Of a block of a transform: as many adjacent elements.
constexpr int kStages = 3;     ///< Of the product's tiles.

using Wide = gemm::ThreadTile<128, 64, 16>;       ///< For many filters.
using Half = gemm::ThreadTile<64, 128, 16>;       ///< Where half of Wide would be zeros.
using Small = gemm::ThreadTile<32, 32, 8, 4, 4>;  ///< For few filters, or few tiles.

WinogradShape shape_for(const Conv2dProblem& conv, std::int64_t tiles) {
  const int filters = conv.K / conv.groups;
  if (filters <= 32 || tiles <= 32) return WinogradShape::small;
  return filters % 128 == 0 || filters % 128 > 64 ? WinogradShape::wide : WinogradShape::half;
}

template <class Body>
auto with_shape(WinogradShape shape, const Body& body) {
  switch (shape) {
    case WinogradShape::wide: return body(static_cast<Wide*>(nullptr));
    case WinogradShape::half: return body(static_cast<Half*>(nullptr));
    default: return body(static_cast<Small*>(nullptr));
  }
}

/// x [N][C][H][W], v [frequency][group][k][n]. Grid (n / 128 rounded up, <= groups * k).
__global__ void __launch_bounds__(kThreads)
    conv2d_winograd_4x4_x(Conv2dProblem conv, WinogradProduct product, std::int64_t first,
                          std::int64_t count, const float* x, float* v) {
  const int group_c = conv.C / conv.groups;
  const std::int64_t n = thread_of_grid<kThreads>();
  if (n >= product.n) return;
  const bool exists = n < count;
  const auto place = WinogradTiles(conv, W::kM).place(exists ? first + n : 0);
  const int h0 = place.p - conv.pad.top, w0 = place.q - conv.pad.left;
  unsigned inside_h = 0, inside_w = 0;  // bit i: row or column i of the window lies in x
#pragma unroll
  for (int i = 0; i < W::kN; ++i) {
    inside_h |= exists && h0 + i >= 0 && h0 + i < conv.H ? 1u << i : 0u;
    inside_w |= w0 + i >= 0 && w0 + i < conv.W ? 1u << i : 0u;
  }
  const std::int64_t matrices = conv.groups * product.k;
  for (std::int64_t gk = blockIdx.y; gk < matrices; gk += gridDim.y) {
    const std::int64_t group = gk / product.k, k = gk % product.k;
    const std::int64_t plane = std::int64_t{place.n} * conv.C + group * group_c + k;
    const std::int64_t at = (plane * conv.H + h0) * conv.W + w0;
    float d[W::kN][W::kN];
#pragma unroll
    for (int i = 0; i < W::kN; ++i) {
      const bool row = k < group_c && (inside_h >> i & 1u) != 0;
#pragma unroll
      for (int j = 0; j < W::kN; ++j)
        d[i][j] = row && (inside_w >> j & 1u) != 0 ? x[at + std::int64_t{i} * conv.W + j] : 0.0f;
    }
    both_ways(d, W::kN, [](float(&line)[W::kN]) { W::times_b(line); });
    float* to = v + gk * product.n + n;
#pragma unroll
    for (int f = 0; f < kFrequencies4x4; ++f)
      to[f * matrices * product.n] = d[f / W::kN][f % W::kN];
  }
}

/// out = u v for every product: all edges are multiples of the tile's.
/// Grid (tiles of out, <= products), block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 4)
    conv2d_winograd_4x4_products(WinogradProduct product, const float* u, const float* v,
                                 float* out) {
  constexpr int kFloatsU = T::kBlockK * T::kBlockM, kFloatsV = T::kBlockK * T::kBlockN;
  float* const u_tiles = dynamic_shared<float>();       // [stage][k][m]
  float* const v_tiles = u_tiles + kStages * kFloatsU;  // [stage][k][n]
  const int thread = static_cast<int>(threadIdx.x);
  const int tiles_m = static_cast<int>(product.m / T::kBlockM);
  const std::int64_t m0 = std::int64_t{blockIdx.x} % tiles_m * T::kBlockM;
  const std::int64_t n0 = std::int64_t{blockIdx.x} / tiles_m * T::kBlockN;
  const int steps = static_cast<int>(product.k / T::kBlockK);
  const T tile(threadIdx.x);

  /// The threads' copies of a tile, its rows `pitch` apart in memory.
  const auto copy = [&](auto columns, const float* from, std::int64_t pitch, float* to) {
    constexpr int kFours = decltype(columns)::value / 4;
    static_assert(T::kBlockK * kFours % T::kThreads == 0);
#pragma unroll
    for (int e = 0; e < T::kBlockK * kFours / T::kThreads; ++e) {
      const int four = thread + e * T::kThreads;
      ptx::cp_async<16>(to + four * 4, from + four / kFours * pitch + four % kFours * 4);
    }
  };
  for (std::int64_t z = blockIdx.y; z < product.products; z += gridDim.y) {
    const float* next_u = u + z * product.k * product.m + m0;  // the tiles that are copied next
    const float* next_v = v + z * product.k * product.n + n0;
    int next = 0;
    const auto copy_next = [&](int stage) {
      if (next < steps) {
        copy(std::integral_constant<int, T::kBlockM>(), next_u, product.m,
             u_tiles + stage * kFloatsU);
        copy(std::integral_constant<int, T::kBlockN>(), next_v, product.n,
             v_tiles + stage * kFloatsV);
        next_u += T::kBlockK * product.m, next_v += T::kBlockK * product.n, ++next;
      }
      ptx::cp_async_commit_group();  // also without copies, so that groups are counted as steps
    };
    float sums[T::kThreadM][T::kThreadN] = {};
    for (int stage = 0; stage < kStages - 1; ++stage) copy_next(stage);
    int stage = 0, free_stage = kStages - 1;
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait_group<kStages - 2>();  // this step's copies by this thread have landed
      // Separates the copies of all threads from the loads below, and the last step's loads from
      // the copies into the stage that it has left.
      __syncthreads();
      copy_next(free_stage);
      tile.template multiply<T::kBlockM, T::kBlockN>(u_tiles + stage * kFloatsU,
                                                     v_tiles + stage * kFloatsV, sums);
      free_stage = stage;
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
    float* const to = out + z * product.m * product.n;
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      *reinterpret_cast<float4*>(to + (m0 + m) * product.n + n0 + n) = four;
    });
    __syncthreads();  // separates the last loads from the next product's copies
  }
}

/// m [frequency][group][m][n], bias [K] or null, y [N][K][P][Q].
/// Grid (count / 128 rounded up, <= K).
__global__ void __launch_bounds__(kThreads)
    conv2d_winograd_4x4_y(Conv2dProblem conv, WinogradProduct product, std::int64_t first,
                          std::int64_t count, const float* m, const float* bias, float* y,
                          bool fours) {
  const int group_k = conv.K / conv.groups;
  const std::int64_t n = thread_of_grid<kThreads>();
  if (n >= count) return;
  const auto place = WinogradTiles(conv, W::kM).place(first + n);
  for (std::int64_t k = blockIdx.y; k < conv.K; k += gridDim.y) {
    const float* from = m + (k / group_k * product.m + k % group_k) * product.n + n;
    float sums[W::kN][W::kN];
#pragma unroll
    for (int f = 0; f < kFrequencies4x4; ++f)
      sums[f / W::kN][f % W::kN] = from[f * conv.groups * product.m * product.n];
    both_ways(sums, W::kM, [](float(&line)[W::kN]) { W::times_a(line); });
    const float bias_k = bias ? bias[k] : 0.0f;
    float* to = y + ((place.n * std::int64_t{conv.K} + k) * conv.P + place.p) * conv.Q + place.q;
#pragma unroll
    for (int i = 0; i < W::kM; ++i) {
      if (place.p + i >= conv.P) break;
      float row[W::kM];
#pragma unroll
      for (int j = 0; j < W::kM; ++j)
        row[j] = activated(conv.activation, sums[i][j] / (W::kScale * W::kScale) + bias_k);
      if (fours) {
        *reinterpret_cast<float4*>(to) = {row[0], row[1], row[2], row[3]};
      } else {
#pragma unroll
        for (int j = 0; j < W::kM; ++j)
          if (place.q + j < conv.Q) to[j] = row[j];
      }
      to += conv.Q;
    }
  }
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return product_4x4(conv, WinogradTiles(conv, W::kM).all).workspace_bytes();
}

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  if (conv.N == 0) return;
  const std::int64_t tiles = WinogradTiles(conv, W::kM).all;
  const WinogradProduct product = product_4x4(conv, tiles);
  float* const u = context.workspace_as<float>();
  launch_weights_4x4(conv, product, arrays.weights, WeightsOrder::as_they_are, u);
  launch_tiles_4x4(conv, product, 0, tiles, arrays, u, u + product.u_floats());
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return product_4x4_in_words(conv, WinogradTiles(conv, W::kM).all);
}

}  // namespace

Declined why_no_tiles_4x4(const Conv2dProblem& conv) {
  if (auto reason = why_no_winograd(conv, W::kM)) return reason;
  if (conv.groups > std::numeric_limits<int>::max() / kFrequencies4x4) return "too many groups";
  const WinogradProduct product = product_4x4(conv, WinogradTiles(conv, W::kM).all);
  if (product.m / 32 * (product.n / 32) > kMaxGridX) return "too many filters and tiles";
  return {};
}

WinogradProduct product_4x4(const Conv2dProblem& conv, std::int64_t tiles) {
  const WinogradShape shape = shape_for(conv, tiles);
  return with_shape(shape, [&]<class T>(T*) -> WinogradProduct {
    const auto up = [](std::int64_t extent, int tile) {
      return ceil_div<std::int64_t>(extent, tile) * tile;
    };
    return {shape, kFrequencies4x4 * conv.groups, up(conv.K / conv.groups, T::kBlockM),
            up(tiles, T::kBlockN), up(conv.C / conv.groups, T::kBlockK)};
  });
}

std::string product_4x4_in_words(const Conv2dProblem& conv, std::int64_t tiles) {
  return with_shape(shape_for(conv, tiles), []<class T>(T*) {
    return text("products in tiles of ", T::kBlockM, " x ", T::kBlockN);
  });
}

void launch_weights_4x4(const Conv2dProblem& conv, const WinogradProduct& product,
                        const float* weights, WeightsOrder order, float* u) {
  launch_winograd_weights<false>(conv.K / conv.groups, conv.C / conv.groups, product, weights,
                                 order, u);
}

void launch_windows_4x4(const Conv2dProblem& conv, const WinogradProduct& product,
                        std::int64_t first, std::int64_t tiles, const float* x, float* v) {
  launch(conv2d_winograd_4x4_x,
         {dim3(blocks_for(product.n, kThreads), blocks_for(conv.groups * product.k, 1, kMaxGridYZ)),
          kThreads},
         conv, product, first, tiles, x, v);
}

void launch_outputs_4x4(const Conv2dProblem& conv, const WinogradProduct& product,
                        std::int64_t first, std::int64_t tiles, const float* m,
                        const Conv2dArrays& arrays) {
  // Rows of tiles are float4 of y where its rows are, and where y begins as one.
  const bool fours =
      conv.Q % 4 == 0 && reinterpret_cast<std::uintptr_t>(static_cast<float*>(arrays.y)) % 16 == 0;
  launch(conv2d_winograd_4x4_y,
         {dim3(blocks_for(tiles, kThreads), blocks_for(conv.K, 1, kMaxGridYZ)), kThreads}, conv,
         product, first, tiles, m, arrays.bias, arrays.y, fours);
}

void launch_tiles_4x4(const Conv2dProblem& conv, const WinogradProduct& product, std::int64_t first,
                      std::int64_t tiles, const Conv2dArrays& arrays, const float* u,
                      float* v_and_m) {
  float* const v = v_and_m;
  float* const m = v + product.v_floats();
  launch_windows_4x4(conv, product, first, tiles, arrays.x, v);
  with_shape(product.shape, [&]<class T>(T*) {
    const dim3 grid(static_cast<unsigned>(product.m / T::kBlockM * (product.n / T::kBlockN)),
                    blocks_for(product.products, 1, kMaxGridYZ));
    constexpr std::size_t kShared =
        kStages * T::kBlockK * (T::kBlockM + T::kBlockN) * sizeof(float);
    launch(conv2d_winograd_4x4_products<T>, {grid, T::kThreads, kShared}, product, u, v, m);
  });
  launch_outputs_4x4(conv, product, first, tiles, m, arrays);
}

extern const Implementation<Conv2dArrays> winograd_4x4 = {
    .supports = why_no_tiles_4x4,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
