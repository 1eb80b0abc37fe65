/// @file gather_gemm_scatter.cu
/// @brief sparse_conv: gather-GEMM-scatter; per tap, rows are gathered, multiplied, and added to y.
///
/// - Before: output_stationary.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** All pairs of a tap are multiplied by the same matrix. After their rows are
/// gathered into a contiguous buffer, a dense GEMM remains (here that of
/// cuda_optimized/gemm/cp_async.cu). Its rows are then added to their outputs without atomics, as
/// in spconv 1. Three kernels for each tap:
///
///     features   gather_rows    gathered  multiply_rows  product   scatter_add_rows    y
///     row 0 ---.             .-> [ Cin ]                [ Cout ] -.               ,-> row 0
///     row 1     `------------|-> [ Cin ]   x  W_k  =    [ Cout ] --|--------------`   row 1
///     row 2 -----------------`                                     `----------------> row 2
///
/// **Expect.** sweep-64-subm3 has 125,562 sites, 870,810 pairs and 27 taps: 79 launches, about 1.5
/// us each even without work. A pair moves 3 Cin + 4 Cout floats: 3 accesses of its input row, 4 of
/// its product and output row. The 745,248 pairs outside the centre tap move 1.3 GB, mostly within
/// L2, because the buffers of a tap are 15 MB. Predicted on an H200: 450 us.
/// @expect launches 3 * 26 + 1 = 79, the centre needs no buffers
/// @expect lanes_per_output.workspace.store 2 * 3326 / 512 / 4 = 3.248, rows and products of pairs
/// @expect lanes.y.atomic 0
/// **Costs.** Workspace of most_pairs * (Cin + Cout) floats, for the largest tap. Most of the GEMMs
/// are too small to fill a large GPU. Float32 only.
/// **Try.** Remove the gather: let multiply_rows look up the rows. Which data does a block read
/// twice if Cout exceeds its tile, and which accesses are saved?
#include "core/cuda/row_epilogue.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"
#include "cuda_optimized/sparse_conv/shared/row_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kTileBlocksPerSm = 16;         ///< Upper bound per SM; blocks stride over more tiles.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Blocks of 256 threads per SM: up to 128 registers
                                             ///< per thread.

/// The pairs of a tap.
struct Tap {
  const std::int32_t* pairs;   ///< [P][3], of all taps
  const std::int32_t* offset;  ///< where this tap's pairs begin, and those of the next
};

/// gathered[i] = features[in] for the tap's pairs i. Rows of both consist of `pieces` pieces.
/// Any one-dimensional grid. Block (along a row, rows).
template <class Piece>
__global__ void sparse_conv_gather_gemm_scatter_gather_rows(Tap tap, std::int64_t pieces,
                                                            const Piece* features,
                                                            Piece* gathered) {
  const std::int64_t begin = tap.offset[0], count = tap.offset[1] - begin;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (; i < count; i += grid_rows) {
    const std::int64_t in = tap.pairs[(begin + i) * kPairColumns + 1];
    for (std::int64_t c = threadIdx.x; c < pieces; c += blockDim.x) {
      gathered[i * pieces + c] = features[in * pieces + c];
    }
  }
}

/// c = a * b + bias, bias [N] or null; `offset` as in Tap, or null where all rows of a are taken.
/// Any one-dimensional grid. Block (Tile::kThreads).
/// @tparam kAligned b and c can be read and written as float4
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    sparse_conv_gather_gemm_scatter_multiply_rows(RowProduct product, const std::int32_t* offset,
                                                  const float* bias) {
  if (offset != nullptr) product.M = offset[1] - offset[0];
  const std::int64_t across = ceil_div(product.N, Tile::kBlockN);
  const std::int64_t tiles = ceil_div<std::int64_t>(product.M, Tile::kBlockM) * across;
  const int steps = ceil_div(product.K, Tile::kBlockK);
  const Tile tile(threadIdx.x);

  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int row = static_cast<int>(t / across), column = static_cast<int>(t % across);
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    using Copies = TileCopies<Tile, kAligned>;
    Copies copies(product, row, column);
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

    const std::int64_t m0 = std::int64_t{row} * Tile::kBlockM;
    const std::int64_t n0 = std::int64_t{column} * Tile::kBlockN;
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      if (bias != nullptr) four = plus(gemm::load_four<false>(bias, 1, product.N, 0, n0 + n), four);
      gemm::store_four<kAligned>(product.c, product.M, product.N, m0 + m, n0 + n, four);
    });
    __syncthreads();  // separates the last loads of this tile from the first copies of the next
  }
}

/// y[out] += products[i] for the tap's pairs i. No atomics: within a tap no two pairs have the same
/// row `out`, and launches of different taps run in order. Any one-dimensional grid. Block (along a
/// row, rows).
template <class Piece>
__global__ void sparse_conv_gather_gemm_scatter_scatter_add_rows(Tap tap, std::int64_t pieces,
                                                                 const Piece* products, Piece* y) {
  const std::int64_t begin = tap.offset[0], count = tap.offset[1] - begin;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (; i < count; i += grid_rows) {
    const std::int64_t out = tap.pairs[(begin + i) * kPairColumns + 2];
    for (std::int64_t c = threadIdx.x; c < pieces; c += blockDim.x) {
      const Piece before = y[out * pieces + c], more = products[i * pieces + c];
      y[out * pieces + c] = plus(before, more);
    }
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  float* gathered;    ///< The rows of a tap's pairs,
  float* products;    ///< and their products.
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const SparseConvProblem& conv, std::byte* begin) {
  const std::int64_t rows = conv.most_pairs;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.gathered = cutter.take<float>(checked_product({rows, conv.Cin}, "gathered channels"));
  work.products = cutter.take<float>(checked_product({rows, conv.Cout}, "products' channels"));
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return workspace_at(conv, nullptr).bytes;
}

/// The centre tap of `subm`, or -1. Its input and output rows are the same: nothing is gathered,
/// and its GEMM writes y first.
int centre_of(const SparseConvProblem& conv) {
  return conv.book.mode == SparseMode::subm ? conv.book.KV / 2 : -1;
}

/// Average number of pairs of a tap.
std::int64_t usual_pairs(const SparseConvProblem& conv) { return conv.pairs / conv.book.KV; }

/// See sparse_conv_gather_gemm_scatter_gather_rows().
void gather(const SparseConvProblem& conv, Tap tap, const float* features, float* gathered) {
  with_piece(conv.Cin, is_aligned(features), [&]<class Piece>(int pieces) {
    const dim3 block = row_block(pieces);
    launch(sparse_conv_gather_gemm_scatter_gather_rows<Piece>,
           {row_grid(conv.most_pairs, block), block}, tap, pieces,
           reinterpret_cast<const Piece*>(features), reinterpret_cast<Piece*>(gathered));
  });
}

/// See sparse_conv_gather_gemm_scatter_multiply_rows(); product.M is an upper bound of the rows.
void multiply(const SparseConvProblem& conv, const RowProduct& product, std::int64_t usual_rows,
              const std::int32_t* offset, const float* bias) {
  const bool aligned =
      channels_in_fours(product.N) && is_aligned(product.b) && is_aligned(product.c);
  with_tile(usual_rows, conv, [&]<class Tile>(std::type_identity<Tile>) {
    const auto kernel = aligned ? sparse_conv_gather_gemm_scatter_multiply_rows<Tile, true>
                                : sparse_conv_gather_gemm_scatter_multiply_rows<Tile, false>;
    const std::int64_t tiles =
        std::int64_t{ceil_div(product.M, Tile::kBlockM)} * ceil_div(product.N, Tile::kBlockN);
    const dim3 grid(blocks_for(tiles, 1, std::int64_t{kTileBlocksPerSm} * multiprocessors()));
    constexpr std::size_t kSharedBytes = TileCopies<Tile, true>::kSharedBytes;
    launch(kernel, {grid, dim3(Tile::kThreads), kSharedBytes}, product, offset, bias);
  });
}

/// See sparse_conv_gather_gemm_scatter_scatter_add_rows().
void scatter_add(const SparseConvProblem& conv, Tap tap, const float* products, float* y) {
  with_piece(conv.Cout, is_aligned(y), [&]<class Piece>(int pieces) {
    const dim3 block = row_block(pieces);
    launch(sparse_conv_gather_gemm_scatter_scatter_add_rows<Piece>,
           {row_grid(conv.most_pairs, block), block}, tap, pieces,
           reinterpret_cast<const Piece*>(products), reinterpret_cast<Piece*>(y));
  });
}

/// features [N][Cin], weights [KV][Cin][Cout], pairs [P][3], offsets [KV + 1], y [M][Cout].
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(conv, context.workspace_as<std::byte>());
  const float* features = arrays.features;
  const float* weights = arrays.weights;
  const float* bias = arrays.bias;
  const auto* pairs = arrays.pairs;
  const auto* offsets = arrays.offsets;
  float* y = arrays.y;

  const auto weights_of = [&](int k) { return weights + std::int64_t{k} * conv.Cin * conv.Cout; };
  const int centre = centre_of(conv);
  if (centre >= 0) {
    multiply(conv, {conv.M, conv.Cout, conv.Cin, features, weights_of(centre), y}, conv.M, nullptr,
             bias);
  } else {
    launch_fill_rows(conv.M, conv.Cout, bias, y);
  }
  const auto most_pairs = static_cast<int>(conv.most_pairs);
  for (int k = 0; k < conv.book.KV && conv.pairs > 0; ++k) {
    if (k == centre) continue;
    const Tap tap{pairs, offsets + k};
    gather(conv, tap, features, work.gathered);
    multiply(conv, {most_pairs, conv.Cout, conv.Cin, work.gathered, weights_of(k), work.products},
             usual_pairs(conv), offsets + k, nullptr);
    scatter_add(conv, tap, work.products, y);
  }
  launch_activate(conv.M, conv.Cout, conv.activation, y);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return text(centre_of(conv) >= 0 ? text("the centre ", tile_in_words(conv.M, conv), ", ") : "",
              conv.pairs == 0 ? "no pairs" : text("taps ", tile_in_words(usual_pairs(conv), conv)),
              channels_in_fours(conv.Cin) ? ", inputs in fours" : "",
              channels_in_fours(conv.Cout) ? ", outputs in fours" : "",
              conv.activation == Activation::none ? "" : ", then the activation");
}

}  // namespace

extern const Implementation<SparseConvArrays> gather_gemm_scatter = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
