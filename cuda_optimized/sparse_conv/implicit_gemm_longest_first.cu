/// @file implicit_gemm_longest_first.cu
/// @brief sparse_conv: the tiles with most taps begin first, so that no long one ends last.
///
/// - Before: implicit_gemm_cp_async.cu
/// - After: implicit_gemm_mma.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
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
/// @expect launches 3, with the queue's
/// @expect lanes.workspace.atomic 16, one for each tile of each half
/// @expect loads_per_output.features 3838 * 8 / 16384 = 1.8740, a load for each pair, in vectors
/// **Costs.** 256 bytes of workspace a tile. From 307,200 rows on there is no queue: the last tiles
/// hardly count, and tiles with like masks share weights in the cache. Declines what
/// implicit_gemm_cp_async declines.
/// **Try.** Count a tile's work as its warps do it: the sum over its warps of the taps that any of
/// their 16 rows has.
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/thread_tile.cuh"
#include "cuda_optimized/sparse_conv/async_copies.cuh"
#include "cuda_optimized/sparse_conv/async_rows.cuh"
#include "cuda_optimized/sparse_conv/halves.cuh"
#include "cuda_optimized/sparse_conv/implicit_gemm.cuh"
#include "cuda_optimized/sparse_conv/listed_taps.cuh"
#include "cuda_optimized/sparse_conv/thread_in_squares.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kMostTaps = 1024;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More tiles than these: blocks stride.

using gemm::ThreadTile;
/// Warps of 16 rows and all of the tile's channels, 8 x 8 sums a thread. These take 168 registers,
/// so that an SM holds 12 warps; with 128 registers and 16 warps some registers spill, which costs
/// more than the other warps gain.
using Wide = AsyncRows<ThreadTile<64, 128, 32, 8, 8, 2>, 2>;
/// Warps of 16 rows again, 4 x 8 sums a thread. With 8 x 8 sums warps have 32 rows, and skip less.
using Medium = AsyncRows<ThreadTile<64, 64, 32, 4, 8, 4>, 2>;
/// 16 rows, or 32 where there are so many of them that few are wasted.
using Narrow = AsyncRows<ThreadTile<64, 32, 32, 4, 4, 4>, 2>;
using NarrowTall = AsyncRows<ThreadTile<128, 32, 32, 8, 4, 4>, 2>;
constexpr int kQueuedRows = 64;  ///< Of a tile that is queued; with many rows there is no queue.
static_assert(Wide::Tile::kBlockM == kQueuedRows && Medium::Tile::kBlockM == kQueuedRows &&
              Narrow::Tile::kBlockM == kQueuedRows);
constexpr int kThreads = 256;  ///< Of a block that counts taps.

/// Tiles in buckets by their number of taps. Within a bucket they stand in any order, which may be
/// another in every run: that changes when a tile is computed, not what.
struct TileQueue {
  static constexpr int kBuckets = 32;  ///< As many as a warp has lanes.
  std::int32_t* counts = nullptr;      ///< [kBuckets]: tiles of each; null: there is no queue
  std::int32_t* tiles = nullptr;       ///< [kBuckets][capacity]: their numbers
  std::int64_t capacity = 0;           ///< All tiles: they may be in one bucket.

  /// The tile that stands at a place, 0 the first. A whole warp calls it with the same place.
  __device__ std::int64_t tile_at(std::int64_t place) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, bucket = kBuckets - 1 - lane;
    const std::int32_t mine = counts[bucket];
    std::int32_t through = mine;  // tiles of this lane's bucket and those before it
    for (int apart = 1; apart < 32; apart *= 2) {
      const std::int32_t before = __shfl_up_sync(~0u, through, static_cast<unsigned>(apart));
      if (lane >= apart) through += before;
    }
    const int holder = __ffs(static_cast<int>(__ballot_sync(~0u, place < through))) - 1;
    const std::int32_t before = __shfl_sync(~0u, through - mine, holder);
    return tiles[(kBuckets - 1 - holder) * capacity + place - before];
  }
};

/// The two halves of the taps, which are queued in one launch.
struct QueuedHalves {
  HalfOfTaps half[2];  ///< What is computed.
  TileQueue queue[2];  ///< In which order; counts are zero, tiles undefined.
};

/// Fills both queues: a warp for each tile. Grid (any, 2), block of a multiple of 32 threads.
__global__ void queue_tiles(QueuedHalves halves) {
  const HalfOfTaps& half = halves.half[blockIdx.y];
  const TileQueue& queue = halves.queue[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x) % 32, words = mask_words(half.conv.KV);
  const std::int64_t warps = std::int64_t{gridDim.x} * blockDim.x / 32;
  std::int64_t tile = thread_of_grid() / 32;
  for (; tile < queue.capacity; tile += warps) {
    int taps = 0;
    for (int word = 0; word < words; ++word) {
      unsigned bits = 0;
      for (int m = lane; m < kQueuedRows; m += 32) {
        const std::int64_t at = tile * kQueuedRows + m;
        if (at >= half.conv.M) break;
        bits |= static_cast<unsigned>(half.conv.mask[std::int64_t{half.order[at]} * words + word]);
      }
      for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
      taps += __popc(bits & taps_in_word(half, word));
    }
    if (lane == 0) {
      const int most = max(half.end_tap - half.first_tap, TileQueue::kBuckets - 1);
      const int bucket = taps * (TileQueue::kBuckets - 1) / most;
      const int place = atomicAdd(queue.counts + bucket, 1);
      queue.tiles[bucket * queue.capacity + place] = static_cast<std::int32_t>(tile);
    }
  }
}

/// Block (Tile::kThreads), any one-dimensional grid: it strides over the tiles, in the order of the
/// queue. Without one, from the last rows in the order back to the first: the largest masks stand
/// last, many of them with many taps.
/// @param across divides by the tiles side by side @param tiles all of them
template <class Shape, bool kAligned, int kBlocks>
__global__ void __launch_bounds__(Shape::Tile::kThreads, kBlocks)
    implicit_gemm_async_rows(HalfOfTaps half, FastDivision across, int tiles, TileQueue queue) {
  using Tile = typename Shape::Tile;
  constexpr int kStages = Shape::kStages;
  const ImplicitGemm& conv = half.conv;
  if (queue.counts != nullptr && !conv.add) wait_for_kernel_before();  // which filled the queue
  let_next_kernel_begin();  // which takes from the queue, too, and waits only before it stores
  const int last = across.quotient(tiles - 1);
  const Tile tile(thread_in_squares<Tile::kLanesN>(threadIdx.x));
  for (std::int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const int place = across.quotient(static_cast<int>(i));
    const std::int64_t number = queue.counts != nullptr ? queue.tile_at(place) : last - place;
    const int co0 = across.remainder(static_cast<int>(i), place) * Tile::kBlockN;
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    const ListedTaps<Shape> taps(half, number * Tile::kBlockM);
    AsyncCopies<ListedTaps<Shape>, kAligned> copies(conv, taps, co0);
    for (int step = 0; step < kStages - 1; ++step) copies.find_inputs();
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncwarp();  // the inputs that one lane has copied are read by others
    for (int step = 0; step < kStages - 1; ++step) {
      copies.ask_for_next();
      __syncwarp();  // all lanes have read where this step's rows are; with more than two stages
                     // the next copies may bring inputs of a later step to the same place
    }

    for (Step now; now.entry < taps.count(); copies.advance(now)) {
      ptx::cp_async_wait_group<kStages - 2>();
      // Now this thread's copies have landed. The barrier: those of the others, too, and all have
      // read what they need of the step before, into whose stage the next copies go.
      __syncthreads();
      copies.ask_for_next();
      if (taps.warp_has(now.entry)) {  // else no row of this warp has the tap
        tile.template multiply_along_k<Shape::kPitchA, Shape::kPitchB>(
            Shape::rows_at(now.stage), Shape::weights_at(now.stage), sums);
      }
    }

    if (conv.add) wait_for_kernel_before();  // which stored what is added to
    tile.for_each_four_along_k(sums, [&](int m, int n, float4 four) {
      const int row = Shape::rows()[m], co = co0 + n;
      if (row >= 0 && co < conv.Cout) store_sums<kAligned>(conv, row, co, four);
    });
    __syncthreads();  // all have read rows and list before the next tile's overwrite them
  }
}

/// Whether tiles of 128 rows keep a large GPU busy for so long that its last ones do not count.
bool has_many_rows(int M) { return M / 128 >= enough_blocks(2400); }

/// Calls body.operator()<shape, blocks that should fit on an SM>().
template <class Body>
void with_shape(const SparseConvProblem& conv, const Body& body) {
  if (conv.Cout > Medium::Tile::kBlockN) {
    body.template operator()<Wide, 3>();
  } else if (conv.Cout > Narrow::Tile::kBlockN) {
    body.template operator()<Medium, 4>();
  } else if (!has_many_rows(conv.M)) {
    body.template operator()<Narrow, 6>();
  } else {
    body.template operator()<NarrowTall, 4>();
  }
}

/// The list of a tile's taps lies in shared memory, which bounds their number; rows, tiles and
/// bytes of a row are counted in 32 bits.
Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.book.KV > kMostTaps) return text("up to ", kMostTaps, " taps");
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (conv.Cout >= kMost || conv.book.KV * std::int64_t{conv.Cin} >= kMost) {
    return "Cout and KV * Cin below 2^30";
  }
  constexpr auto kRows = Narrow::Tile::kBlockM, kChannels = Narrow::Tile::kBlockN;
  if (ceil_div(conv.M, kRows) * std::int64_t{ceil_div(conv.Cout, kChannels)} >= kMost) {
    return text("below 2^30 tiles of ", kRows, " rows and ", kChannels, " channels");
  }
  return {};
}

/// The two queues, front to back. With many rows there are none.
struct Workspace {
  std::int32_t *counts, *tiles;  ///< [2][kBuckets] and [2][kBuckets][capacity]
  std::int64_t capacity;         ///< Tiles of the problem.
  std::size_t bytes;             ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const SparseConvProblem& conv, std::byte* begin) {
  Workspace work{};
  if (has_many_rows(conv.M)) return work;
  WorkspaceCutter cutter(begin);
  work.capacity = ceil_div<std::int64_t>(conv.M, kQueuedRows);
  work.counts = cutter.take<std::int32_t>(2 * TileQueue::kBuckets);
  work.tiles = cutter.take<std::int32_t>(2 * TileQueue::kBuckets * work.capacity);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return workspace_at(conv, nullptr).bytes;
}

/// Whether rows and weights consist of float4, if they begin at multiples of 16 bytes.
bool channels_in_fours(const SparseConvProblem& conv) {
  return conv.Cin % 4 == 0 && conv.Cout % 4 == 0;
}

/// Computes a half. The second begins beside the end of the first, and waits only before it adds to
/// y; the first begins beside the end of what fills the queue.
void run_half(const SparseConvProblem& conv, const HalfOfTaps& half, const TileQueue& queue) {
  const auto at_16 = [](const float* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  const bool aligned = channels_in_fours(conv) && at_16(half.conv.features) &&
                       at_16(half.conv.weights) && at_16(half.conv.y);
  with_shape(conv, [&]<class Shape, int kBlocks>() {
    using Tile = typename Shape::Tile;
    const int across = ceil_div(conv.Cout, Tile::kBlockN);
    const std::int64_t tiles = ceil_div<std::int64_t>(conv.M, Tile::kBlockM) * across;
    const auto kernel = aligned ? implicit_gemm_async_rows<Shape, true, kBlocks>
                                : implicit_gemm_async_rows<Shape, false, kBlocks>;
    const LaunchConfig config = {blocks_for(tiles, 1, kMaxBlocks), Tile::kThreads,
                                 Shape::shared_bytes(conv.book.KV)};
    if (half.conv.add || queue.counts != nullptr) {
      launch_early(kernel, config, half, FastDivision(across), static_cast<int>(tiles), queue);
    } else {
      launch(kernel, config, half, FastDivision(across), static_cast<int>(tiles), queue);
    }
  });
}

/// As implicit_gemm_cp_async.
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context& context) {
  QueuedHalves halves;
  for (int half = 0; half < 2; ++half) halves.half[half] = half_of(conv, arrays, half);
  if (!has_many_rows(conv.M)) {
    const auto [counts, tiles, capacity, bytes] =
        workspace_at(conv, context.workspace_as<std::byte>());
    constexpr int kBuckets = TileQueue::kBuckets;
    for (int half = 0; half < 2; ++half) {
      halves.queue[half] = {.counts = counts + half * kBuckets,
                            .tiles = tiles + half * kBuckets * capacity,
                            .capacity = capacity};
    }
    check(cudaMemsetAsync(counts, 0, 2 * kBuckets * sizeof *counts, current_stream()));
    launch(queue_tiles, {dim3(blocks_for(capacity, kThreads / 32, kMaxBlocks), 2), kThreads},
           halves);
  }
  for (int half = 0; half < 2; ++half) run_half(conv, halves.half[half], halves.queue[half]);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  std::string words;
  with_shape(conv, [&]<class Shape, int kBlocks>() {
    words = text(Shape::Tile::kBlockM, " x ", Shape::Tile::kBlockN,
                 channels_in_fours(conv) ? ", channels in fours" : "",
                 has_many_rows(conv.M) ? ", tiles in their order" : ", tiles in queues");
  });
  return words;
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm_longest_first = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
