/// @file cp_async.cu
/// @brief `cp.async` pipeline: three stages in flight; zero-fill implements the padding.
///
/// - Before: warp_tiles.cu
/// - After: mma.cu, split_k.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** cp.async copies from global to shared memory asynchronously. With three stages, a
/// block starts the copies for the step after next, and computes the step whose copies it started
/// two steps ago. A copy with a source size of 0 bytes writes zeros, which is the padding. The
/// weights are packed with the channel as the fastest index, k = (r, s, c) instead of (c, r, s): a
/// step of 16 k is then 16 channels of *one* tap. The tap's offset and padding test are computed
/// once per C / 16 steps; in between, an address advances by H * W per channel.
///
///     stage 0   copy 0 . . . . | compute 0    | copy 3 . . . . . . . . . . | compute 3
///     stage 1     copy 1 . . . . . . . . . .  | compute 1   | copy 4 . . . . . . . . .
///     stage 2                  | copy 2 . . . . . . . . . . | compute 2    | copy 5 ...
///                              one barrier a step: before a stage is read, and another overwritten
///
/// **Expect.** With 128 x 64 accumulators and 16 k per step, a thread has 1024 multiply-adds
/// between two barriers, 64 vector loads, and 12 copies with some 30 instructions: 58 TFLOP/s at
/// best on an H200, 4.1 ms for B10 (64x512x28x28, 512 filters 3x3), 0.13 ms for B4 (32x64x56x56, 64
/// filters 3x3). 128 registers per thread and 36 KB: four blocks per SM.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect lanes.x.load 0, copies alone
/// @expect loads_per_output.x 16 * 46 * 46 / (16 * 16) / 32 = 4.1328, of 48 taps an axis, 46 inside
/// @expect loads_per_output.workspace 16 * 3 * 3 / 32 / 4 = 1.125, of weights in vectors; no table
/// @expect barriers_per_block 2 + 144 / 8 + 1 = 21, packing; one a step of 8, and one
/// **Costs.** Few tiles leave SMs idle: B7 (32x512x7x7) has 100 for 132 SMs. If C / groups is no
/// multiple of the step (B3), k stays (c, r, s), with a table as in precomputed_offsets.cu. Not
/// supported: NHWC, other types, the maps split_k and stream_k, images too large for 32-bit
/// offsets.
/// **Try.** Set the stages in shared/implicit_gemm/pipeline_tile.cuh to 2, and to 5. How long may a
/// copy take in each case, and how many blocks fit into the shared memory of an SM?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kPackTile = 32;  ///< Rows and columns that a block packs at once.
inline constexpr int kPackRows = 8;   ///< Rows of threads of such a block.

/// weights [groups * filters][channels * taps] to packed [groups][k_rows][padded_m], with zeros
/// where there is no weight. Reads and writes are coalesced: the tile is transposed in shared
/// memory. Grid <= groups * ceil(c_rows * taps / 32) * padded_m / 32, block (32, 8).
/// @param c_rows channels, rounded up so that all rows are written
static __global__ void conv2d_pack_weights(GatheredProduct product, int c_rows,
                                           const float* weights, float* packed) {
  __shared__ float tile[kPackTile][kPackTile + 1];  // [m][k]: columns in 32 banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int taps = product.R * product.S;
  const std::int64_t filter = std::int64_t{product.channels} * taps;
  const int tiles_m = ceil_div(product.padded_m, kPackTile);
  const std::int64_t tiles_k = ceil_div<std::int64_t>(std::int64_t{c_rows} * taps, kPackTile);
  for (std::int64_t i = blockIdx.x; i < product.groups * tiles_k * tiles_m; i += gridDim.x) {
    const int m0 = static_cast<int>(i / tiles_k % tiles_m) * kPackTile;
    const std::int64_t group = i / tiles_k / tiles_m, k0 = i % tiles_k * kPackTile;
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const bool exists = m0 + row < product.filters && k0 + tx < filter;
      tile[row][tx] =
          exists ? weights[(group * product.filters + m0 + row) * filter + k0 + tx] : 0.0f;
    }
    __syncthreads();  // separates these stores from the loads below
    for (int row = ty; row < kPackTile; row += kPackRows) {
      const auto c = static_cast<int>((k0 + row) / taps), tap = static_cast<int>((k0 + row) % taps);
      const std::int64_t to = packed_row(product, c, tap);
      if (c < c_rows && to < product.k_rows && m0 + tx < product.padded_m) {
        packed[(group * product.k_rows + to) * product.padded_m + m0 + tx] = tile[tx][row];
      }
    }
    __syncthreads();  // separates these loads from the next tile's stores
  }
}

/// Packs the weights of the forward pass for a planned product.
static void launch_pack(const GatheredProduct& product, const float* weights, float* packed) {
  const int c_rows = packed_channels(product);
  const std::int64_t tiles_k =
      ceil_div<std::int64_t>(std::int64_t{c_rows} * product.R * product.S, kPackTile);
  const std::int64_t tiles = tiles_k * ceil_div(product.padded_m, kPackTile) * product.groups;
  launch(conv2d_pack_weights,
         {dim3(blocks_for(tiles, 1, kMaxGridX - 1)), dim3(kPackTile, kPackRows)}, product, c_rows,
         weights, packed);
}

namespace {

/// x [N][C][H][W], packed [groups][k_rows][padded_m].
/// Grid walk.plane * groups, block T::kThreads.
/// @tparam Gather GatherTapByTap or GatherByTable
template <class T, template <class> class Gather>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_cp_async(GatheredProduct product, tile_map::Walk walk, StoreImages store,
                                  const float* x, const float* packed) {
  float* const w_tiles = dynamic_shared<float>();             // [stage][k][m]
  float* const x_tiles = w_tiles + T::kStages * T::kFloatsA;  // [stage][k][n]
  auto* const table = reinterpret_cast<TapOffset*>(w_tiles + T::kFloats);

  const int thread = static_cast<int>(threadIdx.x);
  tile_map::Tile at;                                        // pixels down, channels across
  if (!walk.tile_at(blockIdx.x % walk.plane, &at)) return;  // uniform for the block
  const BlockPlace place{at.n * T::kBlockM, at.m * T::kBlockN,
                         static_cast<int>(blockIdx.x / walk.plane), 0};
  if constexpr (Gather<T>::kTable) {
    Gather<T>::fill(product, table);
    __syncthreads();  // separates these stores from all loads of the table
  }
  Gather<T> gather(product, place, x, 0, table);
  constexpr int kFoursM = T::kBlockM / 4, kFoursA = T::kFloatsA / 4;  // of a row, of a tile
  static_assert(T::kThreads % kFoursM == 0);
  const float* weights =
      packed + (std::int64_t{place.group} * product.k_rows + thread / kFoursM) * product.padded_m +
      place.m + thread % kFoursM * 4;  // of the tile that is copied next

  int next = 0;  // the step that is copied next
  const auto copy_next = [&](int stage) {
    if (next < product.steps) {
      float* const w_tile = w_tiles + stage * T::kFloatsA;
#pragma unroll
      for (int e = 0; e < ceil_div(kFoursA, T::kThreads); ++e) {
        const int four = thread + e * T::kThreads;
        if (kFoursA % T::kThreads == 0 || four < kFoursA) {
          ptx::cp_async<16>(w_tile + four * 4,
                            weights + std::int64_t{e * (T::kThreads / kFoursM)} * product.padded_m);
        }
      }
      weights += std::int64_t{T::kBlockK} * product.padded_m;
      gather.copy(product, next, x_tiles + stage * T::kFloatsB);
      ++next;
    }
    ptx::cp_async_commit_group();  // also without copies, so that groups are counted as steps
  };

  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  for (int stage = 0; stage < T::kStages - 1; ++stage) copy_next(stage);
  int stage = 0, free_stage = T::kStages - 1;
  for (int step = 0; step < product.steps; ++step) {
    ptx::cp_async_wait_group<T::kStages - 2>();  // this step's copies by this thread have landed
    // Separates the copies of all threads from the loads below, and the last step's loads from the
    // copies into the stage that it has left.
    __syncthreads();
    copy_next(free_stage);
    tile.template multiply<T::kBlockM, T::kBlockN>(w_tiles + stage * T::kFloatsA,
                                                   x_tiles + stage * T::kFloatsB, sums);
    free_stage = stage;
    stage = stage + 1 == T::kStages ? 0 : stage + 1;
  }
  __syncthreads();  // separates the last loads from the stores of store()
  store.store(product, place, tile, sums, w_tiles);
}

/// The tiles of a product, as maps count them: pixels down, channels across. By the map row_major,
/// blocks with the same pixels are neighbours, so that what they gather is still in the L2 cache.
TileMapProblem tiles_of(const GatheredProduct& product, TileMap map) {
  return {.map = map,
          .tiles_m = product.n_tiles,
          .tiles_n = product.m_tiles,
          .k_steps = product.steps,
          .batch = product.groups};
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product(conv)) return reason;
  if (const Declined reason = why_no_gather(forward_product(conv))) return reason;
  return with_tile(forward_product(conv), [&](auto tag) {
    return tile_map::why_no_whole_tiles(
        tiles_of(planned_for(tag, forward_product(conv)), conv.map));
  });
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return with_tile(forward_product(conv), [&](auto tag) {
    const GatheredProduct product = planned_for(tag, forward_product(conv));
    return static_cast<std::size_t>(product.packed_floats()) * sizeof(float);
  });
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  with_tile(forward_product(conv), [&](auto tag) {
    using T = typename decltype(tag)::Tile;
    const GatheredProduct product = planned_for(tag, forward_product(conv));
    auto* packed = context.workspace_as<float>();
    launch_pack(product, arrays.weights, packed);
    const StoreImages store(product, arrays.y, arrays.bias, conv.activation);
    const tile_map::Walk walk(tiles_of(product, conv.map));
    const std::int64_t blocks = std::int64_t{walk.plane} * product.groups;
    const std::size_t shared = T::kFloats * sizeof(float) + table_bytes(product);
    launch(product.table ? conv2d_implicit_gemm_cp_async<T, GatherByTable>
                         : conv2d_implicit_gemm_cp_async<T, GatherTapByTap>,
           {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), shared}, product, walk, store,
           arrays.x, static_cast<const float*>(packed));
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_tile(forward_product(conv), [&](auto tag) {
    const GatheredProduct product = planned_for(tag, forward_product(conv));
    return text(in_words(tag, product.table), pixels_in_fours(product) ? ", pixels in fours" : "");
  });
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_cp_async = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
