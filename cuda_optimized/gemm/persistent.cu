/// @file persistent.cu
/// @brief Persistent kernel: blocks compute several tiles, and the producer runs ahead into the
/// next one.
///
/// - Before: warp_specialized.cu
/// - After: tma_store.cu, tf32/wgmma.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** In warp_specialized.cu, every tile of c is a block: it initialises barriers, waits
/// for its first stage, and while it stores c, nothing is loaded. Here as many blocks are launched
/// as fit on the SMs, and each computes one tile after the other. The ring of stages and its phases
/// continue from tile to tile, so that the producer loads the next tile's first stages while the
/// consumers still store the last tile:
///
///     producer    tile 0, step 61 | 62 | 63 | tile 1, step 0 | 1 | 2 | wait for empty
///     consumers        ... step 62 | step 63 | store tile 0           | tile 1, step 0
///
/// A tile scheduler maps a running index to a tile, in groups of 8 columns of tiles.
///
/// **Expect.** A step of a tile of 128 x 256 loads 48 KB for 1024 cycles of the tensor cores: 48
/// bytes a cycle and SM, where the L2 cache delivers about 34. That is 71 % of 990 TFLOP/s.
/// Predicted on an H200: 650 to 700 TFLOP/s at 4096 (205 us) and 8192 (1620 us); 29 us at 2048, one
/// tile an SM, and 10 us at 1024, whose tiles are smaller.
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, two tiles, two steps, a box of a and one of b
/// @expect bytes_per_lane.c.store 16
/// @expect on --m 1280 --n 128 --k 8 --dtype bf16
/// @expect blocks 8, one an SM of cuda_on_cpu, for 10 tiles
/// **Costs.** 99 to 198 KB of shared memory a block. Where rows of a or b are not aligned to 16
/// bytes, a warp copies element by element. Not supported: as before.
/// **Try.** Let b's descriptor step by 32 bytes for 16 steps of k, as a's does. What does c hold?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 4, 2>;   ///< Two blocks per SM, for small GEMMs.
using Medium = WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< One block per SM; loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves. Grid: <= places.count; block kWgmmaThreads.
template <class Shape, class T, class Source>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_persistent(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                    RowsOfC<T> c) {
  // full: the stage has arrived; empty: all eight consumer warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned phase = 0;  // of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Waits until the consumers have read the previous phase of the stage; in phase 0, at once.
        ptx::mbarrier_wait(&empty[stage], phase ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, a, a + Shape::kBytesA, &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128, warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::kRowTiles][Shape::N / 2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], phase);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kHalfStep * 2);
      const std::uint64_t b_at = ptx::wgmma_row_major_descriptor(a + Shape::kBytesA, kPieceBytes);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes: along a row of a, from row to row of b.
          wgmma_m64k16<Shape::N, T>(sums[i], a_at + (i * 64 * kHalfStep + k) / 8,
                                    b_at + k * kHalfColumns / 8);
        }
      }
      ptx::wgmma_commit_group();
      // Waits for the products of the previous step: TMA may overwrite the stage that they read.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t m = item.m * Shape::M + consumer * kRows + i * 64 + warp * 16 + lane / 4;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        T* const row = c.row(m + 8 * half);
        const auto pair = [&](int j) {
          return float2{sums[i][4 * j + 2 * half], sums[i][4 * j + 2 * half + 1]};
        };
#pragma unroll
        for (int j = 0; j < Shape::N / 8; j += 4) {
          const std::int64_t n = std::int64_t{item.n} * Shape::N + 8 * j;
          c.store(row, n, pair(j), pair(j + 1), pair(j + 2), pair(j + 3));
        }
      }
    }
  }
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class T, class Source>
void launch_wgmma(const Source& source, const WgmmaWork& work, const RowsOfC<T>& c) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(gemm_persistent<Shape, T, Source>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kWgmmaThreads), Shape::kSharedBytes},
         source, work, places, c);
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  return with_shape_of<Large, Medium, Narrow>(gemm, body);
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

template <class Shape, class T>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T *a = arrays.a, *b = arrays.b;
  const WgmmaWork work = work_of<Shape>(gemm, kHalfStep);
  const RowsOfC<T> c = rows_of_c<T>(gemm, arrays.c);
  if (!rows_in_eights(gemm) || !begin_at_16_bytes(a, b)) {
    launch_wgmma<Shape, T>(GatheredHalves<Shape, T>{a, b, gemm}, work, c);
    return;
  }
  const TiledHalves<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
  launch_wgmma<Shape, T>(source, work, c);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape, T>(gemm, arrays); });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> persistent = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
