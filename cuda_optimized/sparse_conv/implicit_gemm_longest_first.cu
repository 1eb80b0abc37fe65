/// @file implicit_gemm_longest_first.cu
/// @brief sparse_conv: the tiles with most taps begin first, so that no long one ends last.
///
/// - Before: implicit_gemm_cp_async.cu
/// - After: implicit_gemm_mma.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
/// - The kernel: implicit_gemm_async.cuh
///
/// **The idea.** A GPU hands out blocks in their order, each to an SM that has room. Tiles have one
/// to 14 taps. If a long one begins late, the rest of the GPU waits for it. So the longest begin
/// first, and the short ones fill the gaps (Graham, "Bounds on multiprocessing timing anomalies",
/// 1969: at most 4/3 of the best time).
///
///     two machines,   | 3 . . | 2 . | 9 . . . . . . . . |
///     by mask         | 5 . . . . | 1 |                      done at 14
///     longest first   | 9 . . . . . . . . | 1 |
///                     | 5 . . . . | 3 . . | 2 . |            done at 10
///
/// A launch before the two halves counts the taps of every tile, and puts its number into one of 32
/// buckets. A block finds the tile of its turn by a scan over the 32 counts.
///
/// **Expect.** sweep-64-subm3 has four tiles of 64 rows for each place on 132 SMs. A simulation
/// gives 1.15 times the ideal time for the order of the masks, largest first, and 1.03 for this.
/// The queue costs a fill and a launch, 5 us. But the second half begins early, and its blocks fill
/// the same gaps: less is left to gain.
/// **Costs.** 256 bytes of workspace a tile. From 307,200 rows on there is no queue: the last tiles
/// hardly count, and tiles with like masks share weights in the cache. Declines what
/// implicit_gemm_cp_async declines.
/// **Try.** Count a tile's work as its warps do it: the sum over its warps of the taps that any of
/// their 16 rows has.
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_async.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kThreads = 256;                 ///< Of a block that counts taps.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More tiles than these have warps: they stride.
constexpr int kBuckets = TileQueue::kBuckets;

/// The two halves of the taps, which are queued in one launch.
struct QueuedHalves {
  ImplicitGemm half[2];  ///< What is computed.
  TileQueue queue[2];    ///< In which order; counts are zero, tiles undefined.
};

/// Fills both queues: a warp for each tile. Grid (any, 2), block of a multiple of 32 threads.
__global__ void queue_tiles(QueuedHalves halves, int tile_rows) {
  const ImplicitGemm& conv = halves.half[blockIdx.y];
  const TileQueue& queue = halves.queue[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x) % 32, words = mask_words(conv.taps);
  const std::int64_t warps = std::int64_t{gridDim.x} * blockDim.x / 32;
  std::int64_t tile = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  for (; tile < queue.capacity; tile += warps) {
    int taps = 0;
    for (int word = 0; word < words; ++word) {
      unsigned bits = 0;
      for (int m = lane; m < tile_rows; m += 32) {
        const std::int64_t at = tile * tile_rows + m;
        if (at >= conv.rows) break;
        bits |= static_cast<unsigned>(conv.mask[std::int64_t{conv.order[at]} * words + word]);
      }
      for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
      taps += __popc(bits & taps_in_word(conv, word));
    }
    if (lane == 0) {
      const int most = max(conv.end_tap - conv.first_tap, kBuckets - 1);
      const int bucket = taps * (kBuckets - 1) / most;
      const int place = atomicAdd(queue.counts + bucket, 1);
      queue.tiles[bucket * queue.capacity + place] = static_cast<std::int32_t>(tile);
    }
  }
}

/// Bytes of the two queues: all counts, then all tiles. With many rows there are none.
std::size_t workspace_bytes(const SparseConvProblem& conv) {
  if (has_many_rows(conv.M)) return 0;
  const std::int64_t tiles = ceil_div<std::int64_t>(conv.M, async_tile_rows(conv.M, conv.Cout));
  return static_cast<std::size_t>(2 * kBuckets * (1 + tiles)) * sizeof(std::int32_t);
}

/// As implicit_gemm_cp_async.
void run_in_queues(const SparseConvProblem& conv, const Arguments& arrays) {
  if (has_many_rows(conv.M)) {
    for (int half = 0; half < 2; ++half) {
      launch_implicit_gemm_async(half_of_implicit_gemm(conv, arrays, half));
    }
    return;
  }
  const int tile_rows = async_tile_rows(conv.M, conv.Cout);
  const std::int64_t tiles = ceil_div<std::int64_t>(conv.M, tile_rows);
  auto* const counts = arrays.workspace<std::int32_t>();
  QueuedHalves halves;
  for (int half = 0; half < 2; ++half) {
    halves.half[half] = half_of_implicit_gemm(conv, arrays, half);
    halves.queue[half] = {.counts = counts + half * kBuckets,
                          .tiles = counts + 2 * kBuckets + half * kBuckets * tiles,
                          .capacity = tiles};
  }
  check(cudaMemsetAsync(counts, 0, 2 * kBuckets * sizeof *counts));
  launch(queue_tiles, {dim3(blocks_for(tiles, kThreads / 32, kMaxBlocks), 2), kThreads}, halves,
         tile_rows);
  for (int half = 0; half < 2; ++half) {
    launch_implicit_gemm_async(halves.half[half], halves.queue[half]);
  }
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return text(implicit_gemm_async_in_words(conv),
              has_many_rows(conv.M) ? ", tiles in their order" : ", tiles in queues");
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_longest_first() {
  return {.supports = supports_listed_taps,
          .workspace_bytes = workspace_bytes,
          .run = run_in_queues,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
