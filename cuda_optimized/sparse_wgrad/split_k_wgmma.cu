/// @file split_k_wgmma.cu
/// @brief sparse_wgrad: warp specialization; producer warps gather for one wgmma consumer
/// warpgroup.
///
/// - Before: split_k_mma.cu
/// - How pairs are cut: shared/pair_parts.cuh; stages, gather, second launch:
///   shared/pair_stages.cuh
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** With 16-bit types `wgmma` reads both operands transposed from shared memory, so
/// gathered rows are stored as they are. Four producer warps fill a ring of stages, and the parts
/// of a tap take its steps cyclically:
///
///     warps 4, 5: features[in]         stages              warps 0 to 3
///     warps 6, 7: dy[out]        ->  a, b of 48 pairs  ->  dw_k [Cin][Cout] += a^T b
///     pairs of tap k   |0|1|2|0|1|2|0|1|2|0|1|    the steps of three parts
///
/// There are no more parts than blocks that run at once. The blocks of all taps advance through the
/// sites together, so rows that one tap has read are in L2 for the others. The second launch starts
/// early (PDL), while the last blocks store their parts.
///
/// **Expect.** A pair reads 2 (Cin + Cout) bytes from the L2 cache: 223 MB for sweep-64-subm3, 445
/// MB for sweep-128-subm3, 6.0 GB for large-128-subm3. Predicted on an H200: 47, 90 and 1100 us.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype fp16
/// @expect loads_per_output.features 3838 * 4 / 27648 = 0.5553, a load for each pair, in vectors
/// @expect loads_per_output.pairs 2 * 3838 / 27648 = 0.2776, each number once
/// @expect loads_per_output.workspace 27 / 27 / 4 = 0.25, a part for each tap, in vectors
/// @expect barriers_per_block 27 / 34 + 2 = 2.794, of 34 blocks 27 have a part; two for the sums
/// @expect launches 2
/// **Costs.** Workspace for the parts. Not supported: float32, GPUs other than sm_90a.
/// **Try.** Give each part one contiguous range of its tap's list. What do large layers cost?
#include "core/cuda/needs.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"
#include "cuda_optimized/sparse_wgrad/shared/pair_stages.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {
namespace {

/// The parameters of the kernel.
template <class T>
struct Product {
  int Cin, Cout, tiles_out;
  PairParts parts;
  const T *features, *dy;
  const std::int32_t *pairs, *offsets;
};

/// The ring of stages between producers and consumers.
template <class S>
struct Ring {
  std::uint64_t full[S::kStages],  ///< all copies have landed
      empty[S::kStages];           ///< all consumer warps have read it
};

/// setmaxnreg: allocates registers to the warp, or releases some. All warps of a warpgroup call it.
template <int kRegisters, int kBefore>
__device__ void set_registers() {
  if constexpr (kRegisters > kBefore) {
    ptx::setmaxnreg_inc<kRegisters>();
  } else if constexpr (kRegisters > 0 && kRegisters < kBefore) {
    ptx::setmaxnreg_dec<kRegisters>();
  }
}

/// wgmma m64nNk16 whose operands are both transposed: a row of a stage has all channels of a pair,
/// and k counts pairs. Only 16-bit types have such descriptors.
template <int kN, class T>
__device__ void wgmma_across(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, true, true>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN, true, true>(d, a, b, true);
  }
}

/// The steps of a part: it takes the steps of its tap's list cyclically with the other parts.
template <class S, class T>
__device__ PairSteps turns_of(const Product<T>& product, const PairPart& part) {
  const PairParts& parts = product.parts;
  const Stretch all = stretch_of(parts, product.offsets, 0, part.k);
  const int skipped = (part.first - all.first) / parts.part_pairs * S::kPairs;
  return {all.first + skipped, all.count - skipped, parts_of(parts, all) * S::kPairs};
}

/// The loop of the producer warps: for the part's steps, stage.a[p] = features[in of pair p][ci0
/// ...] (warps 4 and 5) and stage.b[p] = dy[out of pair p][co0 ...] (warps 6 and 7). Indices are
/// loaded S::kAhead steps before the rows (load()), since a row can be copied only after its index
/// has been loaded.
template <class T, class S, bool kAligned>
__device__ void produce(const Product<T>& product, const BlockWork& work, PairSteps pairs,
                        int steps, Ring<S>& ring, char* stages) {
  const bool second = producer() >= kProducers / 2;  // copies dy
  StagedRows<S, kAligned> rows(second ? product.dy : product.features,
                               second ? product.Cout : product.Cin, second ? work.co0 : work.ci0,
                               product.pairs, pairs);
  Place<S> place;
  typename StagedRows<S, kAligned>::Numbers now, ahead[S::kAhead];
#pragma unroll
  for (int i = 0; i < S::kAhead; ++i) rows.load(ahead[i]);
  for (int step = 0; step < steps; ++step) {
    now = ahead[0];
#pragma unroll
    for (int i = 1; i < S::kAhead; ++i) ahead[i - 1] = ahead[i];
    rows.load(ahead[S::kAhead - 1]);
    // Until the consumers have released the stage. In the first pass through the ring no stage is
    // occupied: a wait for the phase before the first one returns at once.
    ptx::mbarrier_wait(&ring.empty[place.stage], place.round ^ 1);
    rows.copy(now, stages + place.stage * S::kStageBytes);
    if constexpr (kAligned) {
      ptx::cp_async_mbarrier_arrive_noinc(&ring.full[place.stage]);  // when all copies have landed
    } else {
      ptx::fence_proxy_async();  // orders stores (generic proxy) before the reads of wgmma (async
                                 // proxy)
      ptx::mbarrier_arrive(&ring.full[place.stage]);
    }
    place.advance();
  }
}

/// The loop of the consumer warps: for each stage, accumulators += stage.a^T * stage.b, 16 pairs a
/// wgmma.
template <class T, class S>
__device__ void consume(int steps, Ring<S>& ring, const char* stages,
                        sparse_conv::WarpgroupSums<T, S::kTile> (&sums)[S::kRowTiles]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Place<S> place;
  int last_stage = -1;
  for (int step = 0; step < steps; ++step) {
    ptx::mbarrier_wait(&ring.full[place.stage], place.round);
    ptx::fence_proxy_async();  // cp.async writes through the generic proxy, wgmma reads through the
                               // async proxy
    const char* const a = stages + place.stage * S::kStageBytes;
    // With 32 channels, the lower half of the 64 rows of a wgmma repeats the upper half.
    const std::uint64_t left = ptx::wgmma_row_major_descriptor(a, 0, S::kRowBytes);
    const std::uint64_t right =
        ptx::wgmma_row_major_descriptor(a + S::kFactorBytes, S::kPieceBytes, S::kRowBytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < S::kPairs; i += 16) {
#pragma unroll
      for (int m = 0; m < S::kRowTiles; ++m) {
        // Descriptors count in units of 16 bytes.
        wgmma_across<S::kTile, T>(
            sums[m].of,
            left + static_cast<std::uint64_t>((m * S::kPieceBytes + i * S::kRowBytes) / 16),
            right + static_cast<std::uint64_t>(i * S::kRowBytes / 16));
      }
    }
    ptx::wgmma_commit_group();
    // All products but this stage's are done: the stage before may be overwritten.
    ptx::wgmma_wait_group<1>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);
    last_stage = place.stage;
    place.advance();
  }
  ptx::wgmma_wait_group<0>();
}

/// Grid (parts, tiles of channels), block (kBlockThreads).
/// @param parts [most_parts][Cin][Cout]
/// @tparam kAligned rows of features and dy are aligned to 16 bytes, and Cout is even
template <class T, class S, bool kAligned>
__global__ void __launch_bounds__(kBlockThreads, S::kBlocks)
    sparse_wgrad_split_k_wgmma(Product<T> product, float* parts) {
  BlockWork work;
  if (!work_of_block<S::kTile, S::kTile>(product.parts, product.offsets, product.tiles_out,
                                         &work)) {
    return;  // uniform for the block
  }
  __shared__ Ring<S> ring;
  char* stages = dynamic_shared<char>();
  stages += (sparse_conv::kSwizzleAtom - ptx::shared_address(stages) % sparse_conv::kSwizzleAtom) %
            sparse_conv::kSwizzleAtom;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) {
      ptx::mbarrier_init(&ring.full[i], kProducers);
      ptx::mbarrier_init(&ring.empty[i], kConsumers / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  const PairSteps pairs = turns_of<S>(product, work.part);
  const int steps = ceil_div(pairs.left, pairs.distance);
  if (threadIdx.x >= kConsumers) {
    set_registers<S::kProducerRegisters, S::kEvenly>();
    produce<T, S, kAligned>(product, work, pairs, steps, ring, stages);
    return;
  }
  set_registers<S::kConsumerRegisters, S::kEvenly>();
  sparse_conv::WarpgroupSums<T, S::kTile> sums[S::kRowTiles];
  consume<T, S>(steps, ring, stages, sums);
  let_next_kernel_begin();

  float* const to = parts + std::int64_t{work.slot} * product.Cin * product.Cout;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
#pragma unroll
  for (int m = 0; m < S::kRowTiles; ++m) {
    sums[m].for_each([&](int row, int column, const float(&two)[2]) {
      const int below = m * 64 + warp_row + row;
      const int ci = work.ci0 + below, co = work.co0 + column;
      if (below >= S::kTile || ci >= product.Cin) return;
      float* const at = to + std::int64_t{ci} * product.Cout + co;
      if constexpr (kAligned) {
        if (co < product.Cout) *reinterpret_cast<float2*>(at) = float2{two[0], two[1]};
      } else {
        if (co < product.Cout) at[0] = two[0];
        if (co + 1 < product.Cout) at[1] = two[1];
      }
    });
  }
}

constexpr int kShortestPart = 512;  ///< Pairs: some steps of any shape.

/// Calls body(stages) with the tile that suits a problem's channels.
template <class T, class Body>
auto with_stages(const SparseConvProblem& conv, const Body& body) {
  switch (tile_channels(conv)) {
    case 128: return body(PairStages<T, PairStageSizes{128, 48, 4, 2}>{});
    case 64: return body(PairStages<T, PairStageSizes{64, 64, 4, 3}>{});
    default: return body(PairStages<T, PairStageSizes{32, 128, 4, 3}>{});
  }
}

/// For rows that are stored element by element.
template <class T>
using OneByOne = PairStages<T, PairStageSizes{32, 64, 6, 3}>;

/// The parts of a problem, in one slab: no more than run at once on an H200, unless there are many
/// taps and tiles.
PairParts pair_parts_of(const SparseConvProblem& conv) {
  return with_stages<Half>(conv, [&]<class S>(S) {
    const int KV = conv.book.KV;
    const std::int64_t tiles =
        std::int64_t{ceil_div(conv.Cin, S::kTile)} * ceil_div(conv.Cout, S::kTile);
    // Each tap has up to one part that is not full.
    const std::int64_t whole = std::max<std::int64_t>(132 * S::kBlocks / tiles - KV, KV);
    const auto pairs = static_cast<int>(
        std::max<std::int64_t>(ceil_div(conv.pairs, whole * S::kPairs) * S::kPairs, kShortestPart));
    return PairParts{KV, 0, pairs, static_cast<int>(conv.pairs / pairs) + KV};
  });
}

template <class T, class S, bool kAligned>
void launch_with(Product<T> product, float* parts) {
  product.tiles_out = ceil_div(product.Cout, S::kTile);
  const dim3 grid(static_cast<unsigned>(product.parts.most_parts),
                  static_cast<unsigned>(ceil_div(product.Cin, S::kTile) * product.tiles_out));
  launch(sparse_wgrad_split_k_wgmma<T, S, kAligned>, {grid, dim3(kBlockThreads), S::kSharedBytes},
         product, parts);
}

template <class T>
bool rows_are_aligned(const Product<T>& product) {
  const auto address = reinterpret_cast<std::uintptr_t>(product.features) |
                       reinterpret_cast<std::uintptr_t>(product.dy);
  return (product.Cin | product.Cout) * sizeof(T) % 16 == 0 && address % 16 == 0;
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
template <class T>
void run_in(const SparseConvProblem& conv, const SparseWgradArrays& arrays,
            const Context& context) {
  const Product<T> product = {.Cin = conv.Cin,
                              .Cout = conv.Cout,
                              .tiles_out = 0,
                              .parts = pair_parts_of(conv),
                              .features = arrays.features,
                              .dy = arrays.dy,
                              .pairs = arrays.pairs,
                              .offsets = arrays.offsets};
  auto* const parts = context.workspace_as<float>();
  if (rows_are_aligned(product)) {
    with_stages<T>(conv, [&]<class S>(S) { launch_with<T, S, true>(product, parts); });
  } else {
    launch_with<T, OneByOne<T>, false>(product, parts);
  }
  launch_sum_turns(product.parts, product.offsets, parts, std::int64_t{conv.Cin} * conv.Cout,
                   arrays.dw);
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype == DType::f32) return "float32: wgmma reads across only rows of 16 bits";
  if (std::int64_t{ceil_div(conv.Cin, 32)} * ceil_div(conv.Cout, 32) > kMaxGridYZ) {
    return "more than 65535 tiles of 32 x 32 channels";
  }
  return why_not("sm_90a");
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return sizeof(float) * static_cast<std::size_t>(std::int64_t{pair_parts_of(conv).most_parts} *
                                                  conv.Cin * conv.Cout);
}

void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context& context) {
  with_half_type(conv.dtype, [&]<class T>(T) { run_in<T>(conv, arrays, context); });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  const bool aligned = (conv.Cin | conv.Cout) % 8 == 0;
  return text(
      dtype_name(conv), ", ",
      aligned ? text(tile_channels(conv), " x ", tile_channels(conv)) : "rows of any length",
      pair_parts_of(conv).part_pairs <= kShortestPart ? ", shortest parts" : "");
}

}  // namespace

extern const Implementation<SparseWgradArrays> split_k_wgmma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
