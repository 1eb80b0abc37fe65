/// @file wgmma_tma_store.cu
/// @brief gemm on Hopper in 16 bits: the copy engine stores c, too.
///
/// - Before: wgmma_16bit.cu
/// - After: wgmma_registers.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A warp that stores its sums itself writes, with one instruction, 16 bytes of each
/// of 8 rows of c: half of a sector each, and waits for address arithmetic and for room in the
/// queues. Here the sums are rounded into a box of 64 x 64 in shared memory, and one thread tells
/// the copy engine to store it. The consumers write the next box meanwhile, and begin the next tile
/// while the last boxes leave:
///
///     128 threads      write box 0 | write box 1 | write box 0 ...  | next tile
///     copy engine                  | box 0 -> c  | box 1 -> c ...   | last boxes
///
/// Two boxes a warpgroup take turns. The order of waiting is what can go wrong: thread 0 waits
/// until the box before the last has been *read*, then all meet, write, make their writes known to
/// the copy engine (`fence.proxy.async`), meet again, and thread 0 asks. Only the thread that asks
/// can wait, for groups of copies are a thread's own.
///
/// **Expect.** A tile of 128 x 256 is 64 KB of c, 256 rows of 128 bytes a box of whole sectors, in
/// place of 32 store instructions a thread of 4 bytes. The pairs go to different banks: rows of a
/// box are permuted as the 128-byte swizzle does it. Predicted on an H200: 1.5 to 2.5 % less time
/// than wgmma_16bit at 4096 (201 us) and 8192 (1590 us); more where sums are short.
/// @expect on --m 128 --n 128 --k 128 --dtype bf16
/// @expect bytes_per_lane.shared.store 4, two sums, into a box
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, the loads are the same
/// @expect barriers_per_block 1, named barriers are not counted
/// **Costs.** 32 KB more of shared memory a block: Medium has one stage fewer. Where the copy
/// engine cannot take a, b or c, a warp gathers numbers, and threads store theirs. Declined: as
/// before.
/// **Try.** Let all threads wait for the copy engine and leave out the first meeting. What does the
/// emulator find, and why does a GPU mostly not?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/halves.cuh"
#include "cuda_optimized/gemm/plain_sums.cuh"
#include "cuda_optimized/gemm/wgmma_halves.cuh"
#include "cuda_optimized/gemm/wgmma_matrices.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 3, 2>;   ///< Two blocks an SM, for small products.
using Medium = WgmmaShape<128, 128, 2, 2>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< One block an SM; loads 3/4 of Medium's bytes.

/// Bytes of the boxes in which sums leave: two a consumer, in turns.
constexpr int kBoxBytes = 64 * 64 * 2, kDraftBytes = kConsumers * 2 * kBoxBytes;

/// c [M][N] by the copy engine.
template <class Shape, class T>
struct BoxedResult {
  CUtensorMap c;  ///< in boxes of 64 x 64

  /// Stores a consumer's sums of a tile. 128 threads call it. @param box which of the two is next
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&sums)[Shape::kRowTiles][Shape::N / 2], char* drafts,
                        int& box) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int piece = 0; piece < Shape::N / 64; ++piece) {
        char* const draft = drafts + (2 * consumer + box) * kBoxBytes;
        if (thread == 0) ptx::cp_async_bulk_wait_group_read<1>();
        // The copy engine has read what the box held: all may overwrite it.
        ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int column = 8 * j + lane % 4 * 2, first = 4 * (8 * piece + j);
          T* const to = reinterpret_cast<T*>(draft);
          store_two(to + swizzled_half(row, column), sums[i][first], sums[i][first + 1]);
          store_two(to + swizzled_half(row + 8, column), sums[i][first + 2], sums[i][first + 3]);
        }
        ptx::fence_proxy_async();  // ordinary stores, which the copy engine will read
        ptx::named_barrier_sync(1 + consumer, 128);  // separates all stores from the copy
        if (thread == 0) {
          const int m =
              static_cast<int>(item.m) * Shape::M + (consumer * Shape::kRowTiles + i) * 64;
          ptx::tma_store<2>(&c, draft, {item.n * Shape::N + piece * 64, m});
          ptx::cp_async_bulk_commit_group();
        }
        box ^= 1;
      }
    }
  }
  /// Before the block ends, and its shared memory with it.
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// Source: TiledHalves or GatheredHalves, and Result accordingly. Grid: <= places.count; block
/// kWgmmaThreads.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_wgmma_tma_store(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                         const __grid_constant__ Result result) {
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
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Until the consumers have read what the stage held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty[stage], round ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, a, a + Shape::kBytesA, &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          round ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128;
  char* const drafts = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
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
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kHalfStep * 2);
      const std::uint64_t b_at = ptx::wgmma_row_major_descriptor(a + Shape::kBytesA, kPieceBytes);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes: along a row of a, from row to row of b.
          wgmma<Shape::N, T>(sums[i], a_at + (i * 64 * kHalfStep + k) / 8,
                             b_at + k * kHalfColumns / 8);
        }
      }
      ptx::wgmma_commit_group();
      // All but this step's products are done: the stage before may be overwritten.
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

    result.store(item, consumer, sums, drafts, box);
  }
  result.finish();
}

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Result& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(gemm_wgmma_tma_store<Shape, T, Source, Result>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kWgmmaThreads),
          Shape::kSharedBytes + kDraftBytes},
         source, work, places, result);
}

/// The work of a product with this shape.
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm) {
  return {.tiles_m = ceil_div(gemm.M, Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, kHalfStep),
          .map = gemm.map};
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
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  if (gemm.map == TileMap::row_major) return {};  // an order of its own, without a grid
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return tile_map::why_no_whole_tiles({.map = gemm.map,
                                         .tiles_m = ceil_div(gemm.M, Shape::M),
                                         .tiles_n = ceil_div(gemm.N, Shape::N)});
  });
}

/// Whether pairs of c begin at multiples of 4 bytes, if its first row does.
bool columns_in_pairs(const GemmProblem& gemm) { return gemm.N % 2 == 0; }

template <class Shape, class T>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T *a = arrays.a, *b = arrays.b;
  T* c = arrays.c;
  const WgmmaWork work = work_of<Shape>(gemm);
  if (!rows_in_eights(gemm) || !begin_at_16_bytes(a, b) || !begin_at_16_bytes(c, c)) {
    const bool pairs = reinterpret_cast<std::uintptr_t>(c) % 4 == 0 && columns_in_pairs(gemm);
    launch_wgmma<Shape, T>(GatheredHalves<Shape, T>{a, b, gemm}, work,
                           PlainResult<Shape, T>{{c, gemm.M, gemm.N, pairs}});
    return;
  }
  const TiledHalves<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
  const BoxedResult<Shape, T> result = {
      tensor_map(TiledMap{2, {gemm.N, gemm.M}, {1, gemm.N}, {64, 64}}, c)};
  launch_wgmma<Shape, T>(source, work, result);
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape, T>(gemm, arrays); });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(dtype_name(gemm.dtype, gemm.precision), ", ", Shape::M, " x ", Shape::N,
                rows_in_eights(gemm) ? ", by the copy engine" : ", by a warp",
                columns_in_pairs(gemm) ? ", columns in pairs" : "");
  });
}

}  // namespace

extern const Implementation<GemmArrays> wgmma_tma_store = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
