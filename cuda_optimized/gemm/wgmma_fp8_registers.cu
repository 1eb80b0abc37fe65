/// @file wgmma_fp8_registers.cu
/// @brief gemm on Hopper in 8 bits: taller tiles, for blocks of rows share the sums of a stage.
///
/// - Before: wgmma_fp8.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Tiles of 128 x 128 ask more of the L2 cache than it gives, and taller ones have
/// more sums. But only the sums of the tile must last. Those of a stage are done with as soon as
/// they have been added. So a consumer has two blocks of 64 rows now, takes one after the other,
/// and has the same registers for what each sums up of a stage:
///
///     consumer 0   rows 0: wgmma   add to sums[0]    rows 64: wgmma   add to sums[1]
///     consumer 1   ...             rows 128: wgmma   add to sums[0]   rows 192: wgmma   ...
///
/// While one adds, the other one's products run, as before. A thread has 64 and 128 sums, more than
/// the 168 registers that it begins with. `setmaxnreg` moves them, for whole warpgroups, as in
/// wgmma_registers.cu: one of producers keeps 40, and a consumer gets 232.
///
/// **Expect.** A step of a tile of 256 x 128 loads 48 KB for 1024 cycles of the tensor cores: 48
/// bytes a cycle and SM, where 128 x 128 asks 64 and the L2 cache delivers about 34. nvcc's loop of
/// a step has 8 QGMMA and 128 FADD among fewer than 200 instructions, and spills nothing. Predicted
/// on an H200: 850 us at 8192, 120 us at 4096; b turned over takes 35 and 9 us of these.
/// @expect on --m 512 --n 512 --k 256 --dtype fp8
/// @expect requests.shared.async 8 * 2 * (1 + 1) = 32, eight tiles where 128 x 128 has sixteen
/// @expect bytes_per_lane.shared.async (256 + 128) * 128 / 2 = 24576
/// @expect bytes_per_output.shared.async 256 * (1 / 128 + 1 / 256) = 3, and not 256 * 2 / 128 = 4
/// **Costs.** 193 KB of shared memory, so that an SM has one block; 96 idle threads. Tiles are
/// fewer: 2048 at 8192 take 16 rounds of 132 SMs, where 15.5 would do. Declined: as before.
/// **Try.** Give a consumer two blocks of 128 columns in place of rows, in tiles of 128 x 256. What
/// changes of the bytes that are loaded, and of those that wgmma reads in shared memory?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/plain_sums.cuh"
#include "cuda_optimized/gemm/repack_bytes.cuh"
#include "cuda_optimized/gemm/wgmma_matrices.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 8, 1>;   ///< For small products: tiles for more of the SMs.
using Medium = WgmmaShape<128, 128, 6, 1>;  ///< Likewise.
using Large = WgmmaShape<256, 128, 4, 1>;   ///< Loads 3/4 of Medium's bytes.

constexpr int kBytesStep = 4 * kWgmmaStep;  ///< Of k in a stage: rows of 128 bytes.

/// Of a block: the consumers, and a warpgroup of which one thread loads.
constexpr int kThreads = kConsumerThreads + 128;
/// Registers a thread: what all begin with, 65536 / kThreads in eights, and what they change to.
constexpr int kRegisters = 168, kRegistersToLoad = 40, kRegistersToMultiply = 232;
static_assert(kRegistersToLoad + kConsumers * kRegistersToMultiply <=
              (1 + kConsumers) * kRegisters);

/// Grid: <= places.count; block kThreads. @param scale of the sums
template <class Shape>
__global__ void __launch_bounds__(kThreads, Shape::kBlocks)
    gemm_wgmma_fp8_registers(const __grid_constant__ TiledSource<Shape> source, WgmmaWork work,
                             WgmmaPlaces places, float scale, RowMajor<Shape> result) {
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
  unsigned round = 0;  // of the ring of stages, modulo 2
  if (thread >= kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // all four warps; then one thread is left
    if (thread > kConsumerThreads) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Until the consumers have read what the stage held a round ago; at once in round 0.
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

  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have given theirs back

  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, thread / 128, 0), warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::kRowTiles][Shape::N / 2];  // of the tile
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kBytesStep);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
#pragma unroll
      for (int i = 0; i < Shape::kRowTiles; ++i) {
        float part[Shape::N / 2];  // of a step, for 64 rows: the next ones take the same registers
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kBytesStep; k += 32) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k32_e4m3<Shape::N>(part, a_at + (i * 64 * kBytesStep + k) / 16,
                                           b_at + k / 16, k > 0);
        }
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<0>();
        if (i == Shape::kRowTiles - 1 && lane == 0) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
        for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] += part[j];
      }
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }

    const auto place = result.place(item);
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] *= scale;
      const std::int64_t row = item.m * Shape::M + consumer * kRows + i * 64 + warp * 16 + lane / 4;
      float* const rows[2] = {result.row(place, row), result.row(place, row + 8)};
      // Two loops: one without a test for tiles that lie in c as a whole, as most do.
      if (result.whole(place, item)) {
#pragma unroll
        for (int j = 0; j < Shape::N / 8; ++j) {
          const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
          result.store_whole(pair, rows[0], sums[i][4 * j], sums[i][4 * j + 1]);
          result.store_whole(pair, rows[1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      } else {
#pragma unroll
        for (int j = 0; j < Shape::N / 8; ++j) {
          const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
          result.store(pair, rows[0], sums[i][4 * j], sums[i][4 * j + 1]);
          result.store(pair, rows[1], sums[i][4 * j + 2], sums[i][4 * j + 3]);
        }
      }
    }
  }
}

/// Rows of what the copy engine reads begin at multiples of 16 bytes.
std::int64_t pitch_of(const GemmProblem& gemm) { return ceil_div(gemm.K, 16) * std::int64_t{16}; }

/// The work of a product with this shape.
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm) {
  return {.tiles_m = ceil_div(gemm.M, Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, kBytesStep),
          .map = gemm.map,
          .group = 1024 / Shape::N};
}

/// Calls body(Shape) for the largest shape of which there is a tile for nine of ten
/// multiprocessors.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  const std::int64_t enough = ceil_div(9 * multiprocessors(), 10);
  if (work_of<Large>(gemm).items() >= enough) return body(Large{});
  if (work_of<Medium>(gemm).items() >= enough) return body(Medium{});
  return body(Narrow{});
}

Declined supports(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f8) {
    return text("multiplies numbers of 8 bits, and the problem asks for ", dtype_name(gemm));
  }
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  if (gemm.map == TileMap::row_major) return {};  // an order of its own, without a grid
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return tile_map::why_no_whole_tiles({.map = gemm.map,
                                         .tiles_m = ceil_div(gemm.M, Shape::M),
                                         .tiles_n = ceil_div(gemm.N, Shape::N)});
  });
}

/// Copies with rows of pitch_of() bytes, in words: see TiledSource.
struct Copies {
  std::uint32_t *a, *b;  ///< [M], [N] rows.
};

/// The copies, with the bytes that they take.
Copies copies_in(WorkspaceCutter& cutter, const GemmProblem& gemm) {
  const std::int64_t words = pitch_of(gemm) / 4;
  auto* const b = cutter.take<std::uint32_t>(gemm.N * words);
  return {cutter.take<std::uint32_t>(gemm.M * words), b};
}

std::size_t workspace_bytes(const GemmProblem& gemm) {
  WorkspaceCutter cutter(nullptr);
  copies_in(cutter, gemm);
  return cutter.bytes();
}

/// Whether all rows of a begin at multiples of 16 bytes, and those of c at multiples of 8, if the
/// first ones do.
bool rows_of_a_fit(const GemmProblem& gemm) { return gemm.K % 16 == 0; }
bool columns_in_pairs(const GemmProblem& gemm) { return gemm.N % 2 == 0; }

template <class Shape>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  const Float8 *a = arrays.a, *b = arrays.b;
  float* c = arrays.c;
  const std::int64_t M = gemm.M, N = gemm.N, pitch = pitch_of(gemm), words = pitch / 4;
  WorkspaceCutter cutter(context.workspace_as<std::byte>());
  const Copies copies = copies_in(cutter, gemm);
  launch_repack({gemm.N, gemm.K, 1, N, pitch}, b, copies.b);
  const std::uint32_t* words_of_a = copies.a;
  if (rows_of_a_fit(gemm) && reinterpret_cast<std::uintptr_t>(a) % 16 == 0) {
    words_of_a = reinterpret_cast<const std::uint32_t*>(a);
  } else {
    launch_repack({gemm.M, gemm.K, gemm.K, 1, pitch}, a, copies.a);
  }
  const TiledSource<Shape> source = {
      tensor_map(TiledMap{2, {words, M}, {1, words}, {kWgmmaStep, Shape::M}}, words_of_a),
      tensor_map(TiledMap{2, {words, N}, {1, words}, {kWgmmaStep, Shape::N}}, copies.b)};
  const RowMajor<Shape> result = {
      c, M, N, reinterpret_cast<std::uintptr_t>(c) % 8 == 0 && columns_in_pairs(gemm)};
  const WgmmaWork work = work_of<Shape>(gemm);
  const WgmmaPlaces places(work);
  // As many blocks as run at the same time, if there is so much work: each takes one item after the
  // other.
  launch(gemm_wgmma_fp8_registers<Shape>,
         {dim3(blocks_for(places.count, 1, std::int64_t{multiprocessors()} * Shape::kBlocks)),
          dim3(kThreads), Shape::kSharedBytes},
         source, work, places, gemm.scale(), result);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape>(gemm, arrays, context); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(Shape::M, " x ", Shape::N, rows_of_a_fit(gemm) ? "" : ", a copied",
                columns_in_pairs(gemm) ? ", columns in pairs" : "");
  });
}

}  // namespace

extern const Implementation<GemmArrays> wgmma_fp8_registers = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
