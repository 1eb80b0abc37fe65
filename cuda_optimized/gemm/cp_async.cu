/// @file cp_async.cu
/// @brief gemm: the tiles of the next steps are copied asynchronously, past the registers.
#include "core/rung.hpp"
#include "cuda_optimized/gemm/async_tiles.cuh"
#include "cuda_optimized/gemm/four.cuh"
#include "cuda_optimized/gemm/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kStages = 3;   ///< Steps whose tiles are in shared memory, or on their way.
constexpr int kBlockK = 16;  ///< Depth of a step.
using Large = ThreadTile<128, 128, kBlockK, 8, 8, 4>;
using Wide = ThreadTile<64, 128, kBlockK, 8, 8, 8>;
using Medium = ThreadTile<64, 64, kBlockK, 8, 8, 8>;
using Small = ThreadTile<32, 32, kBlockK, 4, 4, 4>;
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.

/// A tile of c for each block. Grid: the map's. Block (Tile::kThreads).
/// @tparam kAligned see rows_are_aligned()
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    gemm_cp_async(Product product, TileMapProblem map) {
  tile_map::Tile place;
  if (!tile_map::tile_of_block(map, &place)) return;  // the whole block, at once

  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  AsyncTiles<Tile, kStages, kAligned> tiles(product, place);
  tiles.add_steps(tile, 0, map.k_steps, sums);

  const std::int64_t m0 = std::int64_t{place.m} * Tile::kBlockM;
  const std::int64_t n0 = std::int64_t{place.n} * Tile::kBlockN;
  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n, four);
  });
}

template <class Tile>
void launch_with(const GemmProblem& gemm, const Product& product) {
  const auto kernel =
      rows_are_aligned(product) ? gemm_cp_async<Tile, true> : gemm_cp_async<Tile, false>;
  const TileMapProblem tiles = tiles_of(gemm, {Tile::kBlockM, Tile::kBlockN}, kBlockK, gemm.map);
  launch(kernel,
         {tile_map::launch_grid(tiles), dim3(Tile::kThreads),
          AsyncTiles<Tile, kStages, true>::kSharedBytes},
         product, tiles);
}

void run(const GemmProblem& gemm, const Arguments& arrays) {
  const Product product = product_of(gemm, arrays);
  switch (shape_for(gemm)) {
    case TileShape::large: return launch_with<Large>(gemm, product);
    case TileShape::wide: return launch_with<Wide>(gemm, product);
    case TileShape::medium: return launch_with<Medium>(gemm, product);
    case TileShape::small: return launch_with<Small>(gemm, product);
  }
}

}  // namespace

Implementation<GemmProblem> cp_async() {
  return {.supports = supports_whole_tiles, .run = run, .tile = tile_for};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
