/// @file split_k_atomics.cu
/// @brief sparse_wgrad: parts of equal length for all blocks, in tiles of registers; atomics add.
///
/// - Before: output_stationary.cu
/// - After: split_k.cu
/// - The inner part: pair_product.cuh (split_k is made of it, too)
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** All pairs cost the same, whatever their tap. So the pairs of each tap are cut into
/// parts of the same length, with a shorter one at the end, and each block takes one. The centre
/// tap, with several times the pairs of the others, has several times the parts. Each block adds
/// its sums to dw with atomics:
///
///     pairs      tap 0          tap 1 (the centre)               tap 2
///              [ . . . . | . . ][ . . . . | . . . . | . . . . | . ][ . . . . | . ]
///     block        0       1        2         3         4       5      6       7
///                   \     /          \         \       /       /        \     /
///                    dw_0             - - - dw_1 - - - - - - -            dw_2
///
/// A block's tile is 64 x 64 channels (or 128 x 128, or 32 x 32), of which a thread has 8 x 8 sums
/// in registers (4 x 4 in the smallest): two rows of 64 floats serve 4096 multiply-adds.
///
/// **Expect.** sweep-64-subm3, 870 thousand pairs: about 1040 blocks, each of which adds 4096 sums:
/// 4.3 million atomics, where scatter has 3.6 billion. Predicted on an H200: 165 us, of which the
/// multiply-adds alone would take 110 at the peak.
/// **Costs.** Not deterministic: atomics come in any order. dw must be zeroed first. Rows that are
/// not multiples of 16 bytes are copied a float at a time. Declines other types than float32.
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
