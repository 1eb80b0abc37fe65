/// @file implicit_gemm_warp_specialized.cu
/// @brief sparse_dgrad with producer warps and wgmma: the forward pass' way, with the weights as
/// they lie.
///
/// - Before: implicit_gemm_mma.cu
/// - After: implicit_gemm_fused_sort.cu
/// - The loops: cuda_optimized/sparse_conv/shared/stage_product.cuh
/// - The same maths: cpu_reference/sparse_dgrad/gather_gemm_scatter.cpp
///
/// **The idea.** This gradient gathers as the forward pass does: rows of dy, by the table that
/// leads back, in the order of its masks. So it has the same two kernels, but for a line about the
/// weights. wgmma wants both factors along k, and k is ci in the forward pass, co here:
///
///     forward    y[m]  += x[nbr[k][m]]       * W_k      W_k [ci][co], along k: columns
///     gradient   dx[n] += dy[nbr_back[k][n]] * W_k^T    W_k [ci][co], along k: rows
///
/// The kernel that puts the weights in place must turn those of the forward pass round: for each
/// piece of 16 bytes it loads 4 or 8 numbers from as many rows. Here a piece is 16 bytes that lie
/// side by side.
///
/// **Expect.** The times of the forward pass, or a little less, for sweep-32-subm3, sweep-64-subm3
/// and sweep-128-subm3: the same rows, the same products, and weights that are loaded in order.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect launches 2
/// @expect loads_per_output.weights 27 * 32 * 32 / 16384 = 1.6875, packed once
/// @expect loads_per_output.dy 1 / 4 = 0.25, rounded once, in vectors
/// **Costs.** As the forward pass: a workspace for the weights and, in float32 or where rows do not
/// consist of 16-byte pieces, for a copy of dy. Declined: float32 with precision fp32; GPUs other
/// than compute capability 9.0; over 1024 taps.
/// **Try.** Under subm, nbr_back is nbr with its taps in the opposite order (mirrored_table.cu).
/// What must change here, so that the table need not be there?
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/stage_preparation.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_product.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

using namespace sparse_conv;
using namespace sparse_conv::producers;

constexpr int kCopyThreads = 256;             ///< Of prepare().
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More pieces than these take: threads stride.

/// A thread makes a piece at a time, so that loads of neighbours lie side by side. Any
/// one-dimensional grid.
template <class Shape>
__global__ void sparse_dgrad_implicit_gemm_warp_specialized_prepare(
    Preparation<typename Shape::Number> p) {
  using T = typename Shape::Number;
  constexpr int kOfBlock = Shape::N * Shape::kPieces;
  let_next_kernel_begin();
  if (thread_of_grid() == 0) *p.handed_out = 0;
  T numbers[Shape::kCount];
  for (const std::int64_t i : grid_stride(p.template weight_pieces<Shape>())) {
    const std::int64_t block = i / kOfBlock;
    const auto of_block = static_cast<int>(i % kOfBlock);
    const int n = of_block / Shape::kPieces;
    const int piece = of_block % Shape::kPieces;
    const std::int64_t above = block / p.chunks;
    const int s0 = static_cast<int>(block - above * p.chunks) * Shape::kDepth;
    const std::int64_t tile = above / p.taps, tap = above - tile * p.taps;
    const int c = static_cast<int>(tile) * Shape::N + n;
#pragma unroll
    for (int j = 0; j < Shape::kCount; ++j) {
      const int s = s0 + piece * Shape::kCount + j;
      numbers[j] = T{};
      if (s < p.summed && c < p.channels) {
        numbers[j] = as_factor(p.weights[(tap * p.channels + c) * p.summed + s]);
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
    sparse_dgrad_implicit_gemm_warp_specialized(Pass<typename Shape::Number> pass, bool pieces) {
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
  launch(sparse_dgrad_implicit_gemm_warp_specialized_prepare<Shape>,
         {blocks_for(pieces, kCopyThreads, kMaxBlocks), kCopyThreads}, preparation);
  const auto pass = pass_after<Shape>(preparation, conv);
  launch_early(sparse_dgrad_implicit_gemm_warp_specialized<Shape>,
               {blocks_for(pass.tiles, 1, std::int64_t{multiprocessors()} * Shape::kBlocks),
                kBlockThreads, Shape::kSharedBytes},
               pass, result_is_pieces<Shape>(conv.channels) && begins_at_piece(conv.to));
}

Declined supports(const SparseConvProblem& conv) {
  return declined_by_producers(conv, conv.N, conv.Cin);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_float_type(conv.dtype, [&]<class T>(T) {
    return producers_workspace_bytes<T>(conv.book.KV, conv.N, conv.M, conv.Cout, conv.Cin);
  });
}

/// dy [M][Cout], weights [KV][Cin][Cout], nbr_back [KV][N] with masks and order, dx [N][Cin].
void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context& context) {
  with_float_type(conv.dtype, [&]<class T>(T) {
    const GatheredRows<T> gradient = {.taps = conv.book.KV,
                                      .rows = conv.N,
                                      .summed = conv.Cout,
                                      .channels = conv.Cin,
                                      .table = arrays.nbr_back,
                                      .mask = arrays.mask_back,
                                      .order = arrays.order_back,
                                      .from = arrays.dy,
                                      .weights = arrays.weights,
                                      .to = arrays.dx};
    with_shape<T>(gradient.rows, gradient.summed, gradient.channels, [&]<class Shape>(Shape) {
      launch_shape<Shape>(gradient, conv.M, context.workspace_as<std::byte>());
    });
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return producers_in_words(conv, conv.N, conv.Cout, conv.Cin);
}

}  // namespace

extern const Implementation<SparseDgradArrays> implicit_gemm_warp_specialized = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
