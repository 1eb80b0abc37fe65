/// @file overlapped_epilogue.cu
/// @brief gemm on Hopper in 16 bits: a tile is stored during the next one's first steps.
///
/// - Before: hopper/small_tiles.cu
/// - After: hopper/pdl.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A consumer stores its sums when the last product is done, and multiplies again
/// when the last box is written. All that time the tensor cores have nothing to do, for the other
/// consumer is as far. Two sets of sums do not fit into a thread's registers. But what is stored
/// has 16 bits: rounded, 128 sums are 64 registers, and they can wait there. The next tile's first
/// products are asked for at once, and in each of its first steps, while they run, the consumer
/// stores 64 columns of the tile before:
///
///     hopper/small_tiles   last step | round, box 0, 1, 2, 3 | step 0 | step 1 | step 2 | step 3
///     here              last step | round | step 0 | step 1 | step 2 | step 3 | step 4
///                                         | box 0  | box 1  | box 2  | box 3
///
/// This is what hopper/ping_pong is for, with tiles of 128 x 256 in place of 128 x 128. And nobody
/// sets sums to zero any more: a tile's first `wgmma` does not add.
///
/// **Expect.** A consumer writes four boxes in about 1600 cycles, of which 400 are left: it rounds,
/// and that is all that stands between two tiles. A tile has 65,500 cycles of products with K =
/// 4096, 131,000 with 8192, 16,400 with 1024. So 2.4 %, 1.2 % and 8 % of the cycles are saved;
/// where power is the limit, two thirds of that. Predicted on an H200: 1.5 % less time than
/// hopper/small_tiles at 4096, 0.8 % at 8192, 8 % with K = 1024. At 1024 and 2048 each block has
/// one tile, and nothing can be hidden.
/// @expect on --m 640 --n 128 --k 8 --dtype bf16
/// @expect requests.shared.async 10 * (1 + 2) = 30, as before
/// @expect bytes_per_lane.shared.store 4, two sums that were rounded before
/// @expect blocks 8, as before, for 10 tiles
/// **Costs.** 64 registers a thread: of 232, sums take 128. Declined: as before.
/// **Try.** Store two boxes in each of two steps, and all four in the first. What does it cost?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = TallShape<64, 7>;   ///< Where c has no more columns.
using Low = LowShape<128, 7>;      ///< For small products: tiles for more of the SMs.
using Medium = TallShape<128, 6>;  ///< Likewise.
using Large = TallShape<256, 4>;   ///< Loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves, Result: BoxedResult or PlainPieces. Grid: <=
/// places.count; block kThreads<Shape>.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kThreads<Shape>, Shape::kBlocks)
    gemm_overlapped_epilogue(const __grid_constant__ Source source, WgmmaWork work,
                             WgmmaPlaces places, Epilogue<Shape> epilogue,
                             const __grid_constant__ Result result) {
  // full: the stage has arrived; empty: all consumers' warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kMultiply<Shape> / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // of the ring of stages, modulo 2
  if (thread >= kMultiply<Shape>) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // all four warps; then one is left
    if (thread >= kMultiply<Shape> + (Source::kWholeWarp ? 32 : 1)) return;
    for (unsigned index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!whole_item_at(work, places, index, &item)) continue;
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

  // Waits until the producers have given theirs back.
  ptx::setmaxnreg_inc<Shape::kRegistersToMultiply>();

  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  char* const staging = stages + Shape::kStages * Shape::kStageBytes;
  int box = 0;
  const OperandDescriptor a(
      ptx::wgmma_descriptor(stages + consumer * Shape::kBytesA / Shape::kWarpgroups));
  const OperandDescriptor b(ptx::wgmma_row_major_descriptor(stages + Shape::kBytesA, kPieceBytes));
  constexpr int kPieces = Shape::N / 64;
  static_assert(Shape::kRowTiles == 1);
  std::uint32_t rounded[Shape::N / 4];  // sums of the tile before, two in each, to be stored
  bool waiting = false;                 // there are some
  unsigned index = blockIdx.x;
  const auto next = [&](WgmmaItem* item) {
    for (; index < places.count; index += gridDim.x) {
      if (!whole_item_at(work, places, index, item)) continue;
      index += gridDim.x;
      return true;
    }
    return false;
  };
  WgmmaItem item{}, before{};
  const auto store = [&](auto piece) {  // 64 columns of the tile before
    constexpr int kPiece = decltype(piece)::value;
#pragma nv_diag_suppress 549  // "used before its value is set": it is set where `waiting` is
    result.store_piece(before, consumer, 0, kPiece, staging, box, [&](T* to, int j, int half) {
      *reinterpret_cast<std::uint32_t*>(to) = rounded[2 * (8 * kPiece + j) + half];
    });
#pragma nv_diag_default 549
  };
  for (bool any = next(&item); any;) {
    float bias[Shape::N / 32], sums[1][Shape::N / 2];
    if (epilogue.asked()) epilogue.load(item, bias);
    int step = 0, last_stage = -1;
    const auto begin_step = [&](bool add) {
      ptx::mbarrier_wait(&full[stage], round);
      const int begin = stage * Shape::kStageBytes;
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
        // Along a row of a, from row to row of b.
        wgmma_m64k16<Shape::N, T>(sums[0], a.at(begin + k * 2), b.at(begin + k * kHalfColumns * 2),
                                  add || k > 0);
      }
      ptx::wgmma_commit_group();
    };
    const auto end_step = [&] {
      // All but this step's products are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
      ++step;
    };
    for_each_piece<kPieces>([&](auto piece) {
      const bool more = step < work.steps;
      if (more) begin_step(decltype(piece)::value > 0);
      if (waiting) store(piece);  // while these products run
      if (more) end_step();
    });
    while (step < work.steps) {
      begin_step(true);
      end_step();
    }
    before = item;
    any = next(&item);  // which takes two divisions, while the last products run
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

    if (epilogue.asked()) epilogue.finish(bias, sums);
#pragma unroll
    for (int j = 0; j < Shape::N / 4; ++j)
      rounded[j] = two_rounded<T>(sums[0][2 * j], sums[0][2 * j + 1]);
    waiting = true;
  }
  if (waiting) for_each_piece<kPieces>(store);
  result.finish();
}

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Epilogue<Shape>& epilogue,
                  const Result& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch(gemm_overlapped_epilogue<Shape, T, Source, Result>,
         {dim3(blocks_for(places.count, 1, resident)), dim3(kThreads<Shape>),
          Shape::kSharedBytes + kStagingBytes},
         source, work, places, epilogue, result);
}

/// Calls body(Shape) for the largest shape of which there is a tile for nine of ten
/// multiprocessors.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  if (gemm.N <= Narrow::N) return with_shape_of<Large, Medium, Narrow>(gemm, body);
  return with_shape_of<Large, Medium, Low>(gemm, body);
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_steps(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  return with_shape(gemm, [&]<class Shape>(Shape) { return why_no_order<Shape>(gemm); });
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_shape(gemm, [&]<class Shape>(Shape) {
      const Epilogue<Shape> epilogue = {arrays.bias, gemm.N, gemm.activation};
      with_halves<Shape, Shape, T, PlainPieces>(
          gemm, arrays.a, arrays.b, arrays.c, [&](const auto& source, const auto& result) {
            launch_wgmma<Shape, T>(source, work_of<Shape>(gemm, kHalfStep), epilogue, result);
          });
    });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) { return in_words<Shape>(gemm); });
}

}  // namespace

extern const Implementation<GemmArrays> overlapped_epilogue = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
