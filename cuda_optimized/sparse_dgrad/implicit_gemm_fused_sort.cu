/// @file implicit_gemm_fused_sort.cu
/// @brief sparse_dgrad: segmented sort fused into the preparing launch; no sorted rulebook is
/// needed.
///
/// - Before: implicit_gemm_warp_specialized.cu
/// - The loops: cuda_optimized/sparse_conv/shared/stage_product.cuh; the sort:
///   cuda_optimized/sparse_conv/shared/segment_order.cuh
/// - The same maths: cpu_reference/sparse_dgrad/gather_gemm_scatter.cpp
///
/// **The idea.** The method is that of the forward pass (sparse_conv/implicit_gemm_fused_sort.cu):
/// each segment of 2048 rows is sorted by mask by one block, while other blocks pack the weights.
/// The gradient saves more time than the forward pass. With sorted tables, a training step needs
/// one order per direction of a strided layer, and uses the inverse rulebook once:
///
///     sorted tables   table, sort     forward     table back, sort     gradient
///     here            table           forward     table back           gradient
///
/// Under `subm` both directions have the same table, except for the order of its taps. There, too,
/// no row order has to be kept between the passes.
///
/// **Expect.** As in the forward pass: for sweep-64-subm3 a sixth more time than
/// implicit_gemm_warp_specialized, without a sort that takes half of the GEMM's time; for
/// large-64-subm3 less time.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect launches 2, as before, and without a sorted rulebook
/// @expect loads_per_output.mask_back 2 * 512 / 16384 = 0.0625, by the sort and by the product
/// @expect barriers_per_block (20 + 1) / 7 + 1 = 4, 20 steps are between warps, in a block of seven
/// **Costs.** 4 bytes of workspace per row, and a sort in each call. Not supported: as before.
/// **Try.** Which layers of a network should share an order, and which should sort again?
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/segment_order.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_product.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

using namespace sparse_conv;
using namespace sparse_conv::producers;

constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< pieces.

/// A thread packs one piece at a time, so that the loads of neighbouring threads are contiguous.
/// Any one-dimensional grid.
template <class Shape>
__global__ void __launch_bounds__(kSortThreads)
    sparse_dgrad_implicit_gemm_fused_sort_prepare(Preparation<typename Shape::Number> p,
                                                  SegmentOrder rows) {
  __shared__ SegmentMasks masks;
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
  sort_segments(rows, masks);
}

/// Block (kBlockThreads); grid: one block per tile or fewer, persistent.
template <class Shape>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    sparse_dgrad_implicit_gemm_fused_sort(Pass<typename Shape::Number> pass, bool pieces) {
  __shared__ Ring<Shape> ring;
  char* stages = dynamic_shared<char>();
  stages += (kSwizzleAtom - ptx::shared_address(stages) % kSwizzleAtom) % kSwizzleAtom;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      // Each producer thread arrives when its copies have landed; the thread that copies weights
      // arrives once more.
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
    wait_for_kernel_before();  // prepare() has stored weights, rows, order and the tile counter
    produce(pass, own_row<Shape>(pass, static_cast<int>(blockIdx.x)), ring, stages);
  }
}

/// Two launches: the first packs the weights in the layout of wgmma, copies rows where needed, and
/// sorts them; the second is the GEMM.
/// @param sources rows of conv.from
template <class Shape>
void launch_shape(GatheredRows<typename Shape::Number> conv, std::int64_t sources,
                  std::int32_t* order, std::byte* workspace) {
  const auto preparation = preparation_of<Shape>(conv, sources, workspace);
  const std::int64_t pieces =
      std::max(preparation.template weight_pieces<Shape>(), preparation.pieces);
  const SegmentOrder rows = {conv.rows, conv.taps, conv.mask, order};
  const std::int64_t blocks =
      std::max<std::int64_t>(ceil_div<std::int64_t>(pieces, kSortThreads), rows.segments());
  launch(sparse_dgrad_implicit_gemm_fused_sort_prepare<Shape>,
         {blocks_for(blocks, 1, kMaxBlocks), kSortThreads}, preparation, rows);
  conv.order = order;
  const auto pass = pass_after<Shape>(preparation, conv);
  launch_early(sparse_dgrad_implicit_gemm_fused_sort<Shape>,
               {blocks_for(pass.tiles, 1, std::int64_t{multiprocessors()} * Shape::kBlocks),
                kBlockThreads, Shape::kSharedBytes},
               pass, result_is_pieces<Shape>(conv.channels) && begins_at_piece(conv.to));
}

Declined supports(const SparseConvProblem& conv) {
  return declined_by_producers(conv, conv.N, conv.Cin);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_float_type(conv.dtype, [&]<class T>(T) {
    return ordered_workspace_at(conv.N, nullptr).bytes +
           producers_workspace_bytes<T>(conv.book.KV, conv.N, conv.M, conv.Cout, conv.Cin);
  });
}

/// dy [M][Cout], weights [KV][Cin][Cout], nbr_back [KV][N] with masks, dx [N][Cin].
void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context& context) {
  const OrderedWorkspace work = ordered_workspace_at(conv.N, context.workspace_as<std::byte>());
  with_float_type(conv.dtype, [&]<class T>(T) {
    const GatheredRows<T> gradient = {.taps = conv.book.KV,
                                      .rows = conv.N,
                                      .summed = conv.Cout,
                                      .channels = conv.Cin,
                                      .table = arrays.nbr_back,
                                      .mask = arrays.mask_back,
                                      .order = nullptr,
                                      .from = arrays.dy,
                                      .weights = arrays.weights,
                                      .to = arrays.dx};
    with_shape<T>(gradient.rows, gradient.summed, gradient.channels, [&]<class Shape>(Shape) {
      launch_shape<Shape>(gradient, conv.M, work.order, work.rest);
    });
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return producers_in_words(conv, conv.N, conv.Cout, conv.Cin);
}

}  // namespace

extern const Implementation<SparseDgradArrays> implicit_gemm_fused_sort = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
