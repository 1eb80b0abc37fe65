/// @file split_k.cu
/// @brief sparse_wgrad: deterministic split-K; a second launch adds the parts in order.
///
/// - Before: split_k_atomics.cu
/// - After: split_k_mma.cu
/// - How pairs are cut: shared/pair_parts.cuh; the kernel that adds them: shared/sum_parts.cuh
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** Each block stores its partial result in its own slot of a workspace, and a second
/// launch adds the slots of each tap in a fixed order:
///
///     workspace        part 0    1    2    3    4    5    6          the list of pairs:
///                     [Cin]  [  ]  [  ]  [  ]  [  ]  [  ]  [  ]      tap 0: parts 0, 1
///                     [Cout]  |     |     |     |     |     |        tap 1: parts 2, 3, 4, 5
///                      |      |     |     |     |     |     |        tap 2: part 6
///     second launch   dw_0 = 0 + 1 |      |     |     |     |
///                             dw_1 = 2 +  3  +  4  +  5   dw_2 = 6
///
/// Both launches cut by `offsets`, so the host does not wait, and every run gives the same bits.
///
/// **Expect.** sweep-64-subm3 has 1040 parts of 850 pairs; their blocks of 64 threads run in one
/// wave on an H200. Predicted: 165 us for 7.1 GFLOP (110 us at the peak), 8 us of them for the
/// second launch, which reads 17 MB.
/// @expect lanes_per_output.workspace.store 252 / 27 / 4 = 2.333, 252 parts, in vectors
/// @expect loads_per_output.workspace 252 / 27 = 9.333, each once
/// @expect loads_per_output.features 3838 * 8 / 27648 = 1.1105, a load for each pair, in vectors
/// @expect launches 2
/// **Costs.** Workspace of one [Cin][Cout] per part. Float32 only.
/// **Try.** Add the parts in a binary tree. How does the error change?
#include <algorithm>

#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"
#include "cuda_optimized/sparse_wgrad/shared/sum_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {
namespace {

constexpr int kStages = 3;  ///< Steps whose rows are in shared memory or in flight.
/// Tiles of Cin x Cout channels; a thread has 8 x 8 accumulators, or 4 x 4 of the smallest tile.
using Large = gemm::ThreadTile<128, 128, kStepPairs, 8, 8, 4>;
using Medium = gemm::ThreadTile<64, 64, kStepPairs, 8, 8, 4>;
using Small = gemm::ThreadTile<32, 32, kStepPairs, 4, 4, 4>;
[[maybe_unused]] constexpr int kThreadsPerSm = 512;  ///< With up to 128 registers each.

/// Grid (parts of a slab, tiles of channels, slabs), block (Tile::kThreads).
/// @param parts [slabs][most_parts][Cin][Cout]
/// @tparam kAligned rows of features and dy are aligned to 16 bytes
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kThreadsPerSm / Tile::kThreads)
    sparse_wgrad_split_k(PairProduct product, float* parts) {
  BlockWork work;
  if (!work_of_block<Tile::kBlockM, Tile::kBlockN>(product.parts, product.offsets,
                                                   ceil_div(product.Cout, Tile::kBlockN), &work)) {
    return;  // uniform for the block
  }
  constexpr int kFloatsA = kStepPairs * Tile::kBlockM, kFloatsB = kStepPairs * Tile::kBlockN;
  RowGather<PlainRows<Tile::kBlockM>, Tile::kThreads, kAligned> inputs(
      product.features, product.Cin, work.ci0, product.pairs, 1, work.part.first, work.part.count);
  RowGather<PlainRows<Tile::kBlockN>, Tile::kThreads, kAligned> gradients(
      product.dy, product.Cout, work.co0, product.pairs, 2, work.part.first, work.part.count);
  const auto stage_of = [](int step) {
    return dynamic_shared<float>() + step % kStages * (kFloatsA + kFloatsB);
  };
  const int steps = ceil_div(work.part.count, kStepPairs);
  const auto ask_for = [&](int step) {
    if (step < steps) {
      inputs.copy_rows(stage_of(step));
      gradients.copy_rows(stage_of(step) + kFloatsA);
      inputs.load_rows();
      gradients.load_rows();
    }
    ptx::cp_async_commit_group();  // committed even without copies, since the waits count groups
  };

  const Tile tile(threadIdx.x);
  float sums[Tile::kThreadM][Tile::kThreadN] = {};
  inputs.load_rows();
  gradients.load_rows();
  for (int step = 0; step < kStages - 1; ++step) ask_for(step);
  // Without the pipeline the loop would be
  //
  //     for 16 pairs of the part:
  //       a_tile[p][m] = features[in of pair p][ci0 + m],  b_tile[p][n] = dy[out of pair p][co0 +
  //       n]
  //       __syncthreads();  for p, i, j:  sums[i][j] += a_tile[p][row i] * b_tile[p][column
  //       j]
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    // This thread's copies of the step have landed. The barrier makes those of all threads visible,
    // and separates the loads of the previous step from the copies into its stage.
    __syncthreads();
    ask_for(step + kStages - 1);
    tile.template multiply<Tile::kBlockM, Tile::kBlockN>(stage_of(step), stage_of(step) + kFloatsA,
                                                         sums);
  }

  float* const to = parts + std::int64_t{work.slot} * product.Cin * product.Cout;
  tile.for_each_four(sums, [&](int m, int n, float4 four) {
    const std::int64_t ci = work.ci0 + m, co = work.co0 + n;
    if (ci >= product.Cin || co >= product.Cout) return;
    float* const at = to + ci * product.Cout + co;
    if constexpr (kAligned) {
      *reinterpret_cast<float4*>(at) = four;
    } else {
      at[0] = four.x;
      if (co + 1 < product.Cout) at[1] = four.y;
      if (co + 2 < product.Cout) at[2] = four.z;
      if (co + 3 < product.Cout) at[3] = four.w;
    }
  });
}

constexpr int kLongestPart = 1 << 16;  ///< Pairs of a part, at most.

/// The parts of a problem: as many as blocks run at once on an H200.
PairParts pair_parts_of(const SparseConvProblem& conv) {
  const int channels = tile_channels(conv);
  const std::int64_t tiles =
      std::int64_t{ceil_div(conv.Cin, channels)} * ceil_div(conv.Cout, channels);
  const std::int64_t blocks = 132 * (channels == 128 ? 2 : 8);
  return cut_pairs(conv, std::max<std::int64_t>(blocks / tiles, 1), kStepPairs, kLongestPart);
}

/// The parameters of the GEMM of a problem.
PairProduct pair_product_of(const SparseConvProblem& conv, const SparseWgradArrays& arrays) {
  return {.Cin = conv.Cin,
          .Cout = conv.Cout,
          .parts = pair_parts_of(conv),
          .features = arrays.features,
          .dy = arrays.dy,
          .pairs = arrays.pairs,
          .offsets = arrays.offsets};
}

/// Whether rows begin at multiples of 16 bytes.
bool rows_are_aligned(const PairProduct& product) {
  const auto address = reinterpret_cast<std::uintptr_t>(product.features) |
                       reinterpret_cast<std::uintptr_t>(product.dy);
  return (product.Cin | product.Cout) % 4 == 0 && address % 16 == 0;
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  const int channels = tile_channels(conv);
  if (std::int64_t{ceil_div(conv.Cin, channels)} * ceil_div(conv.Cout, channels) > kMaxGridYZ) {
    return "more than 65535 tiles of 128 x 128 channels";
  }
  return {};
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  const PairParts parts = pair_parts_of(conv);
  return sizeof(float) * static_cast<std::size_t>(std::int64_t{parts.most_parts} * parts.slabs() *
                                                  conv.Cin * conv.Cout);
}

/// Calls body.operator()<tile>() with the tile for a problem's channels.
template <class Body>
void with_tile(const SparseConvProblem& conv, const Body& body) {
  switch (tile_channels(conv)) {
    case 128: body.template operator()<Large>(); break;
    case 64: body.template operator()<Medium>(); break;
    default: body.template operator()<Small>(); break;
  }
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context& context) {
  const PairProduct product = pair_product_of(conv, arrays);
  auto* const parts = context.workspace_as<float>();
  with_tile(conv, [&]<class Tile>() {
    const auto kernel = rows_are_aligned(product) ? sparse_wgrad_split_k<Tile, true>
                                                  : sparse_wgrad_split_k<Tile, false>;
    const int tiles = ceil_div(conv.Cin, Tile::kBlockM) * ceil_div(conv.Cout, Tile::kBlockN);
    const dim3 grid(static_cast<unsigned>(product.parts.most_parts), static_cast<unsigned>(tiles),
                    static_cast<unsigned>(product.parts.slabs()));
    constexpr auto kStepFloats = std::size_t{kStepPairs} * (Tile::kBlockM + Tile::kBlockN);
    launch(kernel, {grid, dim3(Tile::kThreads), kStages * kStepFloats * sizeof(float)}, product,
           parts);
  });
  launch_sum_pair_parts(product.parts, product.offsets, parts, std::int64_t{conv.Cin} * conv.Cout,
                        arrays.dw);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  const PairParts parts = pair_parts_of(conv);
  const int channels = tile_channels(conv);
  return text(channels, " x ", channels,
              (conv.Cin | conv.Cout) % 4 == 0 ? ", channels in fours" : "", ", ",
              in_words(parts, kStepPairs, kLongestPart), ", ", groups_in_words(parts));
}

}  // namespace

extern const Implementation<SparseWgradArrays> split_k = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
