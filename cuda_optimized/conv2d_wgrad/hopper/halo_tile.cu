/// @file halo_tile.cu
/// @brief Halo-tile reuse: a block computes nine taps of a filter and loads each pixel once for all
/// of them.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - After: cluster_reduction.cu
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** warp_specialized.cu loads each pixel of x for each tap. But the taps' pixels are
/// the same ones, shifted. So three warpgroups hold the accumulators of 64 filters by 64 or 32
/// channels by 3 x 3 taps in registers, a row of taps each, and go through the image in bands:
///
///     x    . . . . . . . .     rows p - 1 ... p + 3
///     dy     o o o o o o       rows p ... p + 2, times x shifted by r rows and s columns
///
/// The swizzle follows the bits of an address, and so an operand may begin at any pixel of a stage.
/// A descriptor also says how far columns 64 ... 127 of an operand are from the first 64. With a
/// distance of one pixel, a `wgmma` of 192 columns reads x for s = 0, 1, 2 from the same bytes. db
/// is dy times an operand of ones, of which each row of taps computes a share.
///
/// **Expect.** 64 channels: for 16 pixels 288 cycles of the tensor cores and 5 KB from L2, 18 bytes
/// per cycle where warp_specialized.cu needs 50 to 90; 8 KB of shared memory are read in 96 cycles,
/// two thirds of its bandwidth. But each block stores 147 KB, and its parts are read again: 10 us.
/// With 32 channels it is half of that, for 107 bytes per cycle of shared memory: better for short
/// sums. Rows of no multiple of 16 pixels waste a tenth, of 7 pixels a quarter. B4 22 us, B6 21, B7
/// 23, B9 105 (70 for DRAM alone), B10 350 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 8 * (1 + 1) = 16, two tiles of four bands
/// @expect bytes_per_lane.shared.async (6 * 18 * 64 + 4 * 16 * 128) / 2 = 7552, the two boxes
/// @expect bytes_per_lane.dw.store 16, four channels
/// **Costs.** Filters of fewer than 3 x 3 taps multiply by taps that they do not have. A workspace
/// for parts. A warp gathers where channels are no multiples of 8. Not supported: strides,
/// dilations whose pixels do not fit; as before.
/// **Try.** Stride 2: which columns of x belong to s = 0 and s = 2, which to s = 1?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_bands.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_parts.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kBiasColumns = 16;  ///< Of the product with ones; all are the same.

/// The problem, its tiles and parts, and the destination.
struct TapWork {
  TapTiles tiles;
  Bands bands;
  int bands_each, longer;  ///< of a part; the first `longer` parts have one more
  Padding pad;
  TapParts parts;  ///< or dw itself, see there
  bool pairs;      ///< two neighbouring channels of dw can be stored at once
};

/// Each block computes one part of a tile: the producer warp loads bands of x and dy from `source`;
/// three warpgroups multiply, each for a row of taps. Source: TmaBoxes or GatheredBoxes. Grid:
/// tiles * splits; block kTapThreads; stages of work.bands in shared memory.
template <class T, int kChannels, class Source>
__global__ void __launch_bounds__(kTapThreads, 1)
    conv2d_wgrad_hopper_halo_tile(const __grid_constant__ Source source,
                                  const __grid_constant__ TapWork work) {
  // full: the stage has arrived; empty: all twelve consumer warps have read it.
  __shared__ std::uint64_t full[kMaxTapStages], empty[kMaxTapStages];
  const Bands& bands = work.bands;
  char* ones = dynamic_shared<char>();
  ones += (gemm::kAtom - ptx::shared_address(ones) % gemm::kAtom) % gemm::kAtom;
  char* const stages = ones + kOnesBytes;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < bands.stages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kTapConsumers / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();          // separates the initialisation from all use of the barriers
  let_next_kernel_begin();  // it waits for this one's end

  const auto tiles = static_cast<unsigned>(work.tiles.count());
  const TapTile tile = work.tiles.at(blockIdx.x % tiles);
  const int split = static_cast<int>(blockIdx.x / tiles);
  const int begin = split * work.bands_each + (split < work.longer ? split : work.longer);
  const int count = work.bands_each + (split < work.longer ? 1 : 0);
  Band band = bands.at(begin);
  int stage = 0;
  unsigned phase = 0;  // of the barriers, modulo 2
  const auto next_stage = [&] {
    if (++stage < bands.stages) return;
    stage = 0;
    phase ^= 1;
  };

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == kTapAxis) {
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= kTapConsumers + (Source::kWholeWarp ? 32 : 1)) return;
    const BoxOrigin origin(work.tiles, tile, work.pad, bands.dilation);
    for (int i = 0; i < count; ++i, bands.advance(band), next_stage()) {
      // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
      ptx::mbarrier_wait(&empty[stage], phase ^ 1);
      char* const to = stages + stage * bands.bytes;
      source.load(origin, band, to, to + bands.x_bytes, &full[stage]);
    }
    return;
  }
  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs

  const std::uint32_t two_ones = 0x10001u * rounded_to<T>(1.0f).bits;
  for (int i = thread; i < kOnesBytes / 4; i += kTapConsumers)
    reinterpret_cast<std::uint32_t*>(ones)[i] = two_ones;
  zero_behind_boxes(bands, stages);
  constexpr int kColumns = kTapAxis * kChannels, kRowBytes = 2 * kChannels;
  float accumulators[kColumns / 2], bias[kBiasColumns / 2];
#pragma unroll
  for (float& sum : accumulators) sum = 0.0f;
#pragma unroll
  for (float& sum : bias) sum = 0.0f;
  // For db, the warpgroups of all tiles of channels add up alternate bands of dy.
  const int shares = work.tiles.c * kTapAxis, share = tile.share * kTapAxis + consumer;
  int turn = begin % shares;
  const bool has_bias = tile.r == 0 && tile.s == 0;
  const std::uint64_t ones_at = ptx::wgmma_row_major_descriptor(ones, 0);
  const std::uint64_t dy_at = ptx::wgmma_row_major_descriptor(stages + bands.x_bytes, 0);
  // The columns of the first tap; those of the next ones are a tap's pixels further on.
  const std::uint64_t x_at =
      ptx::wgmma_row_major_descriptor(stages, bands.dilation.w * kRowBytes, kRowBytes);
  constexpr int kPixelX = kRowBytes / 16, kPixelDy = kDyBytes / 16;
  const int x_row = consumer * bands.dilation.h * bands.x_columns;
  int last_stage = -1;
  for (int i = 0; i < count; ++i, bands.advance(band)) {
    const int lines = bands.lines(band), steps = bands.steps(band);
    const bool adds_bias = has_bias && turn == share;
    if (++turn == shares) turn = 0;
    const int begin_of_stage = stage * (bands.bytes / 16);
    const auto for_each_step = [&](const auto& multiply) {
      for (int line = 0; line < lines; ++line) {
        int x = begin_of_stage + (x_row + line * bands.x_columns) * kPixelX;
        int dy = begin_of_stage + line * bands.columns * kPixelDy;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
          multiply(further(dy_at, dy), further(x_at, x));
          ptx::wgmma_commit_group();
          x += kTapDepth * kPixelX;
          dy += kTapDepth * kPixelDy;
        }
      }
    };
    ptx::mbarrier_wait(&full[stage], phase);
    // for each filter k, channel c and column s of taps, and pixel (p, q) of the band:
    //   accumulators[k][s][c] += dy[p][q][k] * x[p + consumer * dilation.h][q + s * dilation.w][c]
    ptx::wgmma_fence();
    for_each_step([&](std::uint64_t dy, std::uint64_t x) {
      conv2d::wgmma_half<kColumns, T, true, true>(accumulators, dy, x);
    });
    if (adds_bias) {
      for_each_step([&](std::uint64_t dy, std::uint64_t) {
        conv2d::wgmma_half<kBiasColumns, T, true, true>(bias, dy, ones_at);
      });
    }
    wait_for_band_before(lines * steps);
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
    last_stage = stage;
    next_stage();
  }
  ptx::wgmma_wait_group<0>();

  store_taps<kChannels>(work.tiles, tile, tile.r + consumer, work.parts.dw, split, work.pairs,
                        accumulators);
  if (!has_bias || lane % 4 != 0) return;
  const SumParts& db = work.parts.db;
  const int k = tile.k + thread % 128 / 32 * 16 + lane / 4;
  float* const to = db.from + (std::int64_t{split} * shares + share) * db.apart() +
                    tile.group * work.tiles.group_k;
  if (k < work.tiles.group_k) to[k] = bias[0];
  if (k + 8 < work.tiles.group_k) to[k + 8] = bias[2];
}

/// Whether TMA can load the boxes, if the arrays are aligned to 16 bytes.
bool rows_for_tma(const Conv2dProblem& conv) {
  return conv.N > 0 && conv.C / conv.groups % 8 == 0 && conv.K / conv.groups % 8 == 0;
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: the taps' pixels of x are one another's, shifted by one";
  if (tap_plan(conv, false).bands.stages < 2) {
    return text("dilation ", conv.dilation.h, " x ", conv.dilation.w,
                ": the pixels of three taps each way do not fit into shared memory");
  }
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  std::int64_t floats = 0;  // whether arrays are aligned to 16 bytes is not known here
  for (const bool by_tma : {false, rows_for_tma(conv)})
    floats = std::max(floats, TapParts(conv, tap_plan(conv, by_tma)).floats());
  return static_cast<std::size_t>(floats) * sizeof(float);
}

template <class T, int kChannels, class Source>
void launch_product(const Source& source, const TapWork& work) {
  const auto shared =
      static_cast<std::size_t>(work.bands.stages) * work.bands.bytes + gemm::kAtom + kOnesBytes;
  launch(conv2d_wgrad_hopper_halo_tile<T, kChannels, Source>,
         {dim3(blocks_for(work.tiles.count() * work.parts.dw.parts, 1)), dim3(kTapThreads), shared},
         source, work);
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *dy = arrays.dy;
    const bool by_tma = rows_for_tma(conv) && gemm::begin_at_16_bytes(x, dy);
    const TapPlan plan = tap_plan(conv, by_tma);
    TapParts parts(conv, plan);
    parts.begin_at(context.workspace_as<float>(), arrays.dw);
    const TapWork work = {
        .tiles = TapTiles(conv, plan.channels),
        .bands = plan.bands,
        .bands_each = static_cast<int>(plan.bands.count() / plan.splits),
        .longer = static_cast<int>(plan.bands.count() % plan.splits),
        .pad = conv.pad,
        .parts = parts,
        .pairs = conv.C / conv.groups % 2 == 0 &&
                 reinterpret_cast<std::uintptr_t>(parts.dw.from) % 8 == 0,
    };
    if (!by_tma) {
      launch_product<T, kManyChannels>(gathered_boxes(conv, plan.bands, x, dy), work);
    } else if (plan.channels == kManyChannels) {
      launch_product<T, kManyChannels>(tma_boxes(conv, plan.bands, x, dy), work);
    } else {
      launch_product<T, kFewChannels>(tma_boxes(conv, plan.bands, x, dy), work);
    }
    launch_add_tap_parts(parts, arrays.dw, arrays.db);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const TapPlan plan = tap_plan(conv, rows_for_tma(conv));
  return text(dtype_name(conv.dtype, conv.precision), ", ", plan.channels, " channels",
              plan.bands.folded ? ", folded" : ", strips",
              plan.splits > 1 ? ", parts" : ", whole sums",
              rows_for_tma(conv) ? ", by TMA" : ", by a warp");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> hopper_halo_tile = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
