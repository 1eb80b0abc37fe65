/// @file halo_tile.cu
/// @brief conv2d_wgrad on Hopper in 16 bits: a block has nine taps of a filter, and brings a pixel
/// once for all of them.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - After: cluster_reduction.cu
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** The rung before brings each pixel of x for each tap. But the taps' pixels are the
/// same ones, shifted. So three warpgroups hold the sums of 64 filters by 64 or 32 channels by 3 x
/// 3 taps in their registers, a row of taps each, and go through the image in bands:
///
///     x    . . . . . . . .     rows p - 1 ... p + 3
///     dy     o o o o o o       rows p ... p + 2, times x shifted by r rows and s columns
///
/// The swizzle follows the bits of an address, and so a factor may begin at any pixel of a stage. A
/// descriptor also says how far columns 64 ... 127 of a factor are from the first 64. Let that be
/// one pixel: then a `wgmma` of 192 columns reads x for s = 0, 1, 2 from the same bytes. db is
/// dy times a factor of ones, of which each row of taps has a share.
///
/// **Expect.** 64 channels: for 16 pixels 288 cycles of the tensor cores and 5 KB from L2, 18 bytes
/// a cycle where the rung before has 50 to 90; 8 KB of shared memory are read in 96 cycles, two
/// thirds of what there is. But each block stores 147 KB, and its parts are read again: 10 us. With
/// 32 channels it is half of that, for 107 bytes a cycle of shared memory. Short sums take those.
/// Of the pixels, rows of no multiple of 16 waste a tenth, of 7 a quarter. B4 22 us, B6 21, B7 23,
/// B9 105 (70 for the memory alone), B10 350.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 8 * (1 + 1) = 16, two tiles of four bands
/// @expect bytes_per_lane.shared.async (6 * 18 * 64 + 4 * 16 * 128) / 2 = 7552, the two boxes
/// @expect bytes_per_lane.dw.store 16, four channels
/// **Costs.** Filters of fewer taps multiply by taps that they do not have. A workspace for parts.
/// A warp gathers what is not in eights. Declined: strides, dilations that do not fit; as before.
/// **Try.** Stride 2: which columns of x belong to s = 0 and s = 2, which to s = 1?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_boxes.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_parts.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_plan.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kTapConsumers = 128 * kTapAxis;     ///< Threads that multiply.
constexpr int kTapThreads = kTapConsumers + 128;  ///< And a warpgroup that loads.
/// Of a thread, where all have 128 at the start: 3 * 152 + 56 = 4 * 128.
constexpr int kRegistersToMultiply = 152, kRegistersToLoad = 56;
constexpr int kInFlight = 3;  ///< Products that a warpgroup leaves to the tensor cores meanwhile.
constexpr int kBiasColumns = 16;  ///< Of the product with ones; all are the same.

/// The descriptor of what begins 16 * `units` bytes further.
__device__ std::uint64_t further(std::uint64_t descriptor, int units) {
  const auto low = static_cast<std::uint32_t>(descriptor) + static_cast<std::uint32_t>(units);
  return (descriptor >> 32 << 32) | low;
}

/// What there is to compute, and where it goes.
struct TapWork {
  TapTiles tiles;
  Bands bands;
  int bands_each, longer;  ///< of a part; the first `longer` parts have one more
  Padding pad;
  TapParts parts;  ///< or dw itself, see there
  bool pairs;      ///< two neighbouring channels of dw can be stored at once
};

/// One part of a tile a block: a warp, the producer, brings bands of x and dy from `source`; three
/// warpgroups multiply, each for a row of taps. Source: CopiedBoxes or GatheredBoxes.
/// Grid: tiles * splits; block kTapThreads; stages of work.bands in shared memory.
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
  unsigned round = 0;  // of the ring of stages, modulo 2
  const auto next_stage = [&] {
    if (++stage < bands.stages) return;
    stage = 0;
    round ^= 1;
  };

  // From lane 0, so that the compiler knows it to be the same for the whole warp.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == kTapAxis) {
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // all four warps; then one is left
    if (thread >= kTapConsumers + (Source::kWholeWarp ? 32 : 1)) return;
    const BoxOrigin origin(work.tiles, tile, work.pad, bands.dilation);
    for (int i = 0; i < count; ++i, bands.advance(band), next_stage()) {
      // Until the consumers have read what the stage held a round ago; at once in round 0.
      ptx::mbarrier_wait(&empty[stage], round ^ 1);
      char* const to = stages + stage * bands.bytes;
      source.load(origin, band, to, to + bands.x_bytes, &full[stage]);
    }
    return;
  }
  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have given theirs back

  const std::uint32_t two_ones = 0x10001u * rounded_to<T>(1.0f).bits;
  for (int i = thread; i < kOnesBytes / 4; i += kTapConsumers)
    reinterpret_cast<std::uint32_t*>(ones)[i] = two_ones;
  // What the last step reads behind the boxes: zeros of dy, and of x at least no NaN.
  const int x_end = bands.x_rows * bands.x_columns * bands.pixel_bytes;
  const int dy_end = bands.x_bytes + bands.rows * bands.columns * kDyBytes;
  const int behind_x = (bands.x_bytes - x_end) / 16,
            behind = behind_x + (bands.bytes - dy_end) / 16;
  for (int i = thread; i < bands.stages * behind; i += kTapConsumers) {
    const int at = i % behind;
    char* const to = stages + i / behind * bands.bytes +
                     (at < behind_x ? x_end + 16 * at : dy_end + 16 * (at - behind_x));
    *reinterpret_cast<uint4*>(to) = {};
  }
  ptx::fence_proxy_async();                   // ordinary stores, which wgmma will read
  ptx::named_barrier_sync(1, kTapConsumers);  // separates them from all products
  constexpr int kColumns = kTapAxis * kChannels, kRowBytes = 2 * kChannels;
  float sums[kColumns / 2], bias[kBiasColumns / 2];
#pragma unroll
  for (float& sum : sums) sum = 0.0f;
#pragma unroll
  for (float& sum : bias) sum = 0.0f;
  // The warpgroups of all tiles of channels take turns at the bands in adding up dy.
  const int shares = work.tiles.c * kTapAxis, share = tile.share * kTapAxis + consumer;
  int turn = begin % shares;
  const bool has_bias = tile.r == 0 && tile.s == 0;
  // All factors lie in the same 256 KB: descriptors differ in the low word, in units of 16 bytes.
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
    ptx::mbarrier_wait(&full[stage], round);
    ptx::wgmma_fence();
    for_each_step(
        [&](std::uint64_t dy, std::uint64_t x) { gemm::wgmma_across<kColumns, T>(sums, dy, x); });
    if (adds_bias) {
      for_each_step([&](std::uint64_t dy, std::uint64_t) {
        gemm::wgmma_across<kBiasColumns, T>(bias, dy, ones_at);
      });
    }
    // All but this band's last products are done: the stage before may be overwritten.
    if (lines * steps >= kInFlight) {
      ptx::wgmma_wait_group<kInFlight>();
    } else {
      ptx::wgmma_wait_group<1>();
    }
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
    last_stage = stage;
    next_stage();
  }
  ptx::wgmma_wait_group<0>();

  store_taps<kChannels>(work.tiles, tile, tile.r + consumer, work.parts.dw, split, work.pairs,
                        sums);
  if (!has_bias || lane % 4 != 0) return;
  const SumParts& db = work.parts.db;
  const int k = tile.k + thread % 128 / 32 * 16 + lane / 4;
  float* const to = db.from + (std::int64_t{split} * shares + share) * db.apart() +
                    tile.group * work.tiles.group_k;
  if (k < work.tiles.group_k) to[k] = bias[0];
  if (k + 8 < work.tiles.group_k) to[k + 8] = bias[2];
}

/// Whether TMA can load the boxes, if the arrays begin at multiples of 16 bytes.
bool by_the_copy_engine(const Conv2dProblem& conv) {
  return conv.N > 0 && conv2d::in_eights(conv.C / conv.groups) &&
         conv2d::in_eights(conv.K / conv.groups);
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
  std::int64_t floats = 0;  // whether arrays begin at multiples of 16 bytes is not known here
  for (const bool copied : {false, by_the_copy_engine(conv)})
    floats = std::max(floats, TapParts(conv, tap_plan(conv, copied)).floats());
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
    const bool copied = by_the_copy_engine(conv) && gemm::begin_at_16_bytes(x, dy);
    const TapPlan plan = tap_plan(conv, copied);
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
    if (!copied) {
      launch_product<T, kManyChannels>(gathered_boxes(conv, plan.bands, x, dy), work);
    } else if (plan.channels == kManyChannels) {
      launch_product<T, kManyChannels>(copied_boxes(conv, plan.bands, x, dy), work);
    } else {
      launch_product<T, kFewChannels>(copied_boxes(conv, plan.bands, x, dy), work);
    }
    launch_add_tap_parts(parts, arrays.dw, arrays.db);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const TapPlan plan = tap_plan(conv, by_the_copy_engine(conv));
  return text(dtype_name(conv.dtype, conv.precision), ", ", plan.channels, " channels",
              plan.bands.folded ? ", folded" : ", strips",
              plan.splits > 1 ? ", parts" : ", whole sums",
              by_the_copy_engine(conv) ? ", by TMA" : ", by a warp");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> hopper_halo_tile = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
