/// @file split_k_1x1.cu
/// @brief Split-K over all SMs for 1 x 1 filters: each pixel is loaded from DRAM once.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** A layer of 1 x 1 has few weights and many pixels: DRAM limits it. B5 has 64 MB.
/// warp_specialized.cu reads 51 of them, dy, once more for db, has work for 64 of 132 SMs, and
/// fills half of its tiles. Here every SM has a tile of dw and an equal share of the pixels:
///
///     block 0   step 0, 66, 132 ...   k0 ... k127   by c0 ... c63    two warpgroups of 64 filters
///     block 1   the same steps        k128 ... k255 by c0 ... c63
///     block 2   step 1, 67, 133 ...   k0 ... k127 ...
///
/// Large tiles read less from L2, but each SM stores its tile as a part of the sums: 64 KB are 8 MB
/// of all SMs, an eighth of B5's bytes, twice. A model weighs these. Filters are the rows of the
/// GEMM, so that db is dy times an operand of ones, from what is in shared memory anyway. Windows
/// of 1 x 1 are loaded in boxes, as y is: TMA's im2col mode takes longer. Parts lie as registers
/// hold them; the kernel that adds them up computes which weights they are.
///
/// **Expect.** B5: 15.3 us for all bytes at 4.2 TB/s, 2.5 us for a launch and the first bytes, 1.5
/// us to store 4 MB of parts, 2 us to add them: 21 us. B8: 77 MB from L2 in 10 us, and 2.5, 8 and 4
/// us: 24 us.
/// @expect on --n 2 --c 64 --h 16 --w 16 --k 128 --r 1 --s 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 8 * (2 + 1) = 24, eight steps of three boxes
/// @expect bytes_per_lane.shared.async 64 * 64 * 2 = 8192, a box
/// @expect bytes_per_lane.dw.store 8, two channels
/// **Costs.** A workspace for parts. Filters of several taps load each window for each tap, as
/// before. Channels and filters of a group in multiples of 8, otherwise a warp gathers. Not
/// supported: as before, and groups of fewer than 8 channels or filters, each of which would have a
/// tile almost empty.
/// **Try.** Two blocks with the same tile could be a cluster, and add their accumulators before
/// they store them. How many MB less is that, and what does the exchange cost?
#include <algorithm>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/share_parts.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/share_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kMostThreads = 128 * (kMostConsumers + 1);  ///< A warpgroup loads.
/// Of a thread, where all have 96 at the start: 4 * 112 + 32 = 5 * 96.
constexpr int kRegistersToMultiply = 112, kRegistersToLoad = 32;
constexpr int kBiasColumns = 16;  ///< Of the product with ones; all are the same.

/// One share of a tile a block: one warp, the producer, loads steps of x and dy from `source`;
/// the other warpgroups multiply. Source: TmaPieces or GatheredShares.
/// Grid: tiles * shares; block 128 * (consumers + 1); `stages` of the shape in shared memory.
template <class T, int kPieces, class Source>
__global__ void __launch_bounds__(kMostThreads, 1)
    conv2d_wgrad_hopper_split_k_1x1(const __grid_constant__ Source source,
                                    const __grid_constant__ ShareParts parts, int steps,
                                    int stages) {
  // full: the stage has arrived; empty: all consumer warps have read it.
  __shared__ std::uint64_t full[kMaxShareStages], empty[kMaxShareStages];
  char* ones = dynamic_shared<char>();
  ones += (gemm::kAtom - ptx::shared_address(ones) % gemm::kAtom) % gemm::kAtom;
  char* const ring = ones + kShareOnesBytes;
  const ShareTiles& tiles = parts.tiles;
  const ShareShape& shape = tiles.shape;
  const int stage_bytes = shape.stage_bytes(), consumers = shape.consumers();

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < stages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], consumers * 4);
    }
    ptx::fence_mbarrier_init();
  }
  const std::uint32_t two_ones = 0x10001u * rounded_to<T>(1.0f).bits;
  for (int i = thread; i < kShareOnesBytes / 4; i += static_cast<int>(blockDim.x))
    reinterpret_cast<std::uint32_t*>(ones)[i] = two_ones;
  // What lies behind the pixels of a step: the copies leave it alone.
  const int behind = (kHalfStep - source.pixels()) * (kPixelBytes / 16);
  for (int i = thread; i < stages * (stage_bytes / kPieceBytes) * behind;
       i += static_cast<int>(blockDim.x)) {
    const int piece = i / behind;
    reinterpret_cast<uint4*>(ring + (piece + 1) * kPieceBytes)[i - (piece + 1) * behind] = {};
  }
  ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
  __syncthreads();  // separates the barriers' initialisation, and the ones, from all use of them
  wait_for_kernel_before();
  let_next_kernel_begin();  // it waits for this one's end

  const auto count = static_cast<int>(tiles.count());
  const int number = static_cast<int>(blockIdx.x) % count;
  const int share = static_cast<int>(blockIdx.x) / count;
  const ShareTile tile = tiles.at(number);
  int stage = 0;
  unsigned phase = 0;  // of the barriers, modulo 2
  const auto next_stage = [&] {
    if (++stage < stages) return;
    stage = 0;
    phase ^= 1;
  };

  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, thread / 128, 0);
  if (consumer == consumers) {
    // The producer. It runs ahead of the consumers by as many stages as there are.
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps, of which one continues
    if (thread >= 128 * consumers + (Source::kWholeWarp ? 32 : 1)) return;
    for (int step = share; step < steps; step += parts.shares, next_stage()) {
      // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
      ptx::mbarrier_wait(&empty[stage], phase ^ 1);
      char* const dy = ring + stage * stage_bytes;
      source.load(tiles, tile, step, dy, dy + shape.down * kPieceBytes, &full[stage]);
    }
    return;
  }
  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs

  // A warpgroup without pieces of its own multiplies the first ones; its accumulators are not
  // stored.
  const int row = consumer % shape.down, column = consumer / shape.down;
  const int i = row < tile.rows ? row : 0, j = column * kPieces < tile.columns ? column : 0;
  const std::uint64_t dy_at = ptx::wgmma_row_major_descriptor(ring + i * kPieceBytes, kPieceBytes);
  const std::uint64_t x_at =
      ptx::wgmma_row_major_descriptor(ring + (shape.down + j * kPieces) * kPieceBytes, kPieceBytes);
  const std::uint64_t ones_at = ptx::wgmma_row_major_descriptor(ones, 0);
  constexpr int kColumns = kPieces * kHalfColumns;
  float accumulators[kColumns / 2], bias[kBiasColumns / 2];
#pragma unroll
  for (float& sum : accumulators) sum = 0.0f;
#pragma unroll
  for (float& sum : bias) sum = 0.0f;
  // The warpgroups with the same filters take alternate steps in adding up dy.
  const bool has_bias = tile.piece == 0 && row < tile.rows;
  int turn = 0, last_stage = -1;
  for (int step = share; step < steps; step += parts.shares, next_stage()) {
    ptx::mbarrier_wait(&full[stage], phase);
    // Descriptors count in units of 16 bytes, also from pixel to pixel.
    const int at = stage * (stage_bytes / 16);
    // accumulators[filter k][channel c] += dy[pixel][k] * x[pixel][c] for the 64 pixels of the step
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kHalfStep; k += kShareDepth) {
      conv2d::wgmma_half<kColumns, T, true, true>(accumulators, dy_at + at + k * kHalfColumns / 8,
                                                  x_at + at + k * kHalfColumns / 8);
    }
    if (has_bias && turn == column) {
#pragma unroll
      for (int k = 0; k < kHalfStep; k += kShareDepth)
        conv2d::wgmma_half<kBiasColumns, T, true, true>(bias, dy_at + at + k * kHalfColumns / 8,
                                                        ones_at);
    }
    if (++turn == shape.across) turn = 0;
    ptx::wgmma_commit_group();
    // Waits for the wgmma of the previous step: its stage may be overwritten.
    ptx::wgmma_wait_group<1>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
    last_stage = stage;
  }
  ptx::wgmma_wait_group<0>();

  const int in_group = thread % 128;
#pragma unroll
  for (int four = 0; four < kColumns / 8; ++four) {
    const float4 sum = {accumulators[4 * four], accumulators[4 * four + 1],
                        accumulators[4 * four + 2], accumulators[4 * four + 3]};
    if (parts.shares > 1) {
      parts.store_part(share, number * consumers + consumer, four, in_group, sum);
    } else {
      parts.store_whole(tile, consumer, four, in_group, sum);
    }
  }
  if (!has_bias || lane % 4 != 0) return;
  const int k = tile.k + row * kHalfColumns + in_group / 32 * 16 + lane / 4;
  float* const to = parts.db_parts + (std::int64_t{share} * shape.across + column) * parts.K +
                    tile.group * tiles.group_k;
  if (k < tiles.group_k) to[k] = bias[0];
  if (k + 8 < tiles.group_k) to[k + 8] = bias[2];
}

/// Whether TMA can load the pieces, if the arrays are aligned to 16 bytes.
bool rows_for_tma(const Conv2dProblem& conv) { return conv.N > 0 && half_rows_for_tma(conv); }

Declined supports(const Conv2dProblem& conv) {
  constexpr int kFewest = 8;  // channels, and filters, of one of several groups
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.groups > 1 && std::min(conv.C, conv.K) / conv.groups < kFewest)
    return text("groups of fewer than ", kFewest, " channels or filters: a tile has 64 of both");
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const ShareParts parts(conv, share_plan(conv), nullptr, nullptr, nullptr);
  return static_cast<std::size_t>(parts.floats()) * sizeof(float);
}

template <class T, int kPieces, class Source>
void launch_product(const Source& source, const ShareParts& parts) {
  const ShareShape& shape = parts.tiles.shape;
  const int stages = share_stages(shape);
  const auto shared =
      static_cast<std::size_t>(stages) * shape.stage_bytes() + gemm::kAtom + kShareOnesBytes;
  launch_early(conv2d_wgrad_hopper_split_k_1x1<T, kPieces, Source>,
               {dim3(blocks_for(parts.tiles.count() * parts.shares, 1)),
                dim3(128 * (static_cast<unsigned>(shape.consumers()) + 1)), shared},
               source, parts, static_cast<int>(source.steps()), stages);
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *dy = arrays.dy;
    const ShareParts parts(conv, share_plan(conv), context.workspace_as<float>(), arrays.dw,
                           arrays.db);
    const auto launch_with = [&](const auto& source) {
      using Source = std::decay_t<decltype(source)>;
      if (parts.tiles.shape.pieces == 1) {
        launch_product<T, 1, Source>(source, parts);
      } else {
        launch_product<T, 2, Source>(source, parts);
      }
    };
    const Windows windows = half_windows_of(conv);
    if (rows_for_tma(conv) && gemm::begin_at_16_bytes(x, dy)) {
      launch_with(tma_pieces<T>(conv, windows, x, dy));
    } else {
      launch_with(GatheredShares<T>{{x, windows, conv.C / conv.groups}, dy});
    }
    launch_add_share_parts(parts);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const SharePlan plan = share_plan(conv);
  return text(dtype_name(conv.dtype, conv.precision), ", ", plan.shape.down * kHalfColumns,
              " filters by ", plan.shape.columns() * kHalfColumns, " channels",
              plan.shares > 1 ? ", parts" : ", whole sums",
              rows_for_tma(conv) ? ", by TMA" : ", by a warp");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> hopper_split_k_1x1 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
