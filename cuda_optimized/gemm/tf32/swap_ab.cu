/// @file swap_ab.cu
/// @brief Swap-AB in TF32: wgmma computes c^T = b^T a^T with b^T in registers, so that no operand
/// is transposed in memory.
///
/// - Before: wgmma.cu
/// - After: wgmma_3xtf32.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** TF32 wgmma requires K-major operands in shared memory, and a row-major b is not.
/// But operand A may come from registers, and a thread can gather its elements from any address. So
/// b^T becomes operand A, and a becomes operand B, which is K-major already:
///
///     c^T [N][M]  =  b^T [N][K]              a^T [K][M]
///     in registers   registers, loaded       a's stage [M][K], rows along k
///                    from b's stage [K][N]
///
/// A step is four wgmma of 8 steps of k, each a group of its own with four operand registers per
/// thread. These registers must not change before the wgmma has completed: so the thread waits for
/// the wgmma of the previous step, three others stay in flight, and loads never stall the tensor
/// cores. The order of the columns of c in wgmma's rows avoids bank conflicts (column_of()).
///
/// **Expect.** No kernel for b, no workspace. Of the 128 bytes per cycle of shared memory, wgmma
/// reads 64 of a, threads 16 of b, and TMA writes 48. Predicted on an H200: 355 us at 4096 and 2950
/// us at 8192, in tiles of 256 x 128; 47 us at 2048, one tile per SM; 12 us at 1024.
/// @expect on --m 128 --n 128 --k 64 --dtype tf32
/// @expect requests.shared.async 2 * 2 * (1 + 4) = 20, two tiles, two steps, a box of a, four of b
/// @expect loads_per_output.shared 64 / 64 = 1, 64 steps of k, each number for 64 rows of c
/// @expect excess.shared.load 0, no bank twice
/// @expect excess.shared.store 0, likewise
/// **Costs.** 225 KB of shared memory: one block per SM. Where rows are not aligned to 16 bytes, a
/// warp gathers single elements, and threads store. Not supported: as in tf32/wgmma.cu.
/// **Try.** Load fragments before wgmma_wait_group. What does the emulator report?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/tf32_swap_ab.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Short = SwappedShape<64, 8>;    ///< For small GEMMs: tiles for more of the SMs.
using Square = SwappedShape<128, 6>;  ///< Likewise.
using Tall = SwappedShape<256, 4>;    ///< Loads 3/4 of Square's bytes.

/// Of a block: the consumers, and a warpgroup of which one warp loads.
constexpr int kThreads = kConsumerThreads + 128;
/// Registers a thread: what all begin with, 65536 / kThreads in eights, and what they change to.
constexpr int kRegisters = 168, kRegistersToLoad = 40, kRegistersToMultiply = 232;
static_assert(kRegistersToLoad + kConsumers * kRegistersToMultiply <=
              (1 + kConsumers) * kRegisters);

/// Source: TiledSwapped or GatheredSwapped, and Result accordingly. Grid: <= places.count; block
/// kThreads.
template <class Shape, class Source, class Result>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_tf32_swap_ab(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                      const __grid_constant__ Result result) {
  // full: the stage has arrived; empty: all consumers have read it. For a warp that gathers, each
  // lane says so of its own loads. TMA receives it from one lane of a warp: the products
  // that are done had all lanes' numbers.
  constexpr int kLanes = Source::kThreads > 1 ? 32 : 1;  // of a warp that arrive
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const bool arrives = lane < kLanes;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], Source::kThreads);
      ptx::mbarrier_init(&empty[i], kConsumerThreads / 32 * kLanes);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // phase of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= kConsumerThreads + Source::kThreads) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
        ptx::mbarrier_wait(&empty[stage], round ^ 1);
        source.load(cursor, stages + stage * Shape::kStageBytes, &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          round ^= 1;
        }
      }
    }
    return;
  }

  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs

  float* const drafts = reinterpret_cast<float*>(stages + Shape::kStages * Shape::kStageBytes);
  int box = 0;
  const FragmentPlace fragment_place(thread);
  const std::uint64_t a_at = ptx::wgmma_descriptor(stages);
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::M / 2];  // of 64 columns of c, each with all rows of the tile
#pragma unroll
    for (int i = 0; i < Shape::M / 2; ++i) sums[i] = 0.0f;
    std::uint32_t fragments[kWgmmaStep / 8][4];
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const int begin = stage * Shape::kStageBytes;
      const float* const b = reinterpret_cast<const float*>(stages + begin + Shape::kBytesA);
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
        // All but three wgmma are complete: the one that used these registers in the last step is,
        // so they may be loaded; after the fourth wait, all of that step's are, so its stage may be
        // overwritten.
        ptx::wgmma_wait_group<3>();
        if (k == kWgmmaStep - 8 && last_stage >= 0 && arrives) {
          ptx::mbarrier_arrive(&empty[last_stage]);
        }
        fragment_place.load(b, k, fragments[k / 8]);
        ptx::wgmma_fence();
        ptx::wgmma_m64k8_tf32<Shape::M>(sums, fragments[k / 8], further(a_at, begin + k * 4), true);
        ptx::wgmma_commit_group();
      }
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && arrives) ptx::mbarrier_arrive(&empty[last_stage]);

    result.store(item, sums, drafts, box);
  }
  result.finish();
}

/// Launches one block per SM, but no more blocks than there are items.
template <class Shape, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Result& result) {
  const WgmmaPlaces places(work);
  launch(
      gemm_tf32_swap_ab<Shape, Source, Result>,
      {dim3(blocks_for(places.count, 1, multiprocessors())), dim3(kThreads), Shape::kSharedBytes},
      source, work, places, result);
}

/// The tiles of a GEMM with this shape. Blocks that run at the same time have tiles of about 2048
/// columns and as many rows.
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm) {
  return {.tiles_m = ceil_div(gemm.M, Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, kWgmmaStep),
          .map = gemm.map,
          .group = 2048 / Shape::N};
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  const std::int64_t enough = ceil_div(9 * multiprocessors(), 10);
  if (work_of<Tall>(gemm).items() >= enough) return body(Tall{});
  if (work_of<Square>(gemm).items() >= enough) return body(Square{});
  return body(Short{});
}

Declined supports(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f32) return "float32 only";
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (gemm.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (const Declined why = why_no_wgmma()) return why;
  if (gemm.map == TileMap::row_major) return {};  // an order of its own, without a grid
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return tile_map::why_no_whole_tiles({.map = gemm.map,
                                         .tiles_m = ceil_div(gemm.M, Shape::M),
                                         .tiles_n = ceil_div(gemm.N, Shape::N)});
  });
}

template <class Shape>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const float *a = arrays.a, *b = arrays.b;
  float* c = arrays.c;
  const WgmmaWork work = work_of<Shape>(gemm);
  const auto begins = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                      reinterpret_cast<std::uintptr_t>(c);
  if (begins % 16 != 0 || !rows_in_fours(gemm)) {
    launch_wgmma<Shape>(GatheredSwapped<Shape, true>{a, b, gemm}, work,
                        PlainRows<Shape>{c, gemm.M, gemm.N});
    return;
  }
  const TiledSwapped<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kWgmmaStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kPanel, kWgmmaStep}}, b),
      static_cast<int>(work.tiles_m), gemm.K};
  const BoxedRows<Shape> result = {
      tensor_map(TiledMap{2, {gemm.N, gemm.M}, {1, gemm.N}, {kPanel, kDraftRows}, true}, c)};
  launch_wgmma<Shape>(source, work, result);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape>(gemm, arrays); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(Shape::M, " x ", Shape::N, rows_in_fours(gemm) ? ", by TMA" : ", by a warp");
  });
}

}  // namespace

extern const Implementation<GemmArrays> tf32_swap_ab = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
