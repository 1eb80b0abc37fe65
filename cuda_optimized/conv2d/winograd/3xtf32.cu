/// @file 3xtf32.cu
/// @brief Winograd F(4 x 4, 3 x 3) on tensor cores: its GEMMs are computed in 3xTF32, with the
/// accuracy of float.
///
/// - Before: 4x4.cu
/// - After: fft/3xtf32.cu
/// - The same maths: cpu_reference/conv2d/winograd_4x4.cpp
///
/// **The idea.** Winograd reduces the number of multiplications, and tensor cores speed them up.
/// TF32 alone is too inaccurate: F(4x4)'s inverse transform adds values up to 144 times as large as
/// the result, with errors of 2^-11. Split in two, each operand keeps 22 bits, and three products
/// in TF32 replace one of floats (gemm/wgmma_3xtf32.cu), at twice the speed of FMA. The transforms
/// are those of winograd/4x4, except that U has rows along the channels, because wgmma reads
/// K-major operands:
///
///     36 frequencies x groups     M [filters][tiles]  =  U [filters][C]   V [C][tiles]
///     one behind the other        one tall matrix        one tall matrix  found by its product
///
/// All GEMMs are one launch: U and M are two tall matrices, and the row of a tile of M determines
/// the rows of V that belong to it.
///
/// **Expect.** The GEMMs of B10 (64x512x28x28, 512 filters) have 36 * 512 * 512 * 3136 * 2 = 59
/// GFLOP: 1180 us by FMA, 550 us at the 108 TFLOP/s of wgmma_3xtf32. With the transforms 790 us; B9
/// 640 us, B4 (32x64x56x56, 64 filters) 90 us, B6 62 us, B7 75 us.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect launches 4, U, V, products, y
/// @expect loads_per_output.x 16 * 22 * 22 / 16384 = 0.4727, windows of 6, 22 of 24 rows inside
/// @expect requests.shared.async 36 * (1 + 4) = 180, for each product a step of U and of V
/// **Costs.** Compute capability 9.0 only. Channels are rounded up to 32, filters to 64. The
/// omitted term is 2^-22 of a product, and the accumulators of a step are truncated, not rounded.
/// Otherwise as winograd/4x4.
/// **Try.** Multiply in TF32 alone. By how much do B4's outputs differ, and how much of that do
/// points 0, 1, -1, 1/2, -1/2 save?
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/winograd/winograd_weights.cuh"
#include "cuda_optimized/conv2d/winograd/3xtf32.cuh"
#include "cuda_optimized/gemm/tf32/wgmma_3xtf32.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kM = 4;  ///< Outputs of a tile along each axis.
/// What filters, channels and tiles are rounded up to.
constexpr int kFilters = 64, kChannels = 32, kTiles = 32;

WinogradProduct product_of(const Conv2dProblem& conv) {
  const auto up = [](std::int64_t extent, int to) {
    return ceil_div<std::int64_t>(extent, to) * to;
  };
  return {WinogradShape::tensor_cores, kFrequencies4x4 * conv.groups,
          up(conv.K / conv.groups, kFilters), up(WinogradTiles(conv, kM).all, kTiles),
          up(conv.C / conv.groups, kChannels)};
}

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  launch_winograd_3xtf32(conv, arrays, WeightsOrder::as_they_are, context.workspace_as<float>());
}

}  // namespace

Declined why_no_winograd_3xtf32(const Conv2dProblem& conv) {
  if (auto reason = gemm::why_no_wgmma()) return reason;
  if (auto reason = why_no_tiles_4x4(conv)) return reason;
  const WinogradProduct product = product_of(conv);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (product.products > kMost / std::max(product.m, product.k))
    return "2^31 or more rows of U or V";
  return {};
}

std::size_t winograd_3xtf32_bytes(const Conv2dProblem& conv) {
  return product_of(conv).workspace_bytes();
}

void launch_winograd_3xtf32(const Conv2dProblem& conv, const Conv2dArrays& arrays,
                            WeightsOrder order, float* workspace) {
  if (conv.N == 0) return;
  const std::int64_t tiles = WinogradTiles(conv, kM).all;
  const WinogradProduct product = product_of(conv);
  float* const u = workspace;
  float* const v = u + product.u_floats();
  float* const m = v + product.v_floats();
  launch_winograd_weights<true>(conv.K / conv.groups, conv.C / conv.groups, product, arrays.weights,
                                order, u);
  launch_windows_4x4(conv, product, 0, tiles, arrays.x, v);
  gemm::launch_gemm_wgmma_3xtf32({.products = product.products,
                                  .M = static_cast<int>(product.m),
                                  .N = static_cast<int>(product.n),
                                  .K = static_cast<int>(product.k),
                                  .a = u,
                                  .b = v,
                                  .c = m});
  launch_outputs_4x4(conv, product, 0, tiles, m, arrays);
}

extern const Implementation<Conv2dArrays> winograd_3xtf32 = {
    .supports = why_no_winograd_3xtf32,
    .workspace_bytes = winograd_3xtf32_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
