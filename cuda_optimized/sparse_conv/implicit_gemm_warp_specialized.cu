/// @file implicit_gemm_warp_specialized.cu
/// @brief sparse_conv with producer warps: four warps gather, a warpgroup only multiplies.
///
/// - Before: implicit_gemm_mma.cu
/// - After: implicit_gemm_fused_sort.cu
/// - The loops: shared/stage_product.cuh
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** Threads that copy have nothing to multiply, and threads that multiply have nothing
/// to look up. Four warps find taps and rows and ask for them; a warpgroup does nothing but wgmma:
///
///     producers, 32 rows a warp            stages               consumers, 128 rows
///     wait for empty[s]               +---------------+         wait for full[s]
///     rows: cp.async, 16 bytes each ->| tap 3 | tap 7 |         wgmma, tap by tap
///     weights: one bulk copy a tap  ->| 32 channels   |         all but this stage's are done:
///     arrive at full[s] when landed   +---------------+---->    arrive at empty[s - 1]
///
/// Two mbarriers a stage stand between them. A producer does not wait for its copies: the hardware
/// arrives in its place when they have landed, so all stages may be on their way at once. While
/// consumers store a tile, producers are in the next one. A stage holds as many taps as fit 128
/// bytes: four of 16 channels of 16 bits, two of 32.
///
/// **Expect.** The bytes from L2 decide. In 16 bits, for sweep-16-subm3, sweep-32-subm3,
/// sweep-64-subm3, sweep-128-subm3: 67, 119, 263 and 713 MB of rows, weights, indices and y. At 4
/// TB/s these are 17, 30, 66 and 178 us; wgmma alone would take 2, 5, 17 and 64 us on an H200.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect barriers_per_block 1, all else waits at mbarriers
/// @expect loads_per_output.features 1 / 4 = 0.25, rounded once, in vectors
/// @expect loads_per_output.nbr 3838 / 16384 = 0.234, of pairs alone
/// @expect launches 2, with the rounding
/// **Costs.** 256 threads and 64 to 100 KB of shared memory a block. Workspace for weights, and for
/// features that are float32 or unaligned. A tap that one row needs is multiplied for all 128.
/// Declined: precision fp32; GPUs other than compute capability 9.0; over 1024 taps.
/// **Try.** Tune the table of shapes (shared/stage_shapes.cuh). With 128 channels a stage could
/// hold half a tap's channels: which of the numbers above would change?
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/stage_preparation.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_product.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

using namespace producers;

constexpr int kCopyThreads = 256;             ///< Of prepare().
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More pieces than these take: threads stride.

/// A thread makes a piece at a time, so that loads of neighbours lie side by side. Any
/// one-dimensional grid.
template <class Shape>
__global__ void sparse_conv_implicit_gemm_warp_specialized_prepare(
    Preparation<typename Shape::Number> p) {
  using T = typename Shape::Number;
  constexpr int kOfBlock = Shape::N * Shape::kPieces;
  let_next_kernel_begin();
  if (thread_of_grid() == 0) *p.handed_out = 0;
  T numbers[Shape::kCount];
  for (const std::int64_t i : grid_stride(p.template weight_pieces<Shape>())) {
    const std::int64_t block = i / kOfBlock;
    const auto of_block = static_cast<int>(i % kOfBlock);
    const int n = of_block % Shape::N;
    const int piece = of_block / Shape::N;
    const std::int64_t above = block / p.chunks;
    const int s0 = static_cast<int>(block - above * p.chunks) * Shape::kDepth;
    const std::int64_t tile = above / p.taps, tap = above - tile * p.taps;
    const int c = static_cast<int>(tile) * Shape::N + n;
#pragma unroll
    for (int j = 0; j < Shape::kCount; ++j) {
      const int s = s0 + piece * Shape::kCount + j;
      numbers[j] = T{};
      if (s < p.summed && c < p.channels) {
        numbers[j] = as_factor(p.weights[(tap * p.summed + s) * p.channels + c]);
      }
    }
    store_piece(p.blocks,
                block * kOfBlock + n * Shape::kPieces + (piece ^ permutation<Shape::kPieces>(n)),
                numbers);
  }
  copy_rows<Shape>(p);
}

/// Block kBlockThreads; grid: tiles, or fewer blocks.
template <class Shape>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    sparse_conv_implicit_gemm_warp_specialized(Pass<typename Shape::Number> pass, bool pieces) {
  __shared__ Ring<Shape> ring;
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      // Each producer arrives when its copies have landed, and once more the one that asks for
      // weights.
      ptx::mbarrier_init(&ring.full[i], kProducers + 1);
      ptx::mbarrier_init(&ring.empty[i], kConsumers / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers
  if (threadIdx.x < kConsumers) {
    set_registers<Shape::kConsumerRegisters, Shape::kEvenly>();
    consume(pass, ring, stages, pieces);
  } else {
    set_registers<Shape::kProducerRegisters, Shape::kEvenly>();
    const std::int32_t row = own_row<Shape>(pass, static_cast<int>(blockIdx.x));
    wait_for_kernel_before();  // weights and rows as prepare() leaves them, and its counter
    produce(pass, row, ring, stages);
  }
}

/// Two launches: weights as wgmma takes them, and rows, if they need it; then the product.
/// @param sources rows of conv.from
template <class Shape>
void launch_shape(const GatheredRows<typename Shape::Number>& conv, std::int64_t sources,
                  std::byte* workspace) {
  const auto preparation = preparation_of<Shape>(conv, sources, workspace);
  const std::int64_t pieces =
      std::max(preparation.template weight_pieces<Shape>(), preparation.pieces);
  launch(sparse_conv_implicit_gemm_warp_specialized_prepare<Shape>,
         {blocks_for(pieces, kCopyThreads, kMaxBlocks), kCopyThreads}, preparation);
  const auto pass = pass_after<Shape>(preparation, conv);
  launch_early(sparse_conv_implicit_gemm_warp_specialized<Shape>,
               {blocks_for(pass.tiles, 1, std::int64_t{multiprocessors()} * Shape::kBlocks),
                kBlockThreads, Shape::kSharedBytes},
               pass, result_is_pieces<Shape>(conv.channels) && begins_at_piece(conv.to));
}

Declined supports(const SparseConvProblem& conv) {
  return declined_by_producers(conv, conv.M, conv.Cout);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_float_type(conv.dtype, [&]<class T>(T) {
    return producers_workspace_bytes<T>(conv.book.KV, conv.M, conv.N, conv.Cin, conv.Cout);
  });
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M] with masks and order, y [M][Cout].
void run(const SparseConvProblem& problem, const SparseConvArrays& arrays, const Context& context) {
  with_float_type(problem.dtype, [&]<class T>(T) {
    const auto conv = gathered_rows<T>(problem, arrays);
    with_shape<T>(conv.rows, conv.summed, conv.channels, [&]<class Shape>(Shape) {
      launch_shape<Shape>(conv, problem.N, context.workspace_as<std::byte>());
    });
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return producers_in_words(conv, conv.M, conv.Cin, conv.Cout);
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm_warp_specialized = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
