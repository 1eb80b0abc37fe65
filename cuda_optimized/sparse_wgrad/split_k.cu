/// @file split_k.cu
/// @brief sparse_wgrad: parts of a tap's sum go to a workspace, and are added up in one order.
///
/// - Before: split_k_atomics.cu
/// - After: split_k_mma.cu
/// - The kernel that adds up: pair_parts.cuh
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** No block adds to what another block has written. Each part has a place of its own
/// in a workspace; a second launch adds the places of each tap in one order:
///
///     workspace        part 0    1    2    3    4    5    6          the list of pairs:
///                     [Cin]  [  ]  [  ]  [  ]  [  ]  [  ]  [  ]      tap 0: parts 0, 1
///                     [Cout]  |     |     |     |     |     |        tap 1: parts 2, 3, 4, 5
///                      |      |     |     |     |     |     |        tap 2: part 6
///     second launch   dw_0 = 0 + 1 |      |     |     |     |
///                             dw_1 = 2 +  3  +  4  +  5   dw_2 = 6
///
/// Where a tap's parts lie follows from `offsets` alone, which both launches read: the host need
/// not know, and does not wait. How the pairs are cut depends on nothing but the problem: the same
/// bits on every GPU, in every run.
///
/// **Expect.** sweep-64-subm3, 870 thousand pairs: about 1040 parts of 850 pairs. Their blocks of
/// 64 threads all run at once on an H200. Predicted: 165 us for 7.1 GFLOP (110 at the peak), of
/// which 8 for the second launch, which reads 17 MB.
/// **Costs.** Workspace for one [Cin][Cout] a part. Declines other types than float32.
/// **Try.** Sum up the parts in a tree, two by two. Which sums become shorter, and what does that
/// do to the error on real data?
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_wgrad/pair_product.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {
namespace {

/// Grid and block as launch_config().
/// @param parts [slabs][most_parts][Cin][Cout]
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kThreadsPerSm / Tile::kThreads)
    sparse_wgrad_split_k(PairProduct product, float* parts) {
  BlockWork work;
  if (!work_of_block<Tile::kBlockM, Tile::kBlockN>(product.parts, product.offsets,
                                                   product.tiles_out, &work)) {
    return;  // the whole block, at once
  }
  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  add_pairs<Tile, kAligned>(product, work, tile, sums);

  float* const to = parts + std::int64_t{work.slot} * product.Cin * product.Cout;
  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    gemm::store_four<kAligned>(to, product.Cin, product.Cout, work.ci0 + m, work.co0 + n, four);
  });
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return too_many_tiles(conv);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  const PairParts parts = pair_parts_of(conv);
  return sizeof(float) * static_cast<std::size_t>(std::int64_t{parts.most_parts} * parts.slabs() *
                                                  conv.Cin * conv.Cout);
}

template <class Tile>
void launch_with(PairProduct product, float* parts) {
  product.tiles_out = ceil_div(product.Cout, Tile::kBlockN);
  const auto kernel = rows_are_aligned(product) ? sparse_wgrad_split_k<Tile, true>
                                                : sparse_wgrad_split_k<Tile, false>;
  launch(kernel, launch_config<Tile>(product), product, parts);
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  const PairProduct product = pair_product_of(conv, arrays);
  auto* const parts = arrays.workspace<float>();
  switch (tile_channels(conv)) {
    case 128: launch_with<Large>(product, parts); break;
    case 64: launch_with<Medium>(product, parts); break;
    default: launch_with<Small>(product, parts); break;
  }
  launch_sum_pair_parts(product.parts, product.offsets, parts, std::int64_t{conv.Cin} * conv.Cout,
                        arrays.out<float>("dw"));
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return text(pair_product_in_words(conv), ", ", groups_in_words(pair_parts_of(conv)));
}

}  // namespace

Implementation<SparseConvProblem> split_k() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
