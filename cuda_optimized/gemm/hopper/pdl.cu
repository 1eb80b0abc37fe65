/// @file pdl.cu
/// @brief Programmatic dependent launch: a GEMM starts while the previous kernel ends.
///
/// - Before: overlapped_epilogue.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** A kernel starts after the last block of the previous kernel has ended, and the
/// launch takes about a microsecond. Then blocks are distributed, barriers initialised and
/// registers reallocated. None of that reads a, b or c. With programmatic dependent launch (PDL,
/// `launch_early()`) the blocks start earlier, and wait before they access the first array:
///
///     kernel before   | ... last wave: some SMs are idle ...  |
///     usual launch                                            | launch | barriers | loads ...
///     with PDL            blocks start on idle SMs, barriers  | loads ...
///
/// An SM has room for one block of this kernel: a block of the next kernel starts when that one has
/// ended, while other SMs still compute. A kernel must permit the launch of the next kernel, and
/// each block does so at its start. The next kernel waits until all of this kernel has completed.
///
/// **Expect.** The saving is the same for all sizes, 0.5 to 1 us per GEMM: 0.4 % at 4096, 3 % at
/// 2048 and 12 % at 1024. It needs a sequence of kernels, as networks and `./ladder bench` have
/// them. A single GEMM takes as long as before.
/// @expect on --m 640 --n 128 --k 8 --dtype bf16
/// @expect requests.shared.async 10 * (1 + 2) = 30, as before
/// @expect bytes_per_lane.shared.store 4, as before
/// @expect blocks 8, as before, for 10 tiles
/// **Costs.** Where the kernel before does not permit PDL, only the launch is hidden.
/// Not supported: as before.
/// **Try.** Let only the producer wait. Which arrays of which kernel could be overwritten too soon?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = TallShape<64, 7>;   ///< Where c has no more columns.
using Low = LowShape<128, 7>;      ///< For small GEMMs: tiles for more of the SMs.
using Medium = TallShape<128, 6>;  ///< Likewise.
using Large = TallShape<256, 4>;   ///< Loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves, Result: BoxedResult or PlainPieces. Grid: <=
/// places.count; block kThreads<Shape>.
template <class Shape, class T, class Source, class Result>
__global__ void __launch_bounds__(kThreads<Shape>, Shape::kBlocks)
    gemm_hopper_pdl(const __grid_constant__ Source source, WgmmaWork work, WgmmaPlaces places,
                    Epilogue<Shape> epilogue, const __grid_constant__ Result result) {
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
  let_next_kernel_begin();
  wait_for_kernel_before();  // which may write a and b, and read c

  int stage = 0;
  unsigned phase = 0;  // of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kMultiply<Shape>) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= kMultiply<Shape> + (Source::kWholeWarp ? 32 : 1)) return;
    for (unsigned index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!whole_item_at(work, places, index, &item)) continue;
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

  // Waits until the producers have released theirs.
  ptx::setmaxnreg_inc<Shape::kRegistersToMultiply>();

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
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
      ptx::mbarrier_wait(&full[stage], phase);
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
      // Waits for the products of the previous step: TMA may overwrite the stage that they read.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        phase ^= 1;
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

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, const Epilogue<Shape>& epilogue,
                  const Result& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const WgmmaPlaces places(work);
  launch_early(gemm_hopper_pdl<Shape, T, Source, Result>,
               {dim3(blocks_for(places.count, 1, resident)), dim3(kThreads<Shape>),
                Shape::kSharedBytes + kStagingBytes},
               source, work, places, epilogue, result);
}

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
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

extern const Implementation<GemmArrays> hopper_pdl = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
