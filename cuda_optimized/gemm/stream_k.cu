/// @file stream_k.cu
/// @brief Stream-K: every block computes the same number of steps, across the boundaries of tiles.
///
/// - Before: split_k.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** With 324 tiles and 264 resident blocks, 60 tiles are left for a second wave, in
/// which most SMs are idle. So not tiles but steps along k are divided: the steps of all tiles, one
/// tile after the other, are cut into equal shares, one per resident block.
///
///     tiles     |    0    |    1    |    2    |    3    |    4    |
///     blocks    |     A     |     B     |     C     |     D     |     tile 1 = a part of A + a
///     part of B
///
/// A block stores a whole tile to c. It has at most two partial tiles, one at either end of its
/// share: one that begins a tile, and one that ends a tile or lies inside of one. Each has a slot
/// in the workspace, and a second kernel adds the parts of a tile in the order of the blocks, so
/// that the bits are the same in each run (after Osama et al., "Stream-K", 2023).
///
/// **Expect.** No idle second wave: for m 2304, n 2304, k 2304 (324 tiles), predicted on an H200
/// 530 us, and 650 us for cp_async.cu. From 4096 on there are so many waves that the last one
/// matters little: then it is slower, as neighbouring blocks no longer step along k together.
/// @expect on --m 128 --n 128 --k 512
/// @expect blocks 32 / 4 + 16 = 24, a tile's 32 steps in shares of 4; then its sums
/// @expect lanes_per_output.workspace.store 8 / 4 = 2, eight pieces
/// @expect lanes_per_output.workspace.load 8 / 4 = 2
/// @expect launches 2
/// **Costs.** Two tiles of workspace per block (35 MB on an H200), written and read once where
/// there are partial tiles, and a launch. Supported maps: row_major and stream_k.
/// **Try.** Compute the tiles of all full waves as cp_async.cu does, and divide only the rest and
/// one full wave before it into shares. Why is the rest alone not enough?
#include "core/cuda/device_attribute.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/async_tiles.cuh"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kStages = 3;   ///< Steps whose tiles are in shared memory, or in flight.
constexpr int kBlockK = 16;  ///< Depth of a step.
using Large = ThreadTile<128, 128, kBlockK, 8, 8, 4>;
using Wide = ThreadTile<64, 128, kBlockK, 8, 8, 8>;
using Medium = ThreadTile<64, 64, kBlockK, 8, 8, 8>;
using Small = ThreadTile<32, 32, kBlockK, 4, 4, 4>;
constexpr int kThreads = 2 * 256;  ///< Of all blocks on an SM: up to 128 registers.
constexpr int kFewestSteps = 4;    ///< Of a share.

/// The pieces of a block: one that begins a tile, and one that does not.
enum Piece { kInside, kBeginning, kPieces };

/// Where a piece lies: [block][piece][fours of a thread][thread], so that warps write whole lines.
template <class Tile>
__device__ float4* piece_of(float4* pieces, std::int64_t block, Piece piece) {
  constexpr int kFours = Tile::kBlockM * Tile::kBlockN / 4;
  return pieces + (block * kPieces + piece) * kFours + threadIdx.x;
}

/// A share of all steps for each block. Grid: the map's, stream_k. Block (Tile::kThreads).
/// @param pieces [gridDim.x][kPieces], see piece_of()
/// @tparam kAligned see rows_are_aligned()
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kThreads / Tile::kThreads)
    gemm_stream_k(Product product, TileMapProblem map, float4* pieces) {
  const Tile tile(threadIdx.x);
  tile_map::for_each_unit(map, [&](const tile_map::Unit& unit) {
    __syncthreads();  // separates the loads of the unit before from this one's copies
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    AsyncTiles<Tile, kStages, kAligned> tiles(product, unit.tile);
    tiles.add_steps(tile, unit.k_begin, unit.k_end, sums);

    if (unit.k_end - unit.k_begin == map.k_steps) {
      const std::int64_t m0 = std::int64_t{unit.tile.m} * Tile::kBlockM;
      const std::int64_t n0 = std::int64_t{unit.tile.n} * Tile::kBlockN;
      tile.for_each_four(sums, [&](int m, int n, float4 four) {
        store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n, four);
      });
    } else {
      float4* to = piece_of<Tile>(pieces, blockIdx.x, unit.k_begin == 0 ? kBeginning : kInside);
      tile.for_each_four(sums, [&](int, int, float4 four) {
        *to = four;
        to += Tile::kThreads;
      });
    }
  });
}

/// The block whose share has a step, of `blocks` that share `steps`: the inverse of
/// for_each_unit().
__device__ std::int64_t block_of(std::int64_t step, std::int64_t steps, std::int64_t blocks) {
  const std::int64_t share = steps / blocks, more = steps % blocks;
  const std::int64_t larger = more * (share + 1);  // steps of the blocks that have one more
  return step < larger ? step / (share + 1) : more + (step - larger) / share;
}

/// Adds up the pieces of all tiles that several blocks share.
/// Grid (<= tiles, fours of a thread), block (Tile::kThreads).
/// @param blocks of gemm_stream_k
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads)
    gemm_stream_k_add_pieces(Product product, TileMapProblem map, float4* pieces, int blocks) {
  const Tile tile(threadIdx.x);
  const std::int64_t tiles = std::int64_t{map.tiles_m} * map.tiles_n, steps = tiles * map.k_steps;
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t first = block_of(t * map.k_steps, steps, blocks);
    const std::int64_t last = block_of((t + 1) * map.k_steps - 1, steps, blocks);
    if (first == last) continue;  // a whole tile, which its block has stored

    const int four = static_cast<int>(blockIdx.y);
    float4 sum = piece_of<Tile>(pieces, first, kBeginning)[four * Tile::kThreads];
    for (std::int64_t block = first + 1; block <= last; ++block) {
      const float4 piece = piece_of<Tile>(pieces, block, kInside)[four * Tile::kThreads];
      sum.x += piece.x;
      sum.y += piece.y;
      sum.z += piece.z;
      sum.w += piece.w;
    }
    const int i = four / (Tile::kThreadN / 4), j = four % (Tile::kThreadN / 4) * 4;
    const std::int64_t m = t / map.tiles_n * Tile::kBlockM + tile.m + Tile::row(i);
    const std::int64_t n = t % map.tiles_n * Tile::kBlockN + tile.n + Tile::column(j);
    store_four<kAligned>(product.c, product.M, product.N, m, n, sum);
  }
}

/// As large as c allows: equal shares need no small tiles.
TileShape shape_of(const GemmProblem& gemm) {
  if (gemm.M <= 32 && gemm.N <= 32) return TileShape::small;
  if (gemm.M <= 64) return gemm.N <= 64 ? TileShape::medium : TileShape::wide;
  return TileShape::large;
}

int threads_of(TileShape shape) {
  switch (shape) {
    case TileShape::large: return Large::kThreads;
    case TileShape::wide: return Wide::kThreads;
    case TileShape::medium: return Medium::kThreads;
    default: return Small::kThreads;
  }
}

/// A share for each block that can run at once, but none of less than kFewestSteps.
TileMapProblem shares_of(const GemmProblem& gemm) {
  const TileShape shape = shape_of(gemm);
  TileMapProblem tiles = tiles_of(gemm, extents_of(shape), kBlockK, TileMap::stream_k);
  const std::int64_t steps = std::int64_t{tiles.tiles_m} * tiles.tiles_n * tiles.k_steps;
  tiles.blocks = static_cast<int>(std::clamp<std::int64_t>(
      steps / kFewestSteps, 1, std::int64_t{multiprocessors()} * (kThreads / threads_of(shape))));
  return tiles;
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_floats(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (gemm.map == TileMap::row_major || gemm.map == TileMap::stream_k) return {};
  return text("the map ", name_of(gemm.map), ": this rung has one of its own, stream_k");
}

OutputTile tile(const GemmProblem& gemm) { return extents_of(shape_of(gemm)); }

std::size_t workspace_bytes(const GemmProblem& gemm) {
  const OutputTile extents = tile(gemm);
  return static_cast<std::size_t>(shares_of(gemm).blocks) * kPieces *
         static_cast<std::size_t>(extents.rows * extents.columns) * sizeof(float);
}

template <class Tile, bool kAligned>
void launch_with(const Product& product, const TileMapProblem& tiles, float4* pieces) {
  const dim3 grid = tile_map::launch_grid(tiles);
  launch(gemm_stream_k<Tile, kAligned>,
         {grid, dim3(Tile::kThreads), AsyncTiles<Tile, kStages, kAligned>::kSharedBytes}, product,
         tiles, pieces);
  const unsigned all = blocks_for(std::int64_t{tiles.tiles_m} * tiles.tiles_n, 1);
  constexpr unsigned kFours = Tile::kThreadM * Tile::kThreadN / 4;
  launch(gemm_stream_k_add_pieces<Tile, kAligned>, {dim3(all, kFours), dim3(Tile::kThreads)},
         product, tiles, pieces, static_cast<int>(grid.x));
}

template <class Tile>
void launch_with(const Product& product, const TileMapProblem& tiles, float4* pieces) {
  if (rows_are_aligned(product)) return launch_with<Tile, true>(product, tiles, pieces);
  launch_with<Tile, false>(product, tiles, pieces);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  const Product product = product_of(gemm, arrays);
  const TileMapProblem tiles = shares_of(gemm);
  auto* pieces = context.workspace_as<float4>();
  switch (shape_of(gemm)) {
    case TileShape::large: return launch_with<Large>(product, tiles, pieces);
    case TileShape::wide: return launch_with<Wide>(product, tiles, pieces);
    case TileShape::medium: return launch_with<Medium>(product, tiles, pieces);
    case TileShape::small: return launch_with<Small>(product, tiles, pieces);
  }
}

std::string choice_in_words(const GemmProblem& gemm) {
  const TileMapProblem tiles = shares_of(gemm);
  const std::int64_t steps = std::int64_t{tiles.tiles_m} * tiles.tiles_n * tiles.k_steps;
  return text(rows_in_words(gemm), ", ",
              tiles.blocks == 1                      ? "one share"
              : tiles.blocks == steps / kFewestSteps ? "small shares"
                                                     : "a share for each block that runs");
}

}  // namespace

extern const Implementation<GemmArrays> stream_k = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
