/// @file split_k_atomics.cu
/// @brief sparse_wgrad: parts of equal length for all blocks, in tiles of registers; atomics add.
///
/// - Before: output_stationary.cu (a block goes through all pairs of its tap)
/// - After:  split_k.cu (the same parts, added up in one order)
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** Two at once, because neither pays alone. The first: all pairs cost the same, of
/// whatever tap they are. So the list of pairs is cut into parts of the same length, and each block
/// takes one. The centre tap, with several times the pairs of the others, has several times the
/// parts. Each block adds its sums to dw with atomics:
///
///     pairs      tap 0          tap 1 (the centre)               tap 2
///              [ . . . . | . . ][ . . . . | . . . . | . . . . | . ][ . . . . | . ]
///     block        0       1        2         3         4       5      6       7
///                   \     /          \         \       /       /        \     /
///                    dw_0             - - - dw_1 - - - - - - -            dw_2
///
/// The second: a block's tile is 64 x 64 channels (or 128 x 128, or 32 x 32), of which a thread has
/// 8 x 8 sums in registers. A row of features and one of dy, 64 floats each, now serve 4096
/// multiply-adds. The rows are gathered as they lie, in pieces of 16 bytes, without passing through
/// registers: a pair is a step of the sum, and its two rows are what an outer product needs.
///
///     pair i     features[in]   ->  a [pair][ci]     thread (ci, co):  4 loads of 16 bytes
///                dy[out]        ->  b [pair][co]     from shared memory, 64 multiply-adds
///
/// Numbers of rows are loaded a step before the rows, and rows two steps before their products.
///
/// **Expect.** 1056 blocks on a sweep of 125,562 sites, each of which adds 4096 sums: 4.3 million
/// atomics, where scatter has 3.2 billion. On an H200, 64 to 64 channels: 165 us predicted, 100 of
/// them would be the multiply-adds alone at the peak.
/// **Costs.** Not deterministic: atomics come in any order. dw must be zeroed first. Rows that are
/// not multiples of 16 bytes are copied a float at a time. Declines other types than float32.
///
/// **Try.** Cut each tap's pairs into the same number of parts instead. Which block is the last one
/// to finish, and how long is its part?
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_wgrad/pair_product.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {
namespace {

/// Grid and block as launch_config(). @param dw [KV][Cin][Cout], zeros at first
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kThreadsPerSm / Tile::kThreads)
    sparse_wgrad_split_k_atomics(PairProduct product, float* dw) {
  BlockWork work;
  if (!work_of_block<Tile::kBlockM, Tile::kBlockN>(product.parts, product.offsets,
                                                   product.tiles_out, &work)) {
    return;  // the whole block, at once
  }
  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  add_pairs<Tile, kAligned>(product, work, tile, sums);

  const std::int64_t Cin = product.Cin, Cout = product.Cout;
  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    if (work.ci0 + m >= Cin) return;
    float* const to = dw + (work.part.k * Cin + work.ci0 + m) * Cout + work.co0 + n;
    const float of[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (work.co0 + n + j < Cout) atomicAdd(to + j, of[j]);
    }
  });
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return too_many_tiles(conv);
}

template <class Tile>
void launch_with(PairProduct product, float* dw) {
  product.tiles_out = ceil_div(product.Cout, Tile::kBlockN);
  const auto kernel = rows_are_aligned(product) ? sparse_wgrad_split_k_atomics<Tile, true>
                                                : sparse_wgrad_split_k_atomics<Tile, false>;
  launch(kernel, launch_config<Tile>(product), product, dw);
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  const PairProduct product = pair_product_of(conv, arrays);
  auto* const dw = arrays.out<float>("dw");
  const std::int64_t weights = std::int64_t{conv.book.KV} * conv.Cin * conv.Cout;
  check(cudaMemsetAsync(dw, 0, static_cast<std::size_t>(weights) * sizeof(float)));
  switch (tile_channels(conv)) {
    case 128: launch_with<Large>(product, dw); break;
    case 64: launch_with<Medium>(product, dw); break;
    default: launch_with<Small>(product, dw); break;
  }
}

}  // namespace

Implementation<SparseConvProblem> split_k_atomics() {
  return {.supports = supports, .run = run, .choice = pair_product_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
