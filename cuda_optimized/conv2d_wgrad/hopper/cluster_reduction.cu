/// @file cluster_reduction.cu
/// @brief Cluster reduction: the blocks of a cluster add their accumulators in distributed shared
/// memory before any are stored.
///
/// - Before: halo_tile.cu
/// - The same maths: cpu_reference/conv2d_wgrad/direct.cpp
///
/// **The idea.** halo_tile.cu cuts the pixels of a tile into parts, one a block; each block stores
/// all accumulators, and a second kernel loads them again. Here two or four blocks of a tile are a
/// cluster. When the last of them has multiplied, the stages are free, and accumulators take their
/// place: each block owns a share of the tile, and the others send it theirs,
///
///     block 0   fours of accumulators 0 1 2 3 ...      0 and 2 stay, 1 and 3 go to block 1
///     block 1   fours of accumulators 0 1 2 3 ...      1 and 3 stay, 0 and 2 go to block 0
///
/// by `st.async`, which also counts the bytes at a barrier there. A block that has received all of
/// them adds them up in the order of ranks and stores its share. Where a cluster has all parts,
/// that is dw. db needs no tensor core: the three idle warps of the producer's warpgroup add up dy
/// from the stages, or, where one part is all, blocks without a tile add it up from DRAM.
///
/// **Expect.** 17 bytes per cycle go from an SM to another, as many as to the L2 cache: an exchange
/// takes the time of the stores that it saves, and the second kernel is not needed; half of the
/// accumulators may be another block's, as B10's are. B9 88 us instead of 95, without products with
/// ones. B7's images follow one another in a row (shared/tap_bands.cuh): a band has 14 steps
/// instead of 4, 19.5 us instead of 22.4. B4 and B6 as before.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect blocks 8, two clusters of two for two tiles of 32 channels, and four blocks for db
/// @expect requests.shared.async 4 * 2 + 4 * 12 * 6 = 296, boxes, and half of the sums
/// @expect bytes_per_lane.dw.store 8, as the fours lie
/// **Costs.** The blocks of a cluster wait for the last one. A workspace where one cluster is not
/// enough for a tile. Not supported: as before.
/// **Try.** Clusters of eight: why do only 15 of them run at a time on 132 SMs? Count by fours,
/// too.
#include <bit>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_bands.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_exchange.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

/// Each block computes one part of a tile: the producer warp loads bands of x and dy from `source`;
/// three warpgroups multiply, each for a row of taps, and three warps add up dy. Then the blocks of
/// a cluster exchange their sums. Source: TmaBoxes or GatheredBoxes. kImages: a band has several.
/// Grid: tiles * parts, in clusters; block kTapThreads; shared_bytes_of() the plan.
template <class T, int kChannels, class Source, bool kImages>
__global__ void __launch_bounds__(kTapThreads, 1)
    conv2d_wgrad_hopper_cluster_reduction(const __grid_constant__ Source source,
                                          const __grid_constant__ TapWork work, const T* whole_dy) {
  __shared__ TapBarriers barriers;
  const Bands& bands = work.bands;
  char* base = dynamic_shared<char>();
  base += (gemm::kAtom - ptx::shared_address(base) % gemm::kAtom) % gemm::kAtom;
  char* const stages = base + kBiasBytes;
  auto* const sum_parts = reinterpret_cast<float4*>(stages);

  const ClusterPlace place{blockIdx.x & ((1u << work.log_cluster) - 1), work.log_cluster};
  const unsigned of_tile = blockIdx.x >> place.log;
  const auto tiles = static_cast<unsigned>(work.tiles.count());
  const unsigned of_tiles = tiles * static_cast<unsigned>(work.parts.dw.parts) << place.log;
  if (blockIdx.x >= of_tiles) {
    work.bias.add(whole_dy, work.tiles, bands, static_cast<int>(blockIdx.x - of_tiles), sum_parts,
                  work.parts.db.from);
    return;
  }
  const TapTile tile = work.tiles.at(of_tile % tiles);
  const int part = static_cast<int>(of_tile / tiles);
  const bool has_bias = tile.r == 0 && tile.s == 0 && work.bias.blocks == 0;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) barriers.begin(bands, place, has_bias, tile_bytes(kChannels));
  __syncthreads();  // separates the initialisation from all use of the barriers in this block
  // And from that by others, who wait for it much later.
  if (place.blocks() > 1) ptx::barrier_cluster_arrive_relaxed();
  let_next_kernel_begin();  // it waits for this one's end

  const int block = part * static_cast<int>(place.blocks()) + static_cast<int>(place.rank);
  const int begin = block * work.bands_each + (block < work.longer ? block : work.longer);
  const int count = work.bands_each + (block < work.longer ? 1 : 0);
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
    ptx::setmaxnreg_dec<kRegistersToLoad>();  // by all four warps
    const int warp = __shfl_sync(~0u, (thread - kTapConsumers) / 32 - 1, 0);
    if (warp >= 0) {
      if (!has_bias) return;
      add_up_dy<T>(work, place, tile, part, begin, count, base, warp, barriers);
      return;
    }
    if (thread >= kTapConsumers + (Source::kWholeWarp ? 32 : 1)) return;
    const BoxOrigin origin(work.tiles, tile, work.pad, bands.dilation);
    for (int i = 0; i < count; ++i, bands.advance(band), next_stage()) {
      // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
      ptx::mbarrier_wait(&barriers.empty[stage], phase ^ 1);
      char* const to = stages + stage * bands.bytes;
      source.load(origin, band, to, to + bands.x_bytes, &barriers.full[stage]);
    }
    return;
  }
  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs

  zero_behind_boxes(bands, stages);
  constexpr int kColumns = kTapAxis * kChannels, kRowBytes = 2 * kChannels;
  float accumulators[kColumns / 2];
#pragma unroll
  for (float& sum : accumulators) sum = 0.0f;
  const std::uint64_t dy_at = ptx::wgmma_row_major_descriptor(stages + bands.x_bytes, 0);
  // The columns of the first tap; those of the next ones are a tap's pixels further on.
  const std::uint64_t x_at =
      ptx::wgmma_row_major_descriptor(stages, bands.dilation.w * kRowBytes, kRowBytes);
  constexpr int kPixelX = kRowBytes / 16, kPixelDy = kDyBytes / 16;
  // In x, the next image lies by so many pixels further on than in dy. So does the second half of a
  // step that begins 8 pixels before it: its descriptor says how far the halves are apart.
  const int area = bands.area(), apart = bands.x_area() - area;
  const std::uint64_t x_of_two_at = x_at + (static_cast<std::uint64_t>(apart * kPixelX) << 32);
  const int x_row = consumer * bands.dilation.h * bands.x_columns;
  int last_stage = -1;
  for (int i = 0; i < count; ++i, bands.advance(band)) {
    const int lines = bands.lines(band), steps = bands.steps(band);
    const int begin_of_stage = stage * (bands.bytes / 16);
    ptx::mbarrier_wait(&barriers.full[stage], phase);
    // accumulators[k][s][c] += dy[p][q][k] * x[p + consumer * dilation.h][q + s * dilation.w][c]
    ptx::wgmma_fence();
    if constexpr (kImages) {
      int x = begin_of_stage + x_row * kPixelX, dy = begin_of_stage, left = area;
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        conv2d::wgmma_half<kColumns, T, true, true>(
            accumulators, further(dy_at, dy), further(left < kTapDepth ? x_of_two_at : x_at, x));
        ptx::wgmma_commit_group();
        x += kTapDepth * kPixelX;
        dy += kTapDepth * kPixelDy;
        if ((left -= kTapDepth) > 0) continue;
        left += area;
        x += apart * kPixelX;
      }
    }
    for (int line = 0; line < lines && !kImages; ++line) {
      int x = begin_of_stage + (x_row + line * bands.x_columns) * kPixelX;
      int dy = begin_of_stage + line * bands.columns * kPixelDy;
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        conv2d::wgmma_half<kColumns, T, true, true>(accumulators, further(dy_at, dy),
                                                    further(x_at, x));
        ptx::wgmma_commit_group();
        x += kTapDepth * kPixelX;
        dy += kTapDepth * kPixelDy;
      }
    }
    wait_for_band_before(lines * steps);
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&barriers.empty[last_stage]);
    last_stage = stage;
    next_stage();
  }
  ptx::wgmma_wait_group<0>();

  const SumParts& dw = work.parts.dw;
  if (place.blocks() == 1) {
    store_taps<kChannels>(work.tiles, tile, tile.r + consumer, dw, part, work.pairs, accumulators);
    return;
  }
  tell_all(place, &barriers.all_read);
  ptx::mbarrier_wait(&barriers.all_read, 0);
  send_sums(place, accumulators, sum_parts, &barriers.sums_arrived);
  ptx::mbarrier_wait(&barriers.sums_arrived, 0);
  add_and_store<kChannels>(place, sum_parts, work.tiles, tile, tile.r + consumer, dw, part,
                           work.pairs);
}

/// Whether TMA can load the boxes, if the arrays are aligned to 16 bytes.
bool rows_for_tma(const Conv2dProblem& conv) {
  return conv.N > 0 && conv.C / conv.groups % 8 == 0 && conv.K / conv.groups % 8 == 0;
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = conv2d::why_no_half_windows(conv)) return why;
  if (conv.stride.h != 1 || conv.stride.w != 1)
    return "stride 1 only: the taps' pixels of x are one another's, shifted by one";
  if (cluster_plan(conv, false).bands.stages < 2) {
    return text("dilation ", conv.dilation.h, " x ", conv.dilation.w,
                ": the pixels of three taps each way do not fit into shared memory");
  }
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  std::int64_t floats = 0;  // whether arrays are aligned to 16 bytes is not known here
  for (const bool by_tma : {false, rows_for_tma(conv)}) {
    const ClusterPlan plan = cluster_plan(conv, by_tma);
    const TapParts parts = parts_of(conv, plan, BiasBlocks(conv, plan, by_tma));
    if (parts.db.parts > 1) floats = std::max(floats, parts.floats());
  }
  return static_cast<std::size_t>(floats) * sizeof(float);
}

template <class T, int kChannels, bool kImages, class Source>
void launch_product(const Source& source, const TapWork& work, const T* dy) {
  const std::int64_t blocks = work.tiles.count() * work.parts.dw.parts << work.log_cluster;
  launch_in_clusters(
      1u << work.log_cluster, conv2d_wgrad_hopper_cluster_reduction<T, kChannels, Source, kImages>,
      {dim3(blocks_for(blocks + work.bias.blocks, 1)), dim3(kTapThreads), shared_bytes_of(work)},
      source, work, dy);
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *dy = arrays.dy;
    const bool by_tma = rows_for_tma(conv) && gemm::begin_at_16_bytes(x, dy);
    const ClusterPlan plan = cluster_plan(conv, by_tma);
    const BiasBlocks bias(conv, plan, by_tma);
    TapParts parts = parts_of(conv, plan, bias);
    parts.begin_at(context.workspace_as<float>(), arrays.dw);
    if (parts.db.parts == 1) parts.db.from = arrays.db;
    const int shares = plan.parts * plan.cluster;
    const TapWork work = {
        .tiles = TapTiles(conv, plan.channels),
        .bands = plan.bands,
        .bands_each = static_cast<int>(plan.bands.count() / shares),
        .longer = static_cast<int>(plan.bands.count() % shares),
        .pad = conv.pad,
        .parts = parts,
        .pairs = conv.C / conv.groups % 2 == 0 &&
                 reinterpret_cast<std::uintptr_t>(parts.dw.from) % 8 == 0,
        .bias = bias,
        .log_cluster = std::bit_width(static_cast<unsigned>(plan.cluster)) - 1u,
    };
    if (!by_tma) {
      launch_product<T, kManyChannels, false>(gathered_boxes(conv, plan.bands, x, dy), work, dy);
    } else if (plan.channels == kManyChannels) {
      launch_product<T, kManyChannels, false>(tma_boxes(conv, plan.bands, x, dy), work, dy);
    } else if (plan.bands.images > 1) {
      launch_product<T, kFewChannels, true>(tma_boxes(conv, plan.bands, x, dy), work, dy);
    } else {
      launch_product<T, kFewChannels, false>(tma_boxes(conv, plan.bands, x, dy), work, dy);
    }
    if (parts.db.parts > 1) launch_add_tap_parts(parts, arrays.dw, arrays.db);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const bool by_tma = rows_for_tma(conv);
  const ClusterPlan plan = cluster_plan(conv, by_tma);
  return text(dtype_name(conv.dtype, conv.precision), ", ", plan.channels, " channels",
              plan.bands.images > 1 ? ", images in a row"
              : plan.bands.folded   ? ", folded"
                                    : ", strips",
              ", clusters of ", plan.cluster, plan.parts > 1 ? ", parts" : ", whole sums",
              by_tma ? ", by TMA" : ", by a warp",
              BiasBlocks(conv, plan, by_tma).blocks > 0 ? ", db by blocks of its own" : "");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> hopper_cluster_reduction = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
