/// @file three_consumers.cu
/// @brief Three FP8 consumer warpgroups: the `wgmma` of two run while the third one adds.
///
/// - Before: taller_tiles.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Between its wgmma of one stage and those of the next, a consumer waits for
/// completion, adds the accumulators, waits at a barrier and issues again. With two consumers, the
/// other one's 256 cycles of wgmma do not cover that time. A third consumer makes them 512 cycles.
/// It has 64 rows, too, and as 65536 registers are now for 512 threads, `setmaxnreg` leaves a
/// consumer 160: 64 for totals, 64 for the accumulators of a stage, 32 for all else.
///
///     consumer 0   wgmma . . . . . . | add | wgmma . . . . . . | add
///     consumer 1   . . | add | wgmma . . . . . . | add | wgmma
///     consumer 2   . . . . . | add | wgmma . . . . . . | add | wgmma
///
/// TMA stores c, as in tma_store.cu, from two staging buffers of 64 x 32 floats for each consumer.
///
/// **Expect.** A step is 768 cycles, 53 bytes per cycle and SM, and 64 steps with K = 8192 are
/// 49,000 cycles; 96 KB of floats per tile take 3000 more at 32 bytes per cycle, as all SMs store
/// at the same time. The loop of a step has 4 QGMMA and 64 FADD. Predicted on an H200: 845 us at
/// 8192, of which the transposition of b takes 37 us. At 4096 there are 5.3 waves of 132 tiles,
/// which take as long as 6 waves: 128 us, more than fp8/taller_tiles.cu.
/// @expect on --m 576 --n 512 --k 256 --dtype fp8
/// @expect requests.shared.async 12 * 2 * (1 + 1) = 48, a box of a and one of b
/// @expect bytes_per_lane.shared.async (192 + 128) * 128 / 2 = 20480
/// @expect bytes_per_output.shared.async 256 * (1 / 128 + 1 / 192) = 3.3333333333333335, before 3
/// **Costs.** 209 KB of shared memory; 96 idle threads. Where rows of c are not aligned to 16
/// bytes, threads store them. Not supported: as before.
/// **Try.** Four consumers would have 120 registers each. How large could their tile be?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/fp8_operands.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

/// Bytes of a staging buffer of accumulators, [64][32].
constexpr int kFloatBoxBytes = 64 * kTensorMapRow * 4;

/// A tile for three consumers of 64 rows each, and the stages beside it.
template <int kN, int kStages_>
struct ThreeShape {
  static constexpr int kWarpgroups = 3,                              // consumers
      M = 64 * kWarpgroups, N = kN,                                  // rows and columns of a tile
      kStages = kStages_, kBlocks = 1,                               // of the ring; on an SM
      kBytesA = M * kBytesStep, kStageBytes = (M + N) * kBytesStep;  // of a stage's a, and of both
  static constexpr std::size_t kSharedBytes =                        // two staging buffers for each
                                                                     // consumer
      kStages * kStageBytes + kWarpgroups * 2 * kFloatBoxBytes + kAtom;
};
using Narrow = ThreeShape<64, 5>;  ///< For small GEMMs: tiles for more of the SMs.
using Large = ThreeShape<128, 4>;  ///< Loads 4/5 of Narrow's bytes.

/// Of a block: the consumers, and a warpgroup of which one thread loads.
constexpr int kMultiplyThreads = 128 * Large::kWarpgroups, kThreads = kMultiplyThreads + 128;
/// Registers a thread: what all begin with, and what they change to.
constexpr int kRegisters = 65536 / kThreads, kToLoad = 32, kToMultiply = 160;
static_assert(kToLoad + Large::kWarpgroups * kToMultiply <= (1 + Large::kWarpgroups) * kRegisters);

/// c [M][N] by TMA, in floats.
template <class Shape>
struct FloatBoxes {
  CUtensorMap c;  ///< in boxes of 64 x 32

  /// Stores a consumer's accumulators of a tile. 128 threads call it. @param box which of the two
  /// is next
  __device__ void store(const WgmmaItem& item, int consumer, const float (&sums)[Shape::N / 2],
                        char* staging, int& box) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int piece = 0; piece < Shape::N / kTensorMapRow; ++piece) {
      char* const draft = staging + (2 * consumer + box) * kFloatBoxBytes;
      if (thread == 0) ptx::cp_async_bulk_wait_group_read<1>();
      // TMA has read the staging buffer: all threads may overwrite it.
      ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = 8 * j + lane % 4 * 2, first = 4 * (4 * piece + j);
        float* const to = reinterpret_cast<float*>(draft);
        store_two(to + swizzled(row, column), sums[first], sums[first + 1]);
        store_two(to + swizzled(row + 8, column), sums[first + 2], sums[first + 3]);
      }
      ptx::fence_proxy_async();                    // orders ordinary stores (generic proxy) before
                                                   // TMA's reads (async proxy)
      ptx::named_barrier_sync(1 + consumer, 128);  // separates all stores from the copy
      if (thread == 0) {
        const int m = static_cast<int>(item.m) * Shape::M + consumer * 64;
        ptx::tma_store<2>(&c, draft, {item.n * Shape::N + piece * kTensorMapRow, m});
        ptx::cp_async_bulk_commit_group();
      }
      box ^= 1;
    }
  }
  /// Before the block ends, and its shared memory with it.
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// c [M][N] by the threads, where TMA cannot take it.
template <class Shape>
struct PlainFloats {
  RowMajor<Shape> matrix;  ///< where they go

  /// Stores a consumer's accumulators of a tile. 128 threads call it.
  __device__ void store(const WgmmaItem& item, int consumer, const float (&sums)[Shape::N / 2],
                        char*, int&) const {
    store_rows(matrix, item, item.m * Shape::M + consumer * 64, sums);
  }
  /// No copy is in flight.
  __device__ void finish() const {}
};

/// Result: FloatBoxes or PlainFloats. Grid: <= places.count; block kThreads. @param scale of the
/// accumulators
template <class Shape, class Result>
__global__ void __launch_bounds__(kThreads, Shape::kBlocks)
    gemm_fp8_three_consumers(const __grid_constant__ TiledSource<Shape> source, WgmmaWork work,
                             WgmmaPlaces places, float scale,
                             const __grid_constant__ Result result) {
  // full: the stage has arrived; empty: all twelve consumer warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kMultiplyThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // phase of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kMultiplyThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kToLoad>();  // by all four warps, of which one thread continues
    if (thread > kMultiplyThreads) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
        ptx::mbarrier_wait(&empty[stage], round ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, reinterpret_cast<float*>(a),
                    reinterpret_cast<float*>(a + Shape::kBytesA), &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          round ^= 1;
        }
      }
    }
    return;
  }

  ptx::setmaxnreg_inc<kToMultiply>();  // waits until the producers have released theirs

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  char* const staging = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::N / 2], part[Shape::N / 2];  // of the tile, of a step
#pragma unroll
    for (int j = 0; j < Shape::N / 2; ++j) sums[j] = 0.0f;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * 64 * kBytesStep);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kBytesStep; k += 32) {
        // Descriptors count in units of 16 bytes.
        ptx::wgmma_m64k32_e4m3<Shape::N>(part, a_at + k / 16, b_at + k / 16, k > 0);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      if (lane == 0) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[j] += part[j];
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }

#pragma unroll
    for (int j = 0; j < Shape::N / 2; ++j) sums[j] *= scale;
    result.store(item, consumer, sums, staging, box);
  }
  result.finish();
}

/// The tiles of a GEMM with this shape, walked down 1024 columns.
template <class Shape>
WgmmaWork work_of_bytes(const GemmProblem& gemm) {
  WgmmaWork work = work_of<Shape>(gemm, kBytesStep);
  work.group = 1024 / Shape::N;
  return work;
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class Result>
void launch_wgmma(const GemmProblem& gemm, const TiledSource<Shape>& source, const Result& result) {
  const WgmmaWork work = work_of_bytes<Shape>(gemm);
  const WgmmaPlaces places(work);
  launch(
      gemm_fp8_three_consumers<Shape, Result>,
      {dim3(blocks_for(places.count, 1, multiprocessors())), dim3(kThreads), Shape::kSharedBytes},
      source, work, places, gemm.scale(), result);
}

/// Calls body(Shape) for the larger shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Narrow>(gemm, body);
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_bytes(gemm)) return why;
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

/// Whether all rows of c are aligned to 16 bytes, if the first one is.
bool rows_of_c_fit(const GemmProblem& gemm) { return gemm.N % 4 == 0; }

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  float* const c = arrays.c;
  with_shape(gemm, [&]<class Shape>(Shape) {
    const TiledSource<Shape> source = tiled_bytes<Shape>(gemm, arrays, context);
    if (!rows_of_c_fit(gemm) || reinterpret_cast<std::uintptr_t>(c) % 16 != 0) {
      launch_wgmma(gemm, source, PlainFloats<Shape>{rows_of_c<Shape>(gemm, c)});
      return;
    }
    const TiledMap boxes = {
        2, {gemm.N, gemm.M}, {1, gemm.N}, {kTensorMapRow, 64}, /*keeps_floats=*/true};
    launch_wgmma(gemm, source, FloatBoxes<Shape>{tensor_map(boxes, c)});
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(bytes_in_words<Shape>(gemm), rows_of_c_fit(gemm) ? ", c by TMA" : "");
  });
}

}  // namespace

extern const Implementation<GemmArrays> fp8_three_consumers = {
    .supports = supports,
    .workspace_bytes = bytes_of_copies,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
