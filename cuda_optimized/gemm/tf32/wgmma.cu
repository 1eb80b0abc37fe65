/// @file wgmma.cu
/// @brief TF32 `wgmma`: TMA fills a ring of stages in shared memory, and consumer warpgroups
/// multiply.
///
/// - Before: persistent.cu
/// - After: swap_ab.cu, fp8/wgmma.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** No thread copies or loads fragments. `wgmma` is a GEMM of four warps, d [64][N] +=
/// a [64][8] * b [8][N] with N up to 256: it reads its operands from shared memory and runs
/// asynchronously. TMA copies a box of an array for one instruction of one thread: it writes zeros
/// outside of the array and rounds to TF32. Barriers connect copies and wgmma:
///
///     producer (one warp)          stages                    consumers (two warpgroups)
///     wait for empty[s]      +--------+--------+--- - -+     wait for full[s]
///     expect so many bytes   | a | b  | a | b  |       |     4 steps of wgmma on stage s
///     a box of a, one of b ->+--------+--------+--- - -+->   all but those done: empty[s - 1]
///     s + 1                      0        1      ...         s + 1
///
/// The kernel is persistent: the producer loads the next tile while the consumers store the last
/// one. Both operands must be K-major; b [k][n] is not, so a kernel transposes b into the
/// workspace.
///
/// **Expect.** A tile of 128 x 256 loads 48 KB per step, for 1024 cycles of the tensor cores.
/// Predicted on an H200: 330 to 390 TFLOP/s at 4096 without the transposition, whose share is half
/// as large at 8192.
/// @expect on --m 128 --n 128 --k 64 --dtype tf32
/// @expect requests.shared.async 2 * 2 * 2 = 8, two tiles, two steps, a box of a and one of b
/// @expect lanes_per_request.shared.async 1, one thread issues the copy of a box
/// @expect bytes_per_lane.shared.async (128 + 64) * 32 * 4 / 2 = 12288
/// @expect loads_per_output.b 64 * 128 / (128 * 128) = 0.5, transposed once
/// **Costs.** 99 to 198 KB of shared memory per block; a workspace of the size of b. Where rows of
/// a are not aligned to 16 bytes, a warp gathers elements, which is slow. Not supported: fp32
/// problems, all but compute capability 9.0, tile maps with parts of tiles.
/// **Try.** Give the ring two stages instead of four. Is it half as fast, and why not?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/repack.cuh"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 4, 2>;   ///< Two blocks per SM, for small GEMMs.
using Medium = WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< One block per SM; loads 3/4 of Medium's bytes.

/// Source: TiledSource or GatheredSource. Grid: <= places.count; block kWgmmaThreads.
template <class Shape, class Source>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_tf32_wgmma(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                    RowMajor<Shape> result) {
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
  unsigned round = 0;  // phase of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
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
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kWgmmaStep * 4);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k8_tf32<Shape::N>(sums[i], a_at + (i * 64 * kWgmmaStep + k) / 4,
                                          b_at + k / 4, true);
        }
      }
      ptx::wgmma_commit_group();
      // Waits for the wgmma of the previous step: its stage may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

    const auto place = result.place(item);
    float* rows[Shape::kRowTiles][2];  // of this thread: r and r + 8 of 16
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t row = item.m * Shape::M + consumer * kRows + i * 64 + warp * 16 + lane / 4;
      rows[i][0] = result.row(place, row);
      rows[i][1] = result.row(place, row + 8);
    }
    // Two loops: one without a test for tiles that lie in c as a whole, as most do.
    if (result.whole(place, item)) {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          result.store_whole(pair, rows[i][0], sums[i][4 * j], sums[i][4 * j + 1]);
          result.store_whole(pair, rows[i][1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          result.store(pair, rows[i][0], sums[i][4 * j], sums[i][4 * j + 1]);
          result.store(pair, rows[i][1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    }
  }
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class Source>
void launch_wgmma(const Source& source, const WgmmaWork& work, const RowMajor<Shape>& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(gemm_tf32_wgmma<Shape, Source>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kWgmmaThreads), Shape::kSharedBytes},
         source, work, places, result);
}

/// Rows of the transposed b are aligned to 16 bytes.
std::int64_t pitch_of(const GemmProblem& gemm) { return ceil_div(gemm.K, 4) * std::int64_t{4}; }

/// The tiles of a GEMM with this shape.
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm) {
  return {.tiles_m = ceil_div(gemm.M, Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, kWgmmaStep),
          .map = gemm.map};
}

/// Calls body(Shape) for the largest shape that has a tile for each SM.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  const int sms = multiprocessors();
  if (work_of<Large>(gemm).items() >= sms) return body(Large{});
  if (work_of<Medium>(gemm).items() >= sms) return body(Medium{});
  return body(Narrow{});
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

std::size_t workspace_bytes(const GemmProblem& gemm) {
  return static_cast<std::size_t>(gemm.N * pitch_of(gemm)) * sizeof(float);
}

/// Whether all rows of a are aligned to 16 bytes, and those of c at multiples of 8, if the first
/// ones do.
bool rows_of_a_in_fours(const GemmProblem& gemm) { return gemm.K % 4 == 0; }
bool columns_in_pairs(const GemmProblem& gemm) { return gemm.N % 2 == 0; }

template <class Shape>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  const float *a = arrays.a, *b = arrays.b;
  float* c = arrays.c;
  const WgmmaWork work = work_of<Shape>(gemm);
  const RowMajor<Shape> result = {
      c, gemm.M, gemm.N, reinterpret_cast<std::uintptr_t>(c) % 8 == 0 && columns_in_pairs(gemm)};
  if (reinterpret_cast<std::uintptr_t>(a) % 16 != 0 || !rows_of_a_in_fours(gemm)) {
    launch_wgmma<Shape>(GatheredSource<Shape>{a, b, gemm}, work, result);
    return;
  }
  float* transposed = context.workspace_as<float>();
  const std::int64_t pitch = pitch_of(gemm);
  launch_transpose({.axes = {},
                    .rows = gemm.K,
                    .columns = gemm.N,
                    .from_row = gemm.N,
                    .from_column = 1,
                    .to_row = pitch,
                    .padded = gemm.K},
                   b, transposed);
  const TiledSource<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kWgmmaStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.K, gemm.N}, {1, pitch}, {kWgmmaStep, Shape::N}}, transposed)};
  launch_wgmma<Shape>(source, work, result);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape>(gemm, arrays, context); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(Shape::M, " x ", Shape::N, rows_of_a_in_fours(gemm) ? ", by TMA" : ", by a warp",
                columns_in_pairs(gemm) ? ", columns in pairs" : "");
  });
}

}  // namespace

extern const Implementation<GemmArrays> tf32_wgmma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
