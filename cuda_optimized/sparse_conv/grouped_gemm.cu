/// @file grouped_gemm.cu
/// @brief sparse_conv: grouped GEMM; one launch multiplies the tiles of all taps, another reduces.
///
/// - Before: output_stationary.cu
/// - After: fetch_on_demand.cu
/// - Rows, tiles and copies: shared/row_tiles.cuh
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** The taps are GEMMs of different heights: under `subm`, the centre tap of a LiDAR
/// sweep has four times the pairs of an average one. Each tap's pairs are cut into tiles of 128
/// rows, and one launch computes all tiles.
///
///     tap 0        [tile][tile][til.]                block 0, 1, 2
///     tap 1        [ti..]                            block 3
///     tap 2        [tile][tile][tile][t...]          block 4, 5, 6, 7
///
/// The first launch gathers the rows of all pairs, the second multiplies. A scatter of all taps at
/// once would need atomics, so in the third launch each output *collects* its products.
///
/// **Expect.** An output adds its products in the order of the taps and is written once, with bias
/// and activation: deterministic. A pair moves 3 Cin + 2 Cout floats. The buffers, 223 MB each for
/// sweep-64-subm3, exceed the L2 cache. Predicted on an H200: gather 60 us, GEMM 190 us, collect 60
/// us.
/// @expect launches 3
/// @expect loads_per_output.features 3838 / 512 / 4 = 1.874, gathered once, in vectors
/// @expect lanes_per_output.y.store 1 / 4 = 0.25, once, in vectors
/// **Costs.** Workspace of P * (Cin + Cout) floats and KV * M indices. Float32 only.
/// **Try.** Compute the taps in groups whose buffers fit the L2 cache. How does the collect change?
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"
#include "cuda_optimized/sparse_conv/shared/row_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr std::int64_t kMaxTiles = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                             ///< tiles.
constexpr int kAtOnce = 4;                   ///< Rows, or products, that a thread has in flight.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Blocks of 256 threads per SM: up to 128 registers
                                             ///< per thread.

/// gathered[i] = features[in] for all pairs i, and place[k][out] = i: the index of the product of
/// tap k for `out`. Any one-dimensional grid. Block (along a row, rows).
template <class Piece>
__global__ void sparse_conv_grouped_gemm_gather_rows(SparseConvProblem conv,
                                                     const std::int32_t* pairs, std::int32_t* place,
                                                     std::int64_t pieces, const Piece* features,
                                                     Piece* gathered) {
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (; first < conv.pairs; first += kAtOnce * grid_rows) {
    for (std::int64_t c = threadIdx.x; c < pieces; c += blockDim.x) {
      // One loop per dependent load, so that the loads of kAtOnce rows are in flight together.
      std::int64_t in[kAtOnce];
      Piece parts[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t i = first + j * grid_rows;
        in[j] = i < conv.pairs ? pairs[i * kPairColumns + 1] : -1;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        parts[j] = in[j] >= 0 ? features[in[j] * pieces + c] : zeros<Piece>();
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (in[j] < 0) break;
        const std::int64_t i = first + j * grid_rows;
        gathered[i * pieces + c] = parts[j];
        if (c > 0) continue;
        const std::int32_t* pair = pairs + i * kPairColumns;
        place[std::int64_t{pair[0]} * conv.M + pair[2]] = static_cast<std::int32_t>(i);
      }
    }
  }
}

/// products[i] = gathered[i] * weights[k] for all pairs i: a tile of one tap at a time.
/// Any one-dimensional grid. Block (Tile::kThreads).
/// @tparam kAligned weights and products can be read and written as float4
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    sparse_conv_grouped_gemm_multiply_rows(SparseConvProblem conv, const std::int32_t* offsets,
                                           const float* gathered, const float* weights,
                                           float* products) {
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  const std::int64_t across = ceil_div(conv.Cout, Tile::kBlockN);
  const std::int64_t slots = first_slot(conv.pairs, conv.book.KV, Tile::kBlockM);
  const int steps = ceil_div(conv.Cin, Tile::kBlockK);
  const Tile tile(threadIdx.x);

  for (std::int64_t t = blockIdx.x; t < slots * across; t += gridDim.x) {
    const PairTile rows = tile_in_slot(t / across, offsets, conv.book.KV, Tile::kBlockM);
    if (rows.count <= 0) continue;  // the whole block
    // Each tile is a separate GEMM of these rows and their tap's weights.
    const RowProduct product{rows.count,
                             conv.Cout,
                             conv.Cin,
                             gathered + rows.first * Cin,
                             weights + rows.k * Cin * Cout,
                             products + rows.first * Cout};
    const int n = static_cast<int>(t % across);
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    // The GEMM of a tile, which without the ring of stages would be
    //
    //     for step:  copy a_tile, b_tile;  __syncthreads();
    //       for k, i, j:  sums[i][j] += a_tile[k][rows of this thread] * b_tile[k][columns]
    //
    using Copies = TileCopies<Tile, kAligned>;
    Copies copies(product, 0, n);
    // One group of copies per stage, even an empty one, so that waiting for all but the last
    // kStages - 2 groups has the same meaning in every step.
    for (int stage = 0; stage < kStages<Tile> - 1; ++stage) {
      if (stage < steps) copies.copy(stage, stage);
      ptx::cp_async_commit_group();
    }
    int read = 0, write = kStages<Tile> - 1;  // stages
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait_group<kStages<Tile> - 2>();
      // This thread's copies of the step have landed. The barrier makes those of all threads
      // visible, and separates the loads of the step before from the copies into its stage.
      __syncthreads();
      if (step + kStages<Tile> - 1 < steps) copies.copy(step + kStages<Tile> - 1, write);
      ptx::cp_async_commit_group();
      tile.template multiply<Copies::kPitchA, Copies::kPitchB>(Copies::a_tile(read),
                                                               Copies::b_tile(read), sums);
      read = read + 1 == kStages<Tile> ? 0 : read + 1;
      write = write + 1 == kStages<Tile> ? 0 : write + 1;
    }

    const std::int64_t n0 = std::int64_t{n} * Tile::kBlockN;
    tile.for_each_four(sums, [&](int m, int column, float4 four) {
      gemm::store_four<kAligned>(product.c, product.M, product.N, m, n0 + column, four);
    });
    __syncthreads();  // separates the last loads of this tile from the first copies of the next
  }
}

/// y[out] = activation(bias + products of the taps, in tap order). bias: a row, or null. Any
/// one-dimensional grid. Block (along a row, rows).
template <class Piece>
__global__ void sparse_conv_grouped_gemm_collect_rows(SparseConvProblem conv,
                                                      const std::int32_t* mask,
                                                      const std::int32_t* place,
                                                      std::int64_t pieces, const Piece* products,
                                                      const Piece* bias, Piece* y) {
  const std::int64_t M = conv.M;
  const int words = mask_words(conv.book.KV);
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  std::int64_t out = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (; out < M; out += grid_rows) {
    for (std::int64_t c = threadIdx.x; c < pieces; c += blockDim.x) {
      Piece sum = bias != nullptr ? bias[c] : zeros<Piece>();
      for (int word = 0; word < words; ++word) {
        auto left = static_cast<unsigned>(mask[out * words + word]);  // taps with a product
        while (left != 0) {
          std::int64_t found[kAtOnce];
#pragma unroll
          for (int j = 0; j < kAtOnce; ++j) {
            const std::int64_t k = 32 * word + __ffs(static_cast<int>(left)) - 1;
            found[j] = left != 0 ? place[k * M + out] : -1;
            left &= left - 1;  // stays 0
          }
          Piece parts[kAtOnce];
#pragma unroll
          for (int j = 0; j < kAtOnce; ++j)
            parts[j] = found[j] >= 0 ? products[found[j] * pieces + c] : zeros<Piece>();
#pragma unroll
          for (int j = 0; j < kAtOnce; ++j) sum = plus(sum, parts[j]);
        }
      }
      y[out * pieces + c] = activated(conv.activation, sum);
    }
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  float* gathered;      ///< The rows of all pairs,
  float* products;      ///< and their products.
  std::int32_t* place;  ///< place[k][out]: indices of the products of each output.
  std::size_t bytes;    ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const SparseConvProblem& conv, std::byte* begin) {
  const std::int64_t rows = conv.pairs;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.gathered = cutter.take<float>(checked_product({rows, conv.Cin}, "gathered channels"));
  work.products = cutter.take<float>(checked_product({rows, conv.Cout}, "products' channels"));
  work.place =
      cutter.take<std::int32_t>(checked_product({conv.book.KV, conv.M}, "places of products"));
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return workspace_at(conv, nullptr).bytes;
}

/// See sparse_conv_grouped_gemm_gather_rows().
void gather(const SparseConvProblem& conv, const std::int32_t* pairs, std::int32_t* place,
            const float* features, float* gathered) {
  with_piece(conv.Cin, is_aligned(features), [&]<class Piece>(int pieces) {
    const dim3 block = row_block(pieces);
    launch(sparse_conv_grouped_gemm_gather_rows<Piece>, {row_grid(conv.pairs, block), block}, conv,
           pairs, place, pieces, reinterpret_cast<const Piece*>(features),
           reinterpret_cast<Piece*>(gathered));
  });
}

/// See sparse_conv_grouped_gemm_multiply_rows().
void multiply(const SparseConvProblem& conv, const std::int32_t* offsets, const float* gathered,
              const float* weights, float* products) {
  const bool aligned = channels_in_fours(conv.Cout) && is_aligned(weights);
  with_tile(conv.pairs, conv, [&]<class Tile>(std::type_identity<Tile>) {
    const auto kernel = aligned ? sparse_conv_grouped_gemm_multiply_rows<Tile, true>
                                : sparse_conv_grouped_gemm_multiply_rows<Tile, false>;
    const std::int64_t tiles =
        first_slot(conv.pairs, conv.book.KV, Tile::kBlockM) * ceil_div(conv.Cout, Tile::kBlockN);
    const dim3 grid(blocks_for(tiles, 1, kMaxTiles));
    constexpr std::size_t kSharedBytes = TileCopies<Tile, true>::kSharedBytes;
    launch(kernel, {grid, dim3(Tile::kThreads), kSharedBytes}, conv, offsets, gathered, weights,
           products);
  });
}

/// See sparse_conv_grouped_gemm_collect_rows().
void collect(const SparseConvProblem& conv, const std::int32_t* mask, const std::int32_t* place,
             const float* products, const float* bias, float* y) {
  with_piece(conv.Cout, is_aligned(bias) && is_aligned(y), [&]<class Piece>(int pieces) {
    const dim3 block = row_block(pieces);
    launch(sparse_conv_grouped_gemm_collect_rows<Piece>, {row_grid(conv.M, block), block}, conv,
           mask, place, pieces, reinterpret_cast<const Piece*>(products),
           reinterpret_cast<const Piece*>(bias), reinterpret_cast<Piece*>(y));
  });
}

/// features [N][Cin], weights [KV][Cin][Cout], pairs [P][3], offsets [KV + 1], mask [M][words], y
/// [M][Cout].
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(conv, context.workspace_as<std::byte>());
  const float* features = arrays.features;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  const auto* pairs = arrays.pairs;
  const auto* offsets = arrays.offsets;
  float* y = arrays.y;

  gather(conv, pairs, work.place, features, work.gathered);
  if (conv.pairs > 0) multiply(conv, offsets, work.gathered, weights, work.products);
  collect(conv, arrays.mask, work.place, work.products, bias, y);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return text(conv.pairs == 0 ? "no pairs" : tile_in_words(conv.pairs, conv),
              channels_in_fours(conv.Cin) ? ", inputs in fours" : "",
              channels_in_fours(conv.Cout) ? ", outputs in fours" : "");
}

}  // namespace

extern const Implementation<SparseConvArrays> grouped_gemm = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
