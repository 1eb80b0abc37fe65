/// @file split_k_tail.cu
/// @brief Split-K tail: the tiles of the last wave are cut along k, so that all SMs share its work.
///
/// - Before: small_tiles.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** 2304 x 2304 has 162 tiles of 128 x 256: one for each of an H200's 132 SMs, and 30
/// for a second wave in which 102 SMs are idle. The tiles of that wave are cut along k, into as
/// many parts as there are blocks for them (wave quantization). With K = 8192:
///
///     wave 1    tiles   0 to 131, a whole one for each block:   128 steps
///     wave 2    tiles 132 to 161, four parts of each:            32 steps, for 120 blocks
///
/// Each of the four blocks has a part of all accumulators of its tile, and stores 64 columns of it.
/// It writes the others to the workspace in register order; all blocks synchronise; and it adds the
/// three other parts of its own columns, always in the same order. This needs neither a second
/// kernel nor a counter, but a cooperative launch. Adjacent blocks compute the same part of
/// adjacent tiles, so they read the same steps of a and b at the same time, and the L2 cache loads
/// them once. With equal shares of all steps, as in stream_k.cu, every block would be elsewhere
/// along k.
///
/// **Expect.** Shape and parts minimise the cycles of a model: M N / 32 per step, 5 to 20 % more in
/// smaller shapes; 2000 for the synchronisation; partial results written and added at 16 bytes per
/// cycle. Predicted on an H200: 124 us with K = 8192, where hopper/small_tiles.cu takes 165 us.
/// With K = 2304 two waves of 216 tiles of 128 x 192 take fewer: 37 us, before 49 us. (35.5 us by
/// parts was predicted with 64 bytes per cycle.) 1024, 2048 and 4096: as before.
/// @expect on --m 128 --n 128 --k 2048 --dtype bf16 --map split_k
/// @expect blocks 6, three parts of each of two tiles of 64 x 128
/// @expect lanes_per_output.workspace.store 4 * 64 * 64 / 4 / (64 * 128) = 0.5, four half tiles
/// @expect lanes_per_output.workspace.load 0.5
/// @expect launches 1
/// **Costs.** A tile of floats per block, 17 MB on an H200, if any tile is cut. Supported maps:
/// row_major and, to cut wherever possible, split_k.
/// **Try.** Give the parts of a tile to adjacent blocks. How does the time change, and why?
#include <algorithm>

#include "core/cuda/cooperative.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/split_k_tail.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = TallShape<64, 7>;   ///< Where c has no more columns.
using Low = LowShape<128, 7>;      ///< For small GEMMs: tiles for more of the SMs.
using Medium = TallShape<128, 6>;  ///< Likewise.
using Wide = TallShape<192, 4>;    ///< Where its last wave is fuller.
using Large = TallShape<256, 4>;   ///< Loads 3/4 of Medium's bytes.

/// Source: TiledHalves or GatheredHalves, and Result accordingly. Grid: rounds.blocks, launched
/// cooperatively if tiles are cut; block kThreads<Shape>. @tparam kCut tiles are cut
template <class Shape, class T, bool kCut, class Source, class Result>
__global__ void __launch_bounds__(kThreads<Shape>, Shape::kBlocks)
    gemm_hopper_split_k_tail(const __grid_constant__ Source source,
                             const __grid_constant__ WgmmaRounds rounds, SentSums<Shape> sent,
                             Epilogue<PieceOf<Shape>> epilogue,
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
  unsigned phase = 0;  // of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kMultiply<Shape>) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps
    if (thread < kMultiply<Shape> + (Source::kWholeWarp ? 32 : 1)) {
      BlockItems<kCut> items(rounds);
      WgmmaItem item;
      while (items.next(&item)) {
        auto cursor = source.at(item);
        for (int step = item.first; step < item.last; ++step) {
          // Waits until the consumers have read the previous phase of the stage; in phase 0, at
          // once.
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
    }
    if constexpr (kCut) meet_all_blocks();  // as the consumers do, below
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
  BlockItems<kCut> items(rounds);
  WgmmaItem item{};
  constexpr int kPieces = SentSums<Shape>::kPieces;
  float bias[kPieces][kHalfColumns / 32], sums[Shape::kRowTiles][Shape::N / 2];
  // The item of a piece, which is a tile of its own.
  const auto item_of = [&](int piece) {
    WgmmaItem part = item;
    part.n = item.n * kPieces + piece;
    return part;
  };
  // Stores a piece of this block's accumulators, with those that `add` adds.
  const auto store = [&](auto piece, const auto& add) {
    constexpr int kSums = kHalfColumns / 2, kPiece = decltype(piece)::value;
    float of[1][kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) of[0][i] = sums[0][kPiece * kSums + i];
    add(of[0]);
    if (epilogue.asked()) epilogue.finish(bias[kPiece], of);
    result.store(item_of(kPiece), consumer, of, staging, box);
  };
  bool cut = false;  // The last item is a part of a tile.
  while (items.next(&item)) {
    if (epilogue.asked()) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) epilogue.load(item_of(piece), bias[piece]);
    }
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], phase);
      const int begin = stage * Shape::kStageBytes;
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHalfStep; k += 16) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Along a row of a, from row to row of b.
          wgmma_m64k16<Shape::N, T>(sums[i], a.at(begin + (i * 64 * kHalfStep + k) * 2),
                                    b.at(begin + k * kHalfColumns * 2));
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

    cut = kCut && item.last - item.first < rounds.steps;
    if (cut) break;
    for_each_piece<kPieces>([&](auto piece) { store(piece, [](auto&) {}); });
  }
  if constexpr (kCut) {
    for_each_piece<kPieces>([&](auto piece) {
      constexpr int kPiece = decltype(piece)::value;
      if (cut && kPiece % rounds.parts != item.split) sent.template send<kPiece>(sums[0]);
    });
    meet_all_blocks();  // separates the stores of parts from their loads
    const int first_block = static_cast<int>(blockIdx.x) - item.split * rounds.cut();  // of a tile
    for_each_piece<kPieces>([&](auto piece) {
      constexpr int kPiece = decltype(piece)::value;
      if (!cut || kPiece % rounds.parts != item.split) return;
      store(piece, [&](auto& of) {
#pragma unroll 3
        for (int ahead = 1; ahead < rounds.parts; ++ahead) {
          const int part = (item.split + ahead) % rounds.parts;
          sent.add(first_block + part * rounds.cut(), kPiece, of);
        }
      });
    });
  }
  result.finish();
}

/// Calls body(Shape, WgmmaRounds) for the shape that takes the least time.
template <class Body>
auto with_plan(const GemmProblem& gemm, const Body& body) {
  if (gemm.N <= Narrow::N) return body(Narrow{}, plan_of<Narrow>(gemm, 1).rounds);
  const Plan low = plan_of<Low>(gemm, 1.2), medium = plan_of<Medium>(gemm, 1.1),
             wide = plan_of<Wide>(gemm, 1.05), large = plan_of<Large>(gemm, 1);
  const double least = std::min({low.cycles, medium.cycles, wide.cycles, large.cycles});
  if (large.cycles == least) return body(Large{}, large.rounds);
  if (wide.cycles == least) return body(Wide{}, wide.rounds);
  if (medium.cycles == least) return body(Medium{}, medium.rounds);
  return body(Low{}, low.rounds);
}

/// Launches as many blocks as are resident at the same time, but no more than there are items.
template <class Shape, class T, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaRounds& rounds, const SentSums<Shape>& sent,
                  const Epilogue<PieceOf<Shape>>& epilogue, const Result& result) {
  const LaunchConfig config = {static_cast<unsigned>(rounds.blocks), kThreads<Shape>,
                               Shape::kSharedBytes + kStagingBytes};
  if (rounds.parts > 1) {
    launch_cooperatively(gemm_hopper_split_k_tail<Shape, T, true, Source, Result>, config, source,
                         rounds, sent, epilogue, result);
  } else {
    launch(gemm_hopper_split_k_tail<Shape, T, false, Source, Result>, config, source, rounds, sent,
           epilogue, result);
  }
}

Declined supports(const GemmProblem& gemm) {
  if (const Declined why = why_no_halves(gemm)) return why;
  if (const Declined why = why_no_steps(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  if (gemm.map == TileMap::row_major || gemm.map == TileMap::split_k) return {};
  return text("the map ", name_of(gemm.map), ": this rung has an order of its own");
}

std::size_t workspace_bytes(const GemmProblem& gemm) {
  return with_plan(gemm, [&]<class Shape>(Shape, const WgmmaRounds& rounds) {
    return rounds.parts == 1 ? std::size_t{0}
                             : static_cast<std::size_t>(rounds.blocks) * SentSums<Shape>::kOfBlock *
                                   sizeof(float4);
  });
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  with_half_type(gemm.dtype, [&]<class T>(T) {
    with_plan(gemm, [&]<class Shape>(Shape, const WgmmaRounds& rounds) {
      const Epilogue<PieceOf<Shape>> epilogue = {arrays.bias, gemm.N, gemm.activation};
      const SentSums<Shape> sent = {context.workspace_as<float4>()};
      with_halves<Shape, PieceOf<Shape>, T>(
          gemm, arrays.a, arrays.b, arrays.c, [&](const auto& source, const auto& result) {
            launch_wgmma<Shape, T>(source, rounds, sent, epilogue, result);
          });
    });
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_plan(gemm, [&]<class Shape>(Shape, const WgmmaRounds& rounds) {
    return in_words<Shape>(gemm, rounds.parts == 1   ? ""
                                 : rounds.whole == 0 ? ", in parts"
                                                     : ", the last ones in parts");
  });
}

}  // namespace

extern const Implementation<GemmArrays> hopper_split_k_tail = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
