/// @file tiled_batched.cu
/// @brief tiled.cu's product for convolutions that end in one: matrices with any strides, and a
/// product for each image and group.
#include "core/error.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/gemm/shared/tiled_batched.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

constexpr int kTile = 32;  ///< Rows and columns of every tile: a, b and c.
/// A row of a tile in shared memory. One float more than the tile has, so that a warp that writes a
/// tile's column (a transposed operand) meets all 32 banks instead of one.
constexpr int kPitch = kTile + 1;

/// One thread an element of c, one block a tile.
/// Grid (tiles of c, 1, <= images * groups), block (32, 32).
/// @param tiles_n tiles across c
__global__ void __launch_bounds__(kTile* kTile)
    gemm_tiled_batched(BatchedGemm product, int tiles_n) {
  __shared__ float a_tile[kTile][kPitch];
  __shared__ float b_tile[kTile][kPitch];

  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int tile = static_cast<int>(blockIdx.x);
  const std::int64_t m0 = std::int64_t{tile / tiles_n} * kTile;
  const std::int64_t n0 = std::int64_t{tile % tiles_n} * kTile;
  // Neighbouring threads load neighbouring addresses, also where an operand is transposed: the
  // strides decide which element of a tile a thread loads, but not which element of c it computes.
  const bool a_along_k = product.a.column_stride <= product.a.row_stride;
  const bool b_along_n = product.b.column_stride <= product.b.row_stride;
  const int a_m = a_along_k ? ty : tx, a_k = a_along_k ? tx : ty;
  const int b_k = b_along_n ? ty : tx, b_n = b_along_n ? tx : ty;

  const std::int64_t products = std::int64_t{product.images} * product.groups;
  for (std::int64_t z = blockIdx.z; z < products; z += gridDim.z) {
    const int image = static_cast<int>(z / product.groups);
    const int group = static_cast<int>(z % product.groups);
    // Offsets of the elements that this thread loads next. Beyond the edges the offsets are not
    // used.
    std::int64_t a_at = image * product.a.image_stride + group * product.a.group_stride +
                        (m0 + a_m) * product.a.row_stride + a_k * product.a.column_stride;
    std::int64_t b_at = image * product.b.image_stride + group * product.b.group_stride +
                        b_k * product.b.row_stride + (n0 + b_n) * product.b.column_stride;
    float sum = 0.0f;
    for (std::int64_t k0 = 0; k0 < product.K; k0 += kTile) {
      // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
      a_tile[a_m][a_k] = m0 + a_m < product.M && k0 + a_k < product.K ? product.a.data[a_at] : 0.0f;
      b_tile[b_k][b_n] = k0 + b_k < product.K && n0 + b_n < product.N ? product.b.data[b_at] : 0.0f;
      a_at += kTile * product.a.column_stride;
      b_at += kTile * product.b.row_stride;
      __syncthreads();  // separates these stores from the loads below
      for (int k = 0; k < kTile; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
      __syncthreads();  // separates these loads from the next step's stores
    }
    if (m0 + ty < product.M && n0 + tx < product.N) {
      const int m = static_cast<int>(m0 + ty), n = static_cast<int>(n0 + tx);
      if (product.bias) sum += product.bias[std::int64_t{group} * product.M + m];
      float& c = product.c.at(image, group, m, n);
      c = product.accumulate ? c + sum : sum;
    }
  }
}

}  // namespace

void launch_gemm_tiled(const BatchedGemm& product) {
  const std::int64_t products = std::int64_t{product.images} * product.groups;
  if (product.M == 0 || product.N == 0 || products == 0) return;
  const TileMapProblem tiles = {.map = TileMap::row_major,
                                .tiles_m = ceil_div(product.M, kTile),
                                .tiles_n = ceil_div(product.N, kTile)};
  if (const auto reason = why_no_grid(tiles)) throw BadInput(*reason);
  const dim3 grid(static_cast<unsigned>(std::int64_t{tiles.tiles_m} * tiles.tiles_n), 1,
                  blocks_for(products, 1, kMaxGridYZ));
  launch(gemm_tiled_batched, {grid, dim3(kTile, kTile)}, product, tiles.tiles_n);
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
