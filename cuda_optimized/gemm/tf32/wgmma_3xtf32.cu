/// @file wgmma_3xtf32.cu
/// @brief 3xTF32 with `wgmma`: three TF32 products have the accuracy of float, and only one operand
/// is split in registers.
///
/// - Before: swap_ab.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Each operand is the sum of two TF32 values, as in mma_3xtf32.cu. Here only b is in
/// registers, where it can be split. But wgmma ignores the 13 low bits of a float in shared memory:
/// the tile of a is the truncated big part already. Two warps write its small part to a second
/// tile:
///
///     a loader      splitters (2 warps)                consumers
///     stage s ->    small = x - cut_off(x)      ->     8 products with a small part
///                   for the M x 32 numbers of a        4 with both big ones: 12 in a group
///
/// Tensor cores truncate when they add. So each step starts at zero, and its accumulators are added
/// to totals by ordinary additions. A consumer waits for its wgmma before the addition; those of
/// the other consumer keep the tensor cores busy, so that no second set of accumulators is needed.
///
/// **Expect.** Three times the wgmma of tf32/swap_ab.cu: 915 us at 4096 at the peak of the tensor
/// cores. wgmma reads 64 bytes per cycle from shared memory; loads, splitters and fragments 50
/// bytes more. Predicted on an H200: 1200 us at 4096, 9400 us at 8192, 165 us at 2048, 30 us at
/// 1024.
/// @expect on --m 128 --n 128 --k 64
/// @expect requests.shared.async 2 * 2 * (1 + 4) = 20, as before: floats as they are
/// @expect loads_per_output.shared 64 / 64 + 64 * 64 / 4 / (64 * 128) = 1.125, splitters load fours
/// @expect excess.shared.load 0, no bank twice
/// **Costs.** The small part is up to 2^-10 of a value, where rounding would leave 2^-11. Sums of
/// up to 32 products include the fourth term, as in mma_3xtf32. Infinities become NaN. Not
/// supported: all but compute capability 9.0, tile maps with parts of tiles.
/// **Try.** Let the splitters write zeros. Which tests notice, and which do not?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/tf32_swap_ab.cuh"
#include "cuda_optimized/gemm/tf32/wgmma_3xtf32.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Short = SwappedShape<64, 6, 2>;    ///< For small GEMMs: tiles for more of the SMs.
using Square = SwappedShape<128, 4, 2>;  ///< Taller ones would have more sums than registers.

/// Of a block: the consumers, and a warpgroup of which one warp loads and two split.
constexpr int kThreads = kConsumerThreads + 128;
constexpr int kFirstSplitter = kConsumerThreads + 32, kSplitters = 64;  ///< threads
/// Registers a thread: what all begin with, 65536 / kThreads in eights, and what they change to.
constexpr int kRegisters = 168, kRegistersToLoad = 40, kRegistersToMultiply = 232;
static_assert(kRegistersToLoad + kConsumers * kRegistersToMultiply <=
              (1 + kConsumers) * kRegisters);

/// What TF32 has no room for: a float minus its leading 11 bits, rounded to TF32.
__device__ float small_part(float value) {
  const float big = __uint_as_float(__float_as_uint(value) & 0xffffe000u);
  return __uint_as_float(ptx::to_tf32(value - big));
}

/// Writes the small parts of a stage's a. All splitters call it. @param thread of them
template <class Shape>
__device__ void split(char* stage, int thread) {
  const float4* const a = reinterpret_cast<const float4*>(stage) + thread;
  float4* const small = reinterpret_cast<float4*>(stage + Shape::kLoadedBytes) + thread;
#pragma unroll 4
  for (int i = 0; i < Shape::kBytesA / 16; i += kSplitters) {
    const float4 x = a[i];
    small[i] = {small_part(x.x), small_part(x.y), small_part(x.z), small_part(x.w)};
  }
}

/// Source: TiledSwapped or GatheredSwapped, and Result accordingly. Grid: <= places.count; block
/// kThreads.
template <class Shape, class Source, class Result>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_tf32_wgmma_3xtf32(const __grid_constant__ Source source, WgmmaWork work,
                           WgmmaPlaces places, bool all_four,
                           const __grid_constant__ Result result) {
  // full: the stage has arrived; ready: so have the small parts of a; empty: all consumers have
  // read it. For a warp that gathers, each lane says so of its own loads. TMA receives it
  // from one lane of a warp: the products that are done had all lanes' numbers.
  constexpr int kLanes = Source::kThreads > 1 ? 32 : 1;  // of a warp that arrive
  __shared__ std::uint64_t full[Shape::kStages], ready[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (kAtom - ptx::shared_address(stages) % kAtom) % kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const bool arrives = lane < kLanes;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], Source::kThreads);
      ptx::mbarrier_init(&ready[i], kSplitters / 32 * kLanes);
      ptx::mbarrier_init(&empty[i], kConsumerThreads / 32 * kLanes);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // phase of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= kConsumerThreads) {
    // The producers. They run ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // all four warps; then three are left
    const bool splits = thread >= kFirstSplitter;
    if (thread >= kFirstSplitter + kSplitters || (!splits && lane >= Source::kThreads)) {
      return;
    }
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        char* const to = stages + stage * Shape::kStageBytes;
        if (splits) {
          ptx::mbarrier_wait(&full[stage], round);
          split<Shape>(to, thread - kFirstSplitter);
          ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
          __syncwarp();              // separates all lanes' stores from the arrival
          if (arrives) ptx::mbarrier_arrive(&ready[stage]);
        } else {
          // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
          ptx::mbarrier_wait(&empty[stage], round ^ 1);
          source.load(cursor, to, &full[stage]);
          source.advance(cursor);
        }
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
    float totals[Shape::M / 2];  // of 64 columns of c, each with all rows of the tile
#pragma unroll
    for (int i = 0; i < Shape::M / 2; ++i) totals[i] = 0.0f;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const int begin = stage * Shape::kStageBytes;
      const float* const b = reinterpret_cast<const float*>(stages + begin + Shape::kBytesA);
      std::uint32_t big_b[kWgmmaStep / 8][4], small_b[kWgmmaStep / 8][4];
#pragma unroll
      for (int k = 0; k < kWgmmaStep / 8; ++k) {
        fragment_place.load(b, k * 8, big_b[k]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float value = __uint_as_float(big_b[k][i]);
          big_b[k][i] = ptx::to_tf32(value);
          small_b[k][i] = ptx::to_tf32(value - __uint_as_float(big_b[k][i]));
        }
      }
      ptx::mbarrier_wait(&ready[stage], round);
      const auto big_a = [&](int k) { return further(a_at, begin + k * 32); };
      const auto small_a = [&](int k) {
        return further(a_at, begin + Shape::kLoadedBytes + k * 32);
      };
      float sums[Shape::M / 2];  // of this step, the smallest first
      if (all_four) {
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kWgmmaStep / 8; ++k) {
          ptx::wgmma_m64k8_tf32<Shape::M>(sums, small_b[k], small_a(k), k > 0);
        }
      }
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kWgmmaStep / 8; ++k) {
        ptx::wgmma_m64k8_tf32<Shape::M>(sums, small_b[k], big_a(k), all_four || k > 0);
        ptx::wgmma_m64k8_tf32<Shape::M>(sums, big_b[k], small_a(k), true);
      }
#pragma unroll
      for (int k = 0; k < kWgmmaStep / 8; ++k) {
        ptx::wgmma_m64k8_tf32<Shape::M>(sums, big_b[k], big_a(k), true);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      if (arrives) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
      for (int i = 0; i < Shape::M / 2; ++i) totals[i] += sums[i];
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    item.m += item.split * work.tiles_m;  // the parts of c follow one another
    result.store(item, totals, drafts, box);
  }
  result.finish();
}

/// Launches one block per SM, but no more blocks than there are items.
template <class Shape, class Source, class Result>
void launch_wgmma(const Source& source, const WgmmaWork& work, bool all_four,
                  const Result& result) {
  const WgmmaPlaces places(work);
  launch(
      gemm_tf32_wgmma_3xtf32<Shape, Source, Result>,
      {dim3(blocks_for(places.count, 1, multiprocessors())), dim3(kThreads), Shape::kSharedBytes},
      source, work, places, all_four, result);
}

/// The work of products with this shape. Blocks that run at the same time have tiles of about 2048
/// columns and as many rows.
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm, int products = 1, int splits = 1) {
  return {.tiles_m = std::int64_t{products} * ceil_div(gemm.M, Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = splits,
          .steps = ceil_div(gemm.K, kWgmmaStep),
          .map = gemm.map,
          .group = 2048 / Shape::N};
}

/// Whether the rounding of a few products counts: their small parts must be multiplied, too.
bool is_short(const GemmProblem& gemm) { return gemm.K <= kWgmmaStep; }

/// Calls body(Shape) for the largest shape that has a tile for nine of ten SMs.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  const std::int64_t enough = ceil_div(9 * multiprocessors(), 10);
  if (work_of<Square>(gemm).items() >= enough) return body(Square{});
  return body(Short{});
}

Declined supports(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f32) return "float32 only";
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  if (const Declined why = why_no_wgmma()) return why;
  if (gemm.map == TileMap::row_major) return {};  // an order of its own, without a grid
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return tile_map::why_no_whole_tiles({.map = gemm.map,
                                         .tiles_m = ceil_div(gemm.M, Shape::M),
                                         .tiles_n = ceil_div(gemm.N, Shape::N)});
  });
}

/// Products of this size, by TMA.
template <class Shape>
void launch_tiled(const GemmProblem& gemm, const Products3xTf32& all) {
  const std::int64_t M = gemm.M, N = gemm.N, K = gemm.K, products = all.products;
  const std::int64_t rows = all.splits * products * M;  // of c
  const auto work = work_of<Shape>(gemm, all.products, all.splits);
  const TiledSwapped<Shape> source = {
      tensor_map(TiledMap{2, {K, products * M}, {1, K}, {kWgmmaStep, Shape::M}, true}, all.a),
      tensor_map(TiledMap{2, {N, products * K}, {1, N}, {kPanel, kWgmmaStep}, true}, all.b),
      static_cast<int>(work.tiles_m / products), gemm.K};
  const BoxedRows<Shape> result = {
      tensor_map(TiledMap{2, {N, rows}, {1, N}, {kPanel, kDraftRows}, true}, all.c)};
  launch_wgmma<Shape>(source, work, is_short(gemm), result);
}

template <class Shape>
void run_with(const GemmProblem& gemm, const GemmArrays& arrays) {
  const float *a = arrays.a, *b = arrays.b;
  float* c = arrays.c;
  const auto begins = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                      reinterpret_cast<std::uintptr_t>(c);
  if (begins % 16 != 0 || !rows_in_fours(gemm)) {
    launch_wgmma<Shape>(GatheredSwapped<Shape, false>{a, b, gemm}, work_of<Shape>(gemm),
                        is_short(gemm), PlainRows<Shape>{c, gemm.M, gemm.N});
  } else {
    launch_tiled<Shape>(gemm, {1, gemm.M, gemm.N, gemm.K, 1, a, b, c});
  }
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape>(gemm, arrays); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(Shape::M, " x ", Shape::N, rows_in_fours(gemm) ? ", by TMA" : ", by a warp",
                is_short(gemm) ? ", all four products" : "");
  });
}

}  // namespace

void launch_gemm_wgmma_3xtf32(const Products3xTf32& all) {
  const GemmProblem each{.M = all.M, .N = all.N, .K = all.K};
  if (all.M % Square::M == 0 && work_of<Square>(each, all.products, all.splits).items() >=
                                    ceil_div(9 * multiprocessors(), 10)) {
    launch_tiled<Square>(each, all);
  } else {
    launch_tiled<Short>(each, all);
  }
}

extern const Implementation<GemmArrays> tf32_wgmma_3xtf32 = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
