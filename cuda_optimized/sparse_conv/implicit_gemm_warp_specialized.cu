/// @file implicit_gemm_warp_specialized.cu
/// @brief sparse_conv: warp specialization; producer warps gather, consumer warpgroups multiply.
///
/// - Before: implicit_gemm_mma.cu
/// - After: implicit_gemm_fused_sort.cu
/// - Shapes, workspace: shared/stage_shapes.cuh; ring, copies and store: shared/stage_ring.cuh
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** Four producer warps start the copies (produce()); one consumer warpgroup executes
/// wgmma (consume()).
///
///     producers, 32 rows a warp            stages               consumers, 128 rows
///     wait for empty[s]               +---------------+         wait for full[s]
///     rows: cp.async, 16 bytes each ->| tap 3 | tap 7 |         wgmma, tap by tap
///     weights: one bulk copy a tap  ->| 32 channels   |         all but this stage's are done:
///     arrive at full[s] when landed   +---------------+---->    arrive at empty[s - 1]
///
/// Each stage has two mbarriers. The hardware arrives at full[s] when copies have landed. A stage
/// holds as many taps as fit 128 bytes of a row: in fp16 or bf16, four of 16 channels or two of 32.
///
/// **Expect.** Bytes from the L2 cache limit the kernel. In fp16, for sweep-16-subm3,
/// sweep-32-subm3, sweep-64-subm3 and sweep-128-subm3, they are 67, 119, 263 and 713 MB, at 4 TB/s
/// 17, 30, 66 and 178 us. wgmma alone would take 2, 5, 17 and 64 us on an H200.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect barriers_per_block 1, all else waits at mbarriers
/// @expect loads_per_output.features 1 / 4 = 0.25, rounded once, in vectors
/// @expect loads_per_output.nbr 3838 / 16384 = 0.234, of pairs alone
/// @expect launches 2, with the rounding
/// **Costs.** 64 to 100 KB of shared memory per block of 256 threads, and workspace.
/// **Try.** Tune the table of shapes. With half a tap's channels a stage, which numbers change?
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/stage_ring.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

using namespace producers;

constexpr int kCopyThreads = 256;             ///< Of prepare().
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< pieces.

/// A thread packs one piece at a time, so that the loads of neighbouring threads are contiguous.
/// Any one-dimensional grid.
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

/// The loop of the producer warps. Without the ring it would be
///
///     for each tile of this block                        rows: 128, a lane owns one of its warp's
///       for each group of taps that any of the rows has  (TapWalk lists them)
///         for each chunk of channels
///           stage.a[t][row] = from[table[tap][row]][chunk]      (ask_for_rows(); -1: zeros)
///           stage.b[t]      = weights[tap][chunk]               (one bulk copy a tap)
///
/// @param row this thread's of the block's first tile
template <class Shape>
__device__ void produce(const Pass<typename Shape::Number>& pass, std::int32_t row,
                        Ring<Shape>& ring, char* stages) {
  Place<Shape> place;
  int tile = static_cast<int>(blockIdx.x);
  for (int turn = 0; tile < pass.tiles; turn ^= 1) {
    int following = 0;
    if (producer() == 0) following = static_cast<int>(gridDim.x + atomicAdd(pass.handed_out, 1u));
    TapWalk<Shape> walk(pass, row);
    walk.find(ring.met[turn]);
    if (producer() == 0) ring.following[turn] = following;
    // Separates these stores from the loads below. The next stores to the same addresses are two
    // tiles later; all producers pass this barrier once in between.
    ptx::named_barrier_sync(1, kProducers);
    following = ring.following[turn];
    row = own_row<Shape>(pass, following);  // in flight until the next tile begins
    walk.begin(ring.met[turn]);
    const int n = corner_of<Shape>(pass, tile).channel / Shape::N;

    // The table's entries are loaded one group of taps ahead of the rows that they point to.
    typename TapWalk<Shape>::Group now, ahead;
    walk.fetch(ahead);
    do {
      now = ahead;
      walk.fetch(ahead);
      for (int chunk = 0; chunk < pass.chunks; ++chunk) {
        // Until the consumers have released the stage. In the first pass through the ring no stage
        // is occupied: a wait for the phase before the first one returns at once.
        ptx::mbarrier_wait(&ring.empty[place.stage], place.round ^ 1);
        char* const a = stages + place.stage * Shape::kStageBytes;
        char* const b = a + Shape::kTaps * Shape::kBytesA;
        std::uint64_t* const full = &ring.full[place.stage];
        if (producer() == 0) {
          const bool ends_tile = !ahead.exists && chunk + 1 == pass.chunks;
          ring.label[place.stage] = {tile, !ends_tile               ? kNothing
                                           : following < pass.tiles ? kTile
                                                                    : kBlock};
          ptx::mbarrier_arrive_expect_tx(full, Shape::kTaps * Shape::kBytesB);
#pragma unroll
          for (int t = 0; t < Shape::kTaps; ++t) {
            const std::int64_t block =
                (std::int64_t{n} * pass.conv.taps + now.tap[t]) * pass.chunks + chunk;
            ptx::cp_async_bulk(b + t * Shape::kBytesB,
                               pass.conv.weights + block * (Shape::N * Shape::kDepth),
                               Shape::kBytesB, full);
          }
        }
#pragma unroll
        for (int t = 0; t < Shape::kTaps; ++t) {
          ask_for_rows<Shape>(pass, now.index[t], chunk * Shape::kDepth, a + t * Shape::kBytesA);
        }
        // The hardware arrives at the barrier when this thread's copies have landed; the thread
        // does not wait.
        ptx::cp_async_mbarrier_arrive_noinc(full);
        place.advance();
      }
    } while (ahead.exists);
    tile = following;
  }
}

/// The loop of the consumer warps. Without the ring it would be
///
///     for each tile of this block
///       for each stage of the tile
///         for each of its taps t:  accumulators += stage.a[t] * stage.b[t]
///       to[order[row]] = accumulators                           (store_tile())
///
/// @param pieces whether rows of the result consist of pieces of 16 bytes
template <class Shape>
__device__ void consume(const Pass<typename Shape::Number>& pass, Ring<Shape>& ring,
                        const char* stages, bool pieces) {
  using T = typename Shape::Number;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int own_row = thread / 32 * 16 + lane / 4;
  // Only the lane that releases a warp's stages reads their labels, so that no lane can read a
  // label after its stage has been released.
  const auto told_all = [lane](const int& number) {
    int told = 0;
    if (lane == 0) told = number;
    return __shfl_sync(0xFFFFFFFF, told, 0);
  };
  Place<Shape> place;
  for (int ends = kNothing; ends != kBlock;) {
    // The label of a tile's first stage has the tile's index. The rows are needed at the end.
    ptx::mbarrier_wait(&ring.full[place.stage], place.round);
    const Corner corner = corner_of<Shape>(pass, told_all(ring.label[place.stage].tile));
    std::int32_t rows[kRowTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = corner.row + own_row + i * kWarpgroupRows + 8 * half;
        rows[i][half] = at < pass.conv.rows ? pass.conv.order[at] : -1;
      }
    }
    WarpgroupSums<T, Shape::N> sums[kRowTiles];
    int last_stage = -1;
    do {
      ptx::mbarrier_wait(&ring.full[place.stage], place.round);
      // cp.async writes through the generic proxy, wgmma reads through the async proxy.
      ptx::fence_proxy_async();
      ends = told_all(ring.label[place.stage].ends);
      const char* const a = stages + place.stage * Shape::kStageBytes;
      const char* const b = a + Shape::kTaps * Shape::kBytesA;
      ptx::wgmma_fence();
#pragma unroll
      for (int t = 0; t < Shape::kTaps; ++t) {
        constexpr int kGroup = 8 * Shape::kTapBytes;
        const std::uint64_t left =
            ptx::wgmma_descriptor(a + t * Shape::kBytesA, kGroup, Shape::kTapBytes);
        const std::uint64_t right =
            ptx::wgmma_descriptor(b + t * Shape::kBytesB, kGroup, Shape::kTapBytes);
#pragma unroll
        for (int deep = 0; deep < Shape::kTapBytes; deep += kDeep) {
#pragma unroll
          for (int i = 0; i < kRowTiles; ++i) {
            // Descriptors count in units of 16 bytes.
            const int below = i * kWarpgroupRows * Shape::kTapBytes;
            sums[i].add(left + static_cast<std::uint64_t>((below + deep) / 16),
                        right + static_cast<std::uint64_t>(deep / 16));
          }
        }
      }
      ptx::wgmma_commit_group();
      // All products but this stage's are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);
      last_stage = place.stage;
      place.advance();
    } while (ends == kNothing);
    ptx::wgmma_wait_group<0>();
    if (lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);

    store_tile<Shape>(pass.conv, sums, rows, corner.channel, pieces);
  }
}

/// Block (kBlockThreads); grid: one block per tile or fewer, persistent.
template <class Shape>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    sparse_conv_implicit_gemm_warp_specialized(Pass<typename Shape::Number> pass, bool pieces) {
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
    const std::int32_t row = own_row<Shape>(pass, static_cast<int>(blockIdx.x));
    wait_for_kernel_before();  // prepare() has stored weights, rows and the tile counter
    produce(pass, row, ring, stages);
  }
}

/// Two launches: the first packs the weights in the layout of wgmma and copies rows where needed;
/// the second is the GEMM.
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
