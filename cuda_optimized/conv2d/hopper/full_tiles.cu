/// @file full_tiles.cu
/// @brief Full tiles for many filters: no padding columns, and both consumer warpgroups share a
/// halo tile.
///
/// - Before: implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** B10 multiplies 237 GFLOP, so many that power limits it: the clock falls until the
/// GPU keeps to its limit, and the time is proportional to the work, useful or not. In
/// halo_tile.cu, 12 of 208 columns are padding columns, and each patch is loaded 8 times, for 64
/// filters each. Here a tile is a strip of 8 columns by 28 rows without padding columns. Of 28
/// columns of an image 4 are left; *two images' remainders are a tile*. And a tile has 128 filters:
/// *both warpgroups multiply the same patch*, each with 64 filters of its own:
///
///     image n        8 | 8 | 8 | 4       7 tiles of 224 pixels, by 128 filters:
///     image n + 1    8 | 8 | 8 | 4       warpgroup 0: 0-63, warpgroup 1: 64-127
///
/// Weights are loaded as often as before, patches half as often. While one warpgroup stores, the
/// other one has enough taps in shared memory, and the tensor cores for itself.
///
/// **Expect.** 6 % fewer products, and a third fewer bytes through the L2 cache. B10 at the rate of
/// halo_tile.cu: 290 us; with the power that the bytes took, 280 to 285 us.
/// @expect on --n 2 --c 64 --h 16 --w 12 --k 128 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 18) + 3 + 18 = 59, wide tiles, and a narrow one
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.y.store 0, TMA stores
/// **Costs.** A narrow tile has three patches. Rows should be multiples of 28. Not supported: 64
/// filters or fewer, rows of which more than 4 columns are left, strides, and as before.
/// **Try.** Of 14 columns 6 are left. What would a tile of four images' remainders look like?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/hopper/full_tiles.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_stages.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kFullColumns = 224;  ///< Of a tile: 28 rows of a strip.
constexpr int kNarrow = 4;         ///< Columns of a narrow strip, at most.
constexpr int kFullBlocks = 2;     ///< Of filters, in a tile: one a consumer.

/// A tile, and which kind it is.
struct FullTile {
  PatchTile at;    ///< its first image, row and column
  bool is_narrow;  ///< of two images
};

/// How images are cut.
struct FullTiles {
  PatchTiles wide,  ///< strips of 8 columns
      narrow;       ///< strips of what is left, of two images
  unsigned of_two;  ///< tiles of two images

  /// Tile `index` of all images: of two images all wide strips, then the narrow ones.
  HOST_DEVICE FullTile at(unsigned index) const {
    const auto down = static_cast<unsigned>(wide.down), across = static_cast<unsigned>(wide.across);
    const unsigned strip = index % of_two / down;
    const bool is_narrow = strip >= 2 * across;
    const unsigned image = is_narrow ? 0 : strip / across;
    const unsigned column = is_narrow ? across : strip % across;
    return {.at = {.n = static_cast<int>(index / of_two * 2 + image),
                   .p = static_cast<int>(index % down) * wide.rows,
                   .q = static_cast<int>(column) * 8},
            .is_narrow = is_narrow};
  }
  /// The tiles of a kind.
  HOST_DEVICE const PatchTiles& of(bool is_narrow) const { return is_narrow ? narrow : wide; }
  /// Tiles of N images.
  std::int64_t count(int N) const { return ceil_div(std::int64_t{N}, std::int64_t{2}) * of_two; }
};

/// The tiles of windows, with room for their patches; wide.rows is 0 where there is none.
struct FullPlan {
  PatchPlan plan;   ///< its tiles are the wide ones
  FullTiles tiles;  ///< of pixels

  /// Of the windows.
  explicit FullPlan(const Windows& windows) {
    PatchTiles wide = strips_of(windows, kFullColumns);
    wide.across = windows.Q / 8;
    plan = plan_with(windows, wide, kFullBlocks, kFullColumns * kPixelBytes);
    plan.stay = false;
    const bool has_narrow = windows.Q % 8 != 0;
    tiles = {.wide = plan.tiles,
             .narrow = plan.tiles,
             .of_two = static_cast<unsigned>(wide.down * (2 * wide.across + (has_narrow ? 1 : 0)))};
    tiles.narrow.kind = PatchKind::images;
    tiles.narrow.images = 2;
    tiles.narrow.width = windows.Q % 8;
    tiles.narrow.row = kNarrow;
    tiles.narrow.group = 2 * kNarrow;
    tiles.narrow.across = 1;
  }
};

/// What there is to compute: PatchWork of both kinds of tiles.
struct FullWork {
  FullTiles tiles;         ///< of pixels
  PatchWork wide, narrow;  ///< `wide` says how a block's shared memory is used
  unsigned items;          ///< tiles of pixels by tiles of filters; filters change fastest

  /// Of the windows, by a plan for them.
  FullWork(const Windows& windows, const FullPlan& with)
      : tiles(with.tiles), wide(windows, with.plan), narrow(windows, with.plan),
        items(static_cast<unsigned>(with.tiles.count(windows.N)) * wide.filter_tiles) {
    narrow.plan.tiles = tiles.narrow;
  }
};

/// For a rung's choice: which strips there are.
std::string strips_in_words(const Windows& windows) {
  const bool has_wide = windows.Q >= 8, has_narrow = windows.Q % 8 != 0;
  return text(has_wide ? "strips of an image" : "", has_wide && has_narrow ? " and " : "",
              has_narrow ? "strips of two" : "");
}

/// Why the windows are not computed in such tiles, if so.
Declined why_no_strips(const Windows& windows) {
  if (windows.stride.h != 1 || windows.stride.w != 1)
    return "stride 1 only: tiles are strips, next to each other";
  if (windows.pixels() == 0) return {};
  if (windows.group_k() <= kPatchFilters)
    return text(how_many(windows.group_k(), "filter"),
                " a group: a patch is shared by two blocks of ", kPatchFilters);
  if (windows.Q % 8 > kNarrow)
    return text("beside strips of 8 columns, ", windows.Q % 8, " are left: at most ", kNarrow);
  const FullPlan full(windows);
  if (full.plan.patches == 0)
    return "the pixels of a tile's windows do not fit into a patch in shared memory";
  const std::int64_t items = full.tiles.count(windows.N) * filter_tiles_of(windows, kFullBlocks);
  if (items <= INT32_MAX) return {};
  return text(items, " tiles: at most ", INT32_MAX);
}

/// Sums over windows: one warp, the producer, loads patches and taps; the others, two consumer
/// warpgroups, multiply each patch by a block of filters each. Patches: TmaPatches or
/// GatheredPatches, Taps likewise. Grid: <= work.items; block gemm::kWgmmaThreads;
/// work.wide.plan.shared_bytes().
template <class T, class Patches, class Taps>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, 1)
    conv2d_hopper_full_tiles(const __grid_constant__ Patches wide,
                             const __grid_constant__ Patches narrow,
                             const __grid_constant__ Taps taps,
                             const __grid_constant__ FullWork work,
                             const __grid_constant__ PatchResult<T> wide_result,
                             const __grid_constant__ PatchResult<T> narrow_result) {
  __shared__ PatchBarriers barriers;
  PatchStages<kFullBlocks> stages(work.wide, barriers);
  stages.prepare<gemm::kWgmmaThreads>();

  const Windows& windows = work.wide.windows;
  const int chunks = windows.chunks(), lane = static_cast<int>(threadIdx.x) % 32;
  const auto tile_of = [&](unsigned item) { return work.tiles.at(item / work.wide.filter_tiles); };
  const auto filters_of = [&](unsigned item) {
    return filters_at(windows, item % work.wide.filter_tiles, kFullBlocks);
  };
  // From lane 0: the compiler then keeps the index, and the descriptors, in uniform registers.
  const int consumer = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);
  if (consumer == gemm::kConsumers) {
    if (lane != 0 && !Taps::kWholeWarp) return;
    for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x) {
      const FullTile tile = tile_of(item);
      stages.load(tile.is_narrow ? narrow : wide, taps, tile.at, filters_of(item), 0, chunks, true,
                  tile.is_narrow ? windows.S : 1);
    }
    return;
  }

  T* const staging = reinterpret_cast<T*>(stages.behind + consumer * work.wide.plan.staging_bytes);
  for (unsigned item = blockIdx.x; item < work.items; item += gridDim.x) {
    const FullTile tile = tile_of(item);
    float accumulators[kFullColumns / 2];
#pragma unroll
    for (float& sum : accumulators) sum = 0.0f;
    // for each tap and 64 channels c:
    //   accumulators[filter][p, q] += weights[filter][c] * patch[p + r * dilation.h][q + ...][c]
    stages.for_each_tap(
        work.tiles.of(tile.is_narrow), 0, chunks,
        [&](const char* weights, std::uint64_t columns) {
          multiply_tap<Taps::kTransposed, kFullColumns, T>(accumulators, weights, columns);
        },
        consumer, tile.is_narrow ? windows.S : 1);
    stages.finish();
    const PatchFilters filters = block_of(filters_of(item), consumer);
    if (filters.count <= 0) continue;
    (tile.is_narrow ? narrow_result : wide_result)
        .template store<kFullColumns>(work.tiles.of(tile.is_narrow), tile.at, filters, consumer,
                                      accumulators, staging);
  }
  wide_result.finish();  // waits for the stores by both
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_half_windows(conv)) return why;
  if (conv.map != TileMap::row_major)
    return text("the map ", name_of(conv.map), ": tiles of pixels have an order of their own");
  return why_no_full_tiles(forward_product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  launch_full_tiles(
      forward_product_of(conv),
      {.source = arrays.x, .weights = arrays.weights, .bias = arrays.bias, .out = arrays.y});
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return full_tiles_in_words(forward_product_of(conv));
}

}  // namespace

Declined why_no_full_tiles(const HalfProduct& product) { return why_no_strips(product.windows); }

void launch_full_tiles(const HalfProduct& product, const HalfArrays& arrays) {
  const Windows& windows = product.windows;
  if (windows.pixels() == 0) return;
  with_half_type(product.dtype, [&]<class T>(T) {
    const FullWork work(windows, FullPlan(windows));
    T* const out = arrays.out;
    with_halo_operands<T>(product, arrays, work.wide,
                          [&]<class PatchesOf, class Taps>(PatchesOf patches_of, Taps taps) {
                            const auto patches = patches_of(work.wide);
                            launch(
                                conv2d_hopper_full_tiles<T, std::decay_t<decltype(patches)>, Taps>,
                                {dim3(blocks_for(work.items, 1, enough_blocks(multiprocessors()))),
                                 dim3(gemm::kWgmmaThreads), work.wide.plan.shared_bytes()},
                                patches, patches_of(work.narrow), taps, work,
                                patch_result<T>(windows, work.tiles.wide, arrays.bias, out),
                                patch_result<T>(windows, work.tiles.narrow, arrays.bias, out));
                          });
  });
}

std::string full_tiles_in_words(const HalfProduct& product) {
  if (product.windows.pixels() == 0) return "nothing to do";
  return text(dtype_name(product.dtype, Precision{}), ", ", strips_in_words(product.windows),
              operands_in_words(product));
}

extern const Implementation<Conv2dArrays> hopper_full_tiles = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
