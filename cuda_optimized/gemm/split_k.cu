/// @file split_k.cu
/// @brief Split-K: several blocks compute partial results of one tile of c; a second kernel adds
/// them.
///
/// - Before: cp_async.cu
/// - After: stream_k.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A GEMM with a small c and a large K, as in a weight gradient, has few tiles, and
/// most SMs would be idle. So K is cut into parts, and each block computes one part of one tile:
///
///     a  |  part 0   |  part 1   |  part 2   |    three blocks, one tile of c, cut along k
///     c = part 0 + part 1 + part 2                a second kernel, from workspace [part][m][n]
///
/// Adding the parts to c with atomics would save the workspace. But the order of the additions
/// would vary, and floating-point sums in another order have other bits.
///
/// **Expect.** For m 512, n 512, k 16384 there are 16 tiles of 128 x 128; cp_async.cu uses 256
/// small tiles instead, which load four times as much. Here 16 x 16 blocks compute with the large
/// tile. Predicted on an H200: 220 us, of which 6 us for the second kernel (16 MB to and from the
/// L2 cache); cp_async.cu: 400 us.
/// @expect on --m 64 --n 64 --k 512
/// @expect lanes_per_output.workspace.store 8 / 4 = 2, eight parts of 4 steps of 16, in vectors
/// @expect lanes_per_output.workspace.load 8, one of each part
/// @expect launches 2
/// @expect blocks 4 * 8 + 64 * 64 / 256 = 48, four tiles in eight parts; then sums
/// **Costs.** parts * M * N floats of workspace, written and read once, and a launch. With enough
/// tiles there is one part, and no second kernel. Parts have at least 4 steps of 16. Supported
/// maps: row_major, and split_k, which has at least two parts, even if they are shorter.
/// **Try.** Let the blocks add their parts to c with atomicAdd(), and run the tests. How must the
/// table of rungs describe it now, and which test would notice if it did not?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/grid_stride.hpp"
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
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Of 256 threads on an SM: up to 128 registers.
constexpr int kFewestSteps = 4;              ///< Of a part, if there is more than one.
constexpr int kMostBlocks = 2 * 132;         ///< The blocks that run at once on an H200.
constexpr int kSumThreads = 256;

/// Part `s` of the accumulators of a tile for block z = s. Grid: the map's, split_k. Block
/// (Tile::kThreads).
/// @param parts [map.splits][part_floats], each part as c; null if there is one, which is c
/// @tparam kAligned see rows_are_aligned()
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    gemm_split_k(Product product, TileMapProblem map, float* parts, std::int64_t part_floats) {
  tile_map::Tile place;
  if (!tile_map::tile_of_block(map, &place)) return;  // uniform for the block
  const int part = static_cast<int>(blockIdx.z);
  const int steps_of_part = ceil_div(map.k_steps, map.splits);
  const int begin = part * steps_of_part;
  if (begin >= map.k_steps) return;  // parts are rounded up: nothing is left for the last ones
  const int end = begin + steps_of_part < map.k_steps ? begin + steps_of_part : map.k_steps;

  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  AsyncTiles<Tile, kStages, kAligned> tiles(product, place);
  tiles.add_steps(tile, begin, end, sums);

  float* to = parts == nullptr ? product.c : parts + part * part_floats;
  const std::int64_t m0 = std::int64_t{place.m} * Tile::kBlockM;
  const std::int64_t n0 = std::int64_t{place.n} * Tile::kBlockN;
  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    store_four<kAligned>(to, product.M, product.N, m0 + m, n0 + n, four);
  });
}

/// c[i] = the sum of parts[0 ... count - 1][i], in this order. Grid (<= ceil(floats / 256)),
/// block (256).
__global__ void gemm_split_k_sum_parts(const float* parts, int count, std::int64_t part_floats,
                                       float* c, std::int64_t floats) {
  for (const std::int64_t i : grid_stride<kSumThreads>(floats)) {
    float sum = parts[i];
    for (int part = 1; part < count; ++part) sum += parts[part * part_floats + i];
    c[i] = sum;
  }
}

/// The parts that K can have, at most.
int most_splits(const GemmProblem& gemm) {
  return std::max(ceil_div(gemm.K, kBlockK) / kFewestSteps, 1);
}

/// The largest shape of which all parts together are enough blocks.
TileShape shape_of(const GemmProblem& gemm, std::int64_t enough) {
  for (const TileShape shape : kTileShapes) {
    if (count_tiles(gemm, extents_of(shape)) * most_splits(gemm) >= enough) return shape;
  }
  return TileShape::small;
}

/// As many parts as give one block for each resident block of the GPU. Their number decides the
/// bits of the result, so it depends on only the problem.
int splits_of(const GemmProblem& gemm) {
  const std::int64_t tiles = count_tiles(gemm, extents_of(shape_of(gemm, kEnoughTiles)));
  const int wanted = static_cast<int>(std::max<std::int64_t>(kMostBlocks / tiles, 1));
  const int splits = std::min(wanted, most_splits(gemm));
  if (gemm.map != TileMap::split_k) return splits;
  return std::max(splits, std::min(kDefaultSplits, ceil_div(gemm.K, kBlockK)));
}

TileShape shape_of(const GemmProblem& gemm) { return shape_of(gemm, enough_blocks(kEnoughTiles)); }

TileMapProblem split_tiles(const GemmProblem& gemm, TileShape shape) {
  TileMapProblem tiles = tiles_of(gemm, extents_of(shape), kBlockK, TileMap::split_k);
  tiles.splits = splits_of(gemm);
  return tiles;
}

/// Parts that are not empty: shares are rounded up, so that nothing may be left for the last ones.
int filled_parts(const GemmProblem& gemm, int splits) {
  const int k_steps = ceil_div(gemm.K, kBlockK);
  const int count = ceil_div(k_steps, ceil_div(k_steps, splits));
  return count;
}

/// Floats from a part to the next: whole float4.
std::int64_t part_floats(const GemmProblem& gemm) {
  return ceil_div(std::int64_t{gemm.M} * gemm.N, std::int64_t{4}) * 4;
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_floats(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (gemm.map != TileMap::row_major && gemm.map != TileMap::split_k) {
    return text("the map ", name_of(gemm.map), ": this rung has one of its own, split_k");
  }
  return why_no_grid(split_tiles(gemm, shape_of(gemm)));
}

std::size_t workspace_bytes(const GemmProblem& gemm) {
  const int splits = splits_of(gemm);
  if (splits == 1) return 0;
  return static_cast<std::size_t>(splits * part_floats(gemm)) * sizeof(float);
}

template <class Tile>
void launch_with(const GemmProblem& gemm, const Product& product, float* parts) {
  const auto kernel =
      rows_are_aligned(product) ? gemm_split_k<Tile, true> : gemm_split_k<Tile, false>;
  const TileMapProblem tiles = split_tiles(gemm, shape_of(gemm));
  launch(kernel,
         {tile_map::launch_grid(tiles), dim3(Tile::kThreads),
          AsyncTiles<Tile, kStages, true>::kSharedBytes},
         product, tiles, parts, part_floats(gemm));
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  const Product product = product_of(gemm, arrays);
  const int splits = splits_of(gemm);
  float* parts = splits == 1 ? nullptr : context.workspace_as<float>();
  switch (shape_of(gemm)) {
    case TileShape::large: launch_with<Large>(gemm, product, parts); break;
    case TileShape::wide: launch_with<Wide>(gemm, product, parts); break;
    case TileShape::medium: launch_with<Medium>(gemm, product, parts); break;
    case TileShape::small: launch_with<Small>(gemm, product, parts); break;
  }
  if (splits == 1) return;
  const int count = filled_parts(gemm, splits);
  const std::int64_t floats = std::int64_t{gemm.M} * gemm.N;
  launch(gemm_split_k_sum_parts, {dim3(blocks_for(floats, kSumThreads)), dim3(kSumThreads)}, parts,
         count, part_floats(gemm), product.c, floats);
}

OutputTile tile(const GemmProblem& gemm) { return extents_of(shape_of(gemm)); }

std::string choice_in_words(const GemmProblem& gemm) {
  const int splits = splits_of(gemm);
  return text(rows_in_words(gemm), ", ", how_many(splits, "part"),
              filled_parts(gemm, splits) < splits       ? ", some empty"
              : ceil_div(gemm.K, kBlockK) % splits != 0 ? ", uneven"
                                                        : "");
}

}  // namespace

extern const Implementation<GemmArrays> split_k = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .tile = tile,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
