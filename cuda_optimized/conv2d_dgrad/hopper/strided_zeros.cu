/// @file strided_zeros.cu
/// @brief Strided TMA stores for 1 x 1 filters: idle warps write the zeros between the pixels of
/// dx.
///
/// - Before: halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 2 and one tap, three of four pixels of dx are zero, because no window
/// read them. implicit_gemm/warp_specialized.cu fills dx with zeros, and then writes a quarter of
/// it again, two elements at a time. Here each element is written once. The pixels of a residue
/// class, every second one of every second row, are an array of their own to TMA, whose tensor map
/// has the strides. What is left is halo_tile.cu over a quarter of the pixels, and *warps to
/// spare*:
///
///     dx   y 0 y 0 y 0     y: TMA, from the staging buffers of tiles
///          0 0 0 0 0 0     0: three warps beside the producer, row by row
///          y 0 y 0 y 0
///
/// Registers are allocated for warps in fours. Beside a single producer warp three more cost none.
///
/// **Expect.** B8 reads 26 MB and writes 51 MB. With an evict-first hint for dx, dy stays in the L2
/// cache: 51 MB at 4.2 TB/s are 12 us, and each dy is loaded 4 times, 103 MB at 36 bytes per cycle
/// and SM, 13 us beside: 20 us with launch and end; 41 us by warp_specialized.cu, 34 us by cuDNN.
/// @expect on --n 1 --c 64 --h 32 --w 32 --k 64 --r 1 --s 1 --stride 2 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 1) = 4, two blocks: a patch, weights of one tap
/// @expect bytes_per_lane.dx.store 16, zeros; TMA stores the others
/// @expect bytes.dx.store 3 * 16 * 16 * 64 * 2 = 98304, three of four pixels
/// **Costs.** Not supported: stride 1, and filters whose taps reach several residue classes, as 3 x
/// 3 filters do with stride 2.
/// **Try.** Which filters larger than 1 x 1 reach one class only?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/cache_hints.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_stages.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::kPixelBytes;
using conv2d::PatchBarriers;
using conv2d::PatchPlan;
using conv2d::PatchResult;
using conv2d::PatchStages;
using conv2d::PatchWork;

/// Stores 16 bytes of zeros a lane to `count` numbers; or, without `vectors`, a number. By a warp.
template <class T>
__device__ void store_zeros(T* to, std::int64_t count, bool vectors, std::uint64_t policy) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (vectors) {
    for (std::int64_t i = 8 * lane; i < count; i += 8 * 32)
      ptx::st_cache_hint(reinterpret_cast<float*>(to + i), {0.0f, 0.0f, 0.0f, 0.0f}, policy);
  } else {
    for (std::int64_t i = lane; i < count; i += 32) to[i] = T{};
  }
}

/// All pixels of dx that are not of the result's class become zero. By `warps` warps, of which this
/// one is number `warp`; each takes whole rows.
template <class T>
__device__ void store_zeros_between(const conv2d::PatchResult<T>& dx, unsigned warp,
                                    unsigned warps) {
  const std::int64_t row_numbers = std::int64_t{dx.W} * dx.K;
  const std::uint64_t policy = ptx::createpolicy(dx.passes);
  for (std::int64_t i = warp; i < std::int64_t{dx.N} * dx.H; i += warps) {
    T* const row = dx.out + i * row_numbers;
    if (i % dx.H % dx.out_stride.h != dx.out_first.h) {
      store_zeros(row, row_numbers, dx.vectors, policy);
      continue;
    }
    // Between two pixels of the class, and before the first one.
    for (int w = dx.out_first.w - dx.out_stride.w + 1; w < dx.W; w += dx.out_stride.w) {
      const int from = max(w, 0), to = min(w + dx.out_stride.w - 1, dx.W);
      if (from < to) {
        store_zeros(row + std::int64_t{from} * dx.K, std::int64_t{to - from} * dx.K, dx.vectors,
                    policy);
      }
    }
  }
}

constexpr int kZeroWarps = 3;  ///< Beside the producer, in the fourth warpgroup's place.
constexpr int kThreads = gemm::kWgmmaThreads + 32 * kZeroWarps;  ///< Of a block.

/// Sums over windows: one warp, the producer, loads patches and taps; the others, two consumer
/// warpgroups, take the tiles alternately. Patches: TmaPatches or GatheredPatches, Taps likewise.
/// kZeroWarps more write zeros. Grid: <= work.blocks(); block kThreads; work.plan.shared_bytes().
template <class T, int kColumns, class Patches, class Taps>
__global__ void __launch_bounds__(kThreads, 1)
    conv2d_dgrad_hopper_strided_zeros(const __grid_constant__ Patches patches,
                                      const __grid_constant__ Taps taps,
                                      const __grid_constant__ PatchWork work,
                                      const __grid_constant__ PatchResult<T> result) {
  // multiplied: a consumer's tile, so that the next patches are the other's.
  __shared__ PatchBarriers barriers;
  __shared__ std::uint64_t multiplied[gemm::kConsumers];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (std::uint64_t& barrier : multiplied) ptx::mbarrier_init(&barrier, 4);
  }
  PatchStages<> stages(work, barriers);
  stages.prepare<kThreads>();

  const PatchPlan& plan = work.plan;
  const int chunks = work.windows.chunks();
  const auto tile_of = [&](unsigned item) {
    return conv2d::tile_at(plan.tiles, item / work.filter_tiles);
  };
  const auto filters_of = [&](unsigned item) {
    return conv2d::filters_at(work.windows, item % work.filter_tiles);
  };
  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (const int warp = thread / 32 - gemm::kConsumerThreads / 32; warp > 0) {
      store_zeros_between(result, blockIdx.x * kZeroWarps + static_cast<unsigned>(warp - 1),
                          gridDim.x * kZeroWarps);
      return;
    }
    if (lane != 0 && !Taps::kWholeWarp) return;
    bool is_first = true;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, is_first = false) {
      stages.load(patches, taps, tile_of(item), filters_of(item), 0, chunks,
                  is_first || !plan.stay);
    }
    return;
  }

  T* const staging = reinterpret_cast<T*>(stages.behind + consumer * plan.staging_bytes);
  int before = 0;  // tiles of this block that came before
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x, ++before) {
    if (before % gemm::kConsumers != consumer) {
      stages.skip();
      continue;
    }
    float accumulators[kColumns / 2];
#pragma unroll
    for (float& sum : accumulators) sum = 0.0f;
    // Without it, a patch of the tile before, two phases earlier, would look like this one's.
    if (before > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (before - 1) / 2 & 1);
    // for each tap and 64 channels c:
    //   accumulators[filter][p, q] += weights[filter][c] * patch[p + r * dilation.h][q + ...][c]
    stages.for_each_tap(plan.tiles, 0, chunks, [&](const char* weights, std::uint64_t columns) {
      conv2d::multiply_tap<Taps::kTransposed, kColumns, T>(accumulators, weights, columns);
    });
    if (lane == 0) ptx::mbarrier_arrive(&multiplied[consumer]);
    stages.finish();
    result.template store<kColumns>(plan.tiles, tile_of(item), filters_of(item), consumer,
                                    accumulators, staging);
  }
  result.finish();
}

std::int64_t dx_bytes(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.C * conv.H * conv.W * 2;
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  const int pixels = std::min(conv.stride.h, conv.H) * std::min(conv.stride.w, conv.W);
  const auto with_taps = static_cast<int>(HalfClasses(conv).products.size());
  if (pixels == 1) return "one class of pixels: there are no zeros between them";
  if (with_taps != 1)
    return text("taps reach ", with_taps, " classes of pixels: only halo tiles of one are loaded");
  const Windows windows = product_of(conv).windows;
  return conv2d::why_no_patches(windows, conv2d::patch_plan(windows, kPixelBytes));
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  const HalfProduct product = product_of(conv);  // of the one class that taps reach
  const Windows& windows = product.windows;
  if (windows.pixels() == 0) return;
  with_half_type(conv.dtype, [&]<class T>(T) {
    const PatchWork work(windows, conv2d::patch_plan(windows, kPixelBytes));
    const auto result = conv2d::patch_result<T>(windows, work.plan.tiles, nullptr, arrays.dx,
                                                conv2d::passes_the_cache(dx_bytes(conv)));
    conv2d::with_halo_operands<T>(
        product, arrays_of(arrays), work,
        [&]<class PatchesOf, class Taps>(PatchesOf patches_of, Taps taps) {
          if constexpr (Taps::kTransposed) {  // as a gradient's are
            conv2d::with_columns<true>(
                work.plan.tiles.columns, [&]<int kColumns>(conv2d::Columns<kColumns>) {
                  const auto patches = patches_of(work);
                  launch(conv2d_dgrad_hopper_strided_zeros<T, kColumns,
                                                           std::decay_t<decltype(patches)>, Taps>,
                         {dim3(blocks_for(work.items, 1, work.blocks())), dim3(kThreads),
                          work.plan.shared_bytes()},
                         patches, taps, work, result);
                });
          }
        });
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const HalfProduct product = product_of(conv);
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              conv2d::patch_plan_in_words(product.windows, kPixelBytes), operands_in_words(product),
              conv2d::passes_the_cache(dx_bytes(conv)) ? ", past the L2 cache" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_strided_zeros = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
