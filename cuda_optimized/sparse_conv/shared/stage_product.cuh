/// @file stage_product.cuh
/// @brief The loops of producers and consumers, connected by a ring of stages;
/// implicit_gemm_warp_specialized.cu explains them.
#pragma once

#include "cuda_optimized/sparse_conv/shared/stage_ring.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// The loop of the producer warps, after prepare().
/// @param row this thread's of the block's first tile
template <class Shape>
__device__ void produce(const Pass<typename Shape::Number>& pass, std::int32_t row,
                        Ring<Shape>& ring, char* stages) {
  Place<Shape> place;
  int tile = static_cast<int>(blockIdx.x);
  for (int turn = 0; tile < pass.tiles; turn ^= 1) {
    int following = 0;
    if (producer() == 0) following = static_cast<int>(gridDim.x + atomicAdd(pass.handed_out, 1u));
    TapWalk<Shape> walk(pass, row);
    walk.find(ring.met[turn]);
    if (producer() == 0) ring.following[turn] = following;
    // Separates these stores from the loads below. The next stores to the same addresses are two
    // tiles later; all producers pass this barrier once in between.
    ptx::named_barrier_sync(1, kProducers);
    following = ring.following[turn];
    row = own_row<Shape>(pass, following);  // in flight until the next tile begins
    walk.begin(ring.met[turn]);
    const int n = corner_of<Shape>(pass, tile).channel / Shape::N;

    typename TapWalk<Shape>::Group now, ahead;
    walk.fetch(ahead);
    do {
      now = ahead;
      walk.fetch(ahead);
      for (int chunk = 0; chunk < pass.chunks; ++chunk) {
        // Until the consumers have released the stage. In the first pass through the ring no stage
        // is occupied: a wait for the phase before the first one returns at once.
        ptx::mbarrier_wait(&ring.empty[place.stage], place.round ^ 1);
        char* const a = stages + place.stage * Shape::kStageBytes;
        char* const b = a + Shape::kTaps * Shape::kBytesA;
        std::uint64_t* const full = &ring.full[place.stage];
        if (producer() == 0) {
          const bool ends_tile = !ahead.exists && chunk + 1 == pass.chunks;
          ring.label[place.stage] = {tile, !ends_tile               ? kNothing
                                           : following < pass.tiles ? kTile
                                                                    : kBlock};
          ptx::mbarrier_arrive_expect_tx(full, Shape::kTaps * Shape::kBytesB);
#pragma unroll
          for (int t = 0; t < Shape::kTaps; ++t) {
            const std::int64_t block =
                (std::int64_t{n} * pass.conv.taps + now.tap[t]) * pass.chunks + chunk;
            ptx::cp_async_bulk(b + t * Shape::kBytesB,
                               pass.conv.weights + block * (Shape::N * Shape::kDepth),
                               Shape::kBytesB, full);
          }
        }
#pragma unroll
        for (int t = 0; t < Shape::kTaps; ++t) {
          ask_for_rows<Shape>(pass, now.index[t], chunk * Shape::kDepth, a + t * Shape::kBytesA);
        }
        ptx::cp_async_mbarrier_arrive_noinc(full);
        place.advance();
      }
    } while (ahead.exists);
    tile = following;
  }
}

/// The loop of the consumer warps.
/// @param pieces whether rows of the result consist of them
template <class Shape>
__device__ void consume(const Pass<typename Shape::Number>& pass, Ring<Shape>& ring,
                        const char* stages, bool pieces) {
  using T = typename Shape::Number;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int own_row = thread / 32 * 16 + lane / 4;
  // Only the lane that releases a warp's stages reads their labels, so that no lane can read a
  // label after its stage has been released.
  const auto told_all = [lane](const int& number) {
    int told = 0;
    if (lane == 0) told = number;
    return __shfl_sync(0xFFFFFFFF, told, 0);
  };
  Place<Shape> place;
  for (int ends = kNothing; ends != kBlock;) {
    // The label of a tile's first stage has the tile's index. The rows are needed at the end.
    ptx::mbarrier_wait(&ring.full[place.stage], place.round);
    const Corner corner = corner_of<Shape>(pass, told_all(ring.label[place.stage].tile));
    std::int32_t rows[kRowTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = corner.row + own_row + i * kWarpgroupRows + 8 * half;
        rows[i][half] = at < pass.conv.rows ? pass.conv.order[at] : -1;
      }
    }
    WarpgroupSums<T, Shape::N> sums[kRowTiles];
    int last_stage = -1;
    do {
      ptx::mbarrier_wait(&ring.full[place.stage], place.round);
      ptx::fence_proxy_async();  // cp.async writes through the generic proxy, wgmma reads through
                                 // the async proxy
      ends = told_all(ring.label[place.stage].ends);
      const char* const a = stages + place.stage * Shape::kStageBytes;
      const char* const b = a + Shape::kTaps * Shape::kBytesA;
      ptx::wgmma_fence();
#pragma unroll
      for (int t = 0; t < Shape::kTaps; ++t) {
        constexpr int kGroup = 8 * Shape::kTapBytes;
        const std::uint64_t left =
            ptx::wgmma_descriptor(a + t * Shape::kBytesA, kGroup, Shape::kTapBytes);
        const std::uint64_t right =
            ptx::wgmma_descriptor(b + t * Shape::kBytesB, kGroup, Shape::kTapBytes);
#pragma unroll
        for (int deep = 0; deep < Shape::kTapBytes; deep += kDeep) {
#pragma unroll
          for (int i = 0; i < kRowTiles; ++i) {
            // Descriptors count in units of 16 bytes.
            const int below = i * kWarpgroupRows * Shape::kTapBytes;
            sums[i].add(left + static_cast<std::uint64_t>((below + deep) / 16),
                        right + static_cast<std::uint64_t>(deep / 16));
          }
        }
      }
      ptx::wgmma_commit_group();
      // All products but this stage's are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);
      last_stage = place.stage;
      place.advance();
    } while (ends == kNothing);
    ptx::wgmma_wait_group<0>();
    if (lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);

    store_tile<Shape>(pass.conv, sums, rows, corner.channel, pieces);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
