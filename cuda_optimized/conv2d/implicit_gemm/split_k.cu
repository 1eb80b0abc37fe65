/// @file split_k.cu
/// @brief Split-K: several blocks compute partial results of a tile; a second kernel adds them in
/// order.
///
/// - Before: cp_async.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** Late layers have many channels and few pixels: B7 (32x512x7x7, 512 filters 3x3)
/// has 4 x 25 tiles of 128 x 64, and an H200 has 132 SMs. But K is 4608, and can be cut: five
/// blocks compute a fifth of each tile, and a second kernel adds the parts. One thread adds the
/// parts of an output in their order: the result is the same in every run. A small model chooses
/// the tile and the number of parts: the blocks per SM times the time of a block, plus the time to
/// write and read the parts.
///
///     100 blocks                   500 blocks, four an SM
///     SM 0    ================     SM 0    ==== ==== ==== ====     parts [split][m][pixel]
///     SM 99   ================     SM 99   ==== ==== ==== ====         |
///     SM 100                       SM 100  ==== ==== ==== ====     y = bias + part 0 + part 1 ...
///     SM 131                       SM 131  ==== ==== ====
///
/// **Expect.** All SMs have work to the end, and the blocks of an SM hide each other's stalls,
/// which a single block cannot. The model expects 182 us for B7 with five parts, 284 us without;
/// 170 us for B6 (32x256x14x14, 256 filters 3x3) with two, 284 us without. All others of B3 to B11
/// have more tiles than resident blocks, and are fastest without split-K.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --map split_k
/// @expect lanes_per_output.workspace.store 9 / 4 + 9 / 16 = 2.8125, nine parts in vectors; packing
/// @expect lanes_per_output.workspace.load 9, one of each part
/// @expect loads_per_output.x 16 * 46 * 46 / (16 * 16) / 64 = 2.0664, parts allow tiles of 64 x 128
/// @expect launches 3, packing, parts, their sum
/// **Costs.** A workspace of as many copies of y as there are parts. Supported maps: row_major,
/// where the model chooses the number of parts, and split_k, with at least two. Not supported: as
/// in cp_async.cu.
/// **Try.** Print the model's choice for batch sizes from 1 to 64 of B7. Then time the choices
/// around it: how much does a wrong one cost?
#include "core/conv2d_problem.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/split_model.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

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

[[maybe_unused]] constexpr int kThreads = 256;  ///< Threads of a block that adds parts.

/// x [N][C][H][W], packed [groups][k_rows][padded_m].
/// Grid m_tiles * n_tiles * groups * splits, block T::kThreads.
/// @tparam Gather GatherTapByTap or GatherByTable
/// @tparam Store StoreImages, or StoreParts where there are several splits
template <class T, template <class> class Gather, class Store>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_split_k(GatheredProduct product, int splits, Store store, const float* x,
                                 const float* packed) {
  float* const w_tiles = dynamic_shared<float>();             // [stage][k][m]
  float* const x_tiles = w_tiles + T::kStages * T::kFloatsA;  // [stage][k][n]
  auto* const table = reinterpret_cast<TapOffset*>(w_tiles + T::kFloats);

  const int thread = static_cast<int>(threadIdx.x);
  // The digits of the block's number, the channels first: blocks with the same pixels are
  // neighbours, so that what they gather is still in the L2 cache.
  const Divided m = divided(static_cast<int>(blockIdx.x), product.m_tiles);
  const Divided n = divided(m.quotient, product.n_tiles);
  const Divided group = divided(n.quotient, product.groups);
  const BlockPlace place{m.remainder * T::kBlockM, n.remainder * T::kBlockN, group.remainder,
                         group.quotient};
  const Divided share = divided(product.steps, splits);  // the first splits take one step more
  const int begin = place.split * share.quotient + min(place.split, share.remainder);
  const int end = begin + share.quotient + (place.split < share.remainder ? 1 : 0);
  if constexpr (Gather<T>::kTable) {
    Gather<T>::fill(product, table);
    __syncthreads();  // separates these stores from all loads of the table
  }
  Gather<T> gather(product, place, x, begin, table);
  constexpr int kFoursM = T::kBlockM / 4, kFoursA = T::kFloatsA / 4;  // of a row, of a tile
  static_assert(T::kThreads % kFoursM == 0);
  const float* weights =
      packed +
      (std::int64_t{place.group} * product.k_rows + begin * T::kBlockK + thread / kFoursM) *
          product.padded_m +
      place.m + thread % kFoursM * 4;  // of the tile that is copied next

  int next = begin;  // the step that is copied next
  const auto copy_next = [&](int stage) {
    if (next < end) {
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
  for (int step = begin; step < end; ++step) {
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

/// Writes the sums of a part to parts [splits][channels][pitch(): pixels, rounded up to 4].
struct StoreParts {
  float* parts;

  HOST_DEVICE static std::int64_t pitch(const GatheredProduct& product) {
    return (std::int64_t{product.pixels()} + 3) / 4 * 4;
  }

  template <class T>
  __device__ void store(const GatheredProduct& product, const BlockPlace& place, const T& tile,
                        const float (&sums)[T::kThreadM][T::kThreadN], float*) const {
    const std::int64_t channel = std::int64_t{place.split} * product.out_channels() +
                                 place.group * product.filters + place.m;
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      if (place.m + m >= product.filters || place.n + n >= product.pixels()) return;
      reinterpret_cast<float4*>(parts)[((channel + m) * pitch(product) + place.n + n) / 4] = four;
    });
  }
};

/// out [images][channels][rows][columns] = bias + parts, activated: no block could do that before,
/// because none had a whole sum. Grid <= ceil(channels * pitch / 256), block 256.
__global__ void __launch_bounds__(kThreads)
    conv2d_implicit_gemm_split_k_add_parts(GatheredProduct product, int splits, const float* parts,
                                           const float* bias, Activation activation, float* out) {
  const std::int64_t pitch = StoreParts::pitch(product), count = product.out_channels() * pitch;
  for (const std::int64_t i : grid_stride<kThreads>(count)) {
    const auto channel = static_cast<int>(i / pitch), pixel = static_cast<int>(i % pitch);
    if (pixel >= product.pixels()) continue;
    float sum = bias ? bias[channel] : 0.0f;
    for (int split = 0; split < splits; ++split) sum += parts[split * count + i];
    const int image = product.by_image.quotient(pixel);
    out[(std::int64_t{image} * product.out_channels() + channel) * product.image_pixels() +
        product.by_image.remainder(pixel, image)] = activated(activation, sum);
  }
}

/// Calls body(TileTag<T>, product planned for T, splits) for the tile and the number of parts that
/// the model thinks best.
template <class Body>
auto with_plan(const Conv2dProblem& conv, const Body& body) {
  const WindowProduct product = forward_product(conv);
  const auto work_of = [&](auto tag) {
    const GatheredProduct plan = planned_for(tag, product);
    return SplitWork{
        .tiles = std::int64_t{plan.m_tiles} * plan.n_tiles * plan.groups,
        .sums = StoreParts::pitch(plan) * plan.out_channels(),
        .fewest = conv.map == TileMap::split_k ? std::min(kDefaultSplits, plan.steps) : 1,
        .most = std::min(kMostSplits, plan.steps),
        .steps = [=](int splits) { return ceil_div(plan.steps, splits); }};
  };
  return with_best_split(
      work_of, [&](auto tag, int splits) { return body(tag, planned_for(tag, product), splits); });
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.map != TileMap::row_major && conv.map != TileMap::split_k) {
    return text("the map ", name_of(conv.map), ": this rung has one of its own, split_k");
  }
  if (const Declined reason = why_no_product(conv)) return reason;
  return why_no_gather(forward_product(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return with_plan(conv, [](auto, const GatheredProduct& product, int splits) {
    const std::int64_t parts =
        splits > 1 ? splits * product.out_channels() * StoreParts::pitch(product) : 0;
    return static_cast<std::size_t>(product.packed_floats() + parts) * sizeof(float);
  });
}

/// Launches the product with blocks of T.
template <class T, class Store>
void launch_with(const GatheredProduct& product, int splits, const Store& store, const float* x,
                 const float* packed) {
  const std::int64_t blocks =
      std::int64_t{product.m_tiles} * product.n_tiles * product.groups * splits;
  const std::size_t shared = T::kFloats * sizeof(float) + table_bytes(product);
  launch(product.table ? conv2d_implicit_gemm_split_k<T, GatherByTable, Store>
                       : conv2d_implicit_gemm_split_k<T, GatherTapByTap, Store>,
         {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), shared}, product, splits, store,
         x, packed);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  with_plan(conv, [&](auto tag, const GatheredProduct& product, int splits) {
    using T = typename decltype(tag)::Tile;
    auto* packed = context.workspace_as<float>();
    launch_pack(product, arrays.weights, packed);
    const float* bias = arrays.bias;
    float* y = arrays.y;
    if (splits == 1) {
      const StoreImages store(product, y, bias, conv.activation);
      launch_with<T>(product, splits, store, arrays.x, packed);
      return std::size_t{0};
    }
    float* const parts = packed + product.packed_floats();  // whole tiles: aligned as well
    launch_with<T>(product, splits, StoreParts{parts}, arrays.x, packed);
    const std::int64_t count = product.out_channels() * StoreParts::pitch(product);
    launch(conv2d_implicit_gemm_split_k_add_parts,
           {dim3(blocks_for(count, kThreads, kMaxGridX - 1)), dim3(kThreads)}, product, splits,
           static_cast<const float*>(parts), bias, conv.activation, y);
    return std::size_t{0};
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_plan(conv, [&](auto tag, const GatheredProduct& product, int splits) {
    return text(in_words(tag, product.table), ", ", how_many(splits, "part"),
                splits == 1 && pixels_in_fours(product) ? ", pixels in fours" : "");
  });
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_split_k = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
