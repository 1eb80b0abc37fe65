/// @file wgmma_fp8.cu
/// @brief gemm on Hopper in 8 bits: two sets of sums, for tensor cores add behind 13 bits.
///
/// - Before: wgmma_3xtf32.cu
/// - After: wgmma_fp8_registers.cu
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** Numbers of 8 bits (e4m3) halve the bytes of 16 bits and double the speed of the
/// tensor cores: a stage of the same bytes has 128 steps of k, and `wgmma` takes 32. But it adds
/// them coarsely. All products and the old sum are cut off behind 13 bits of fraction, from the
/// largest of them on, so that a sum of 2^14 no longer notices a 1. So sums do not stay there:
/// those of a stage, four `wgmma`, go to a second set in float, and the next stage begins at zero.
///
///     k:      0      32     64     96     128    160    192    224    256
///     part    0 ---->+----->+----->+----->|0 --->+----->+----->+----->|0     wgmma, 13 bits
///     sums    0                           +part                       +part  float, 24 bits
///
/// While one consumer adds, the other one's products run. Both factors of 8 bits must run along k:
/// a kernel turns b over, as in wgmma_tf32.cu. To the copy engine, four numbers are one word.
///
/// **Expect.** A step of a tile of 128 x 128 loads 32 KB for 512 cycles of the tensor cores: 64
/// bytes a cycle and SM, where the L2 cache delivers about 34. That is 53 % of 1979 TFLOP/s.
/// Predicted on an H200: 1000 to 1100 TFLOP/s at 8192 (1050 us), 130 us at 4096; b turned over
/// takes 35 and 9 us of these.
/// @expect on --m 128 --n 128 --k 256 --dtype fp8
/// @expect requests.shared.async 2 * 2 * (1 + 1) = 8, two tiles, two steps, a box of a and one of b
/// @expect bytes_per_lane.shared.async (128 + 64) * 128 / 2 = 12288
/// @expect loads_per_output.b 256 * 128 / 4 / (128 * 128) = 0.5, four numbers at a time, once
/// @expect bytes_per_lane.c.store 8, two floats: numbers of 8 bits would be too coarse
/// **Costs.** 99 to 198 KB of shared memory a block; a workspace as large as a and b. Twice as many
/// sums as in 16 bits, so that tiles are half as wide. Where rows of a do not begin at multiples of
/// 16 bytes, a is copied, too. Declined: other types, all but compute capability 9.0, maps that
/// hand out less than whole tiles.
/// **Try.** Add the sums of every second stage only. Which tests notice, and from which K on?
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

using Narrow = WgmmaShape<128, 64, 4, 2>;   ///< Two blocks an SM, for small products.
using Medium = WgmmaShape<128, 128, 6, 1>;  ///< Wider ones would have more sums than registers.

constexpr int kBytesStep = 4 * kWgmmaStep;  ///< Of k in a stage: rows of 128 bytes.

/// Grid: <= places.count; block kWgmmaThreads. @param scale of the sums
template <class Shape>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kBlocks)
    gemm_wgmma_fp8(const __grid_constant__ TiledSource<Shape> source, WgmmaWork work,
                   WgmmaPlaces places, float scale, RowMajor<Shape> result) {
  static_assert(Shape::kRowTiles == 1, "64 rows for each consumer");
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
    if (lane != 0) return;
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

  const int consumer = thread / 128, warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!item_at(work, places, index, &item)) continue;
    float sums[Shape::N / 2], part[Shape::N / 2];  // of the tile, of a step
#pragma unroll
    for (int j = 0; j < Shape::N / 2; ++j) sums[j] = 0.0f;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kBytesStep);
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

    const auto place = result.place(item);
    const std::int64_t row = item.m * Shape::M + consumer * kRows + warp * 16 + lane / 4;
    float* const rows[2] = {result.row(place, row), result.row(place, row + 8)};
    // Two loops: one without a test for tiles that lie in c as a whole, as most do.
    if (result.whole(place, item)) {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
        result.store_whole(pair, rows[0], sums[4 * j], sums[4 * j + 1]);
        result.store_whole(pair, rows[1], sums[4 * j + 2], sums[4 * j + 3]);
      }
    } else {
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
        result.store(pair, rows[0], sums[4 * j], sums[4 * j + 1]);
        result.store(pair, rows[1], sums[4 * j + 2], sums[4 * j + 3]);
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
          .group = 2048 / Shape::N};
}

/// Calls body(Shape) for the largest shape of which there is a tile for nine of ten
/// multiprocessors.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  const std::int64_t enough = ceil_div(9 * multiprocessors(), 10);
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
  launch(gemm_wgmma_fp8<Shape>,
         {dim3(blocks_for(places.count, 1, std::int64_t{multiprocessors()} * Shape::kBlocks)),
          dim3(kWgmmaThreads), Shape::kSharedBytes},
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

extern const Implementation<GemmArrays> wgmma_fp8 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
