/// @file implicit_gemm_split_k.cu
/// @brief conv2d as a matrix product: several blocks share the sums of a tile.
///
/// - Before: implicit_gemm_cp_async.cu
/// - The kernel: implicit_gemm_pipeline.cuh
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** Late layers have many channels and few pixels: B7 (32x512x7x7, 512 filters 3x3)
/// has 4 x 25 tiles of 128 x 64, and an H200 has 132 SMs. But its sums are 4608 products long, and
/// can be cut: five blocks compute a fifth of each tile's sums, and a second kernel adds the parts.
/// One thread adds the parts of a sum, in their order: the result is the same in every run. A small
/// model chooses the tile and the number of parts: the blocks of an SM times the time of a block,
/// plus the time to write and read the parts.
///
///     100 blocks                   500 blocks, four an SM
///     SM 0    ================     SM 0    ==== ==== ==== ====     parts [split][m][pixel]
///     SM 99   ================     SM 99   ==== ==== ==== ====         |
///     SM 100                       SM 100  ==== ==== ==== ====     y = bias + part 0 + part 1 ...
///     SM 131                       SM 131  ==== ==== ====
///
/// **Expect.** All SMs have work to the end, and the blocks of an SM hide each other's waiting,
/// which a single one cannot. The model expects 182 us for B7 with five parts, 284 without; 170 for
/// B6 (32x256x14x14, 256 filters 3x3) with two, 284 without. All others of B3 to B11 have more
/// tiles than the SMs hold at a time, and are best left whole.
/// **Costs.** A workspace of as many copies of y as there are parts. Takes the map row_major, where
/// it chooses the number of parts itself, and split_k, where there are at least two. Declines all
/// other maps, and else what implicit_gemm_cp_async.cu declines.
/// **Try.** Print what the model chooses for batch sizes from 1 to 64 of B7. Then time the choices
/// around it: how much does a wrong one cost?
#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d/implicit_gemm_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kMostSplits = 32;
[[maybe_unused]] constexpr int kThreads = 256;  ///< Threads of a block that adds parts.

/// Writes the sums of a part to parts [splits][channels][pitch(): pixels, rounded up to 4].
struct StoreParts {
  float* parts;

  HOST_DEVICE static std::int64_t pitch(const GatheredProduct& product) {
    return (std::int64_t{product.pixels()} + 3) / 4 * 4;
  }

  template <class T>
  __device__ void store(const GatheredProduct& product, const BlockPlace& place, const T& tile,
                        const float (&sums)[T::kThreadM][T::kThreadN], float*) const {
    const std::int64_t channel =
        std::int64_t{place.split} * product.channels() + place.group * product.group_m + place.m;
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      if (place.m + m >= product.group_m || place.n + n >= product.pixels()) return;
      *reinterpret_cast<float4*>(parts + (channel + m) * pitch(product) + place.n + n) = four;
    });
  }
};

/// out [images][channels][rows][columns] = bias + parts, activated: no block could do that before,
/// because none had a whole sum. Grid <= ceil(channels * pitch / 256), block 256.
__global__ void __launch_bounds__(kThreads)
    conv2d_add_parts(GatheredProduct product, int splits, const float* parts, const float* bias,
                     Activation activation, float* out) {
  const std::int64_t pitch = StoreParts::pitch(product), count = product.channels() * pitch;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const auto channel = static_cast<int>(i / pitch), pixel = static_cast<int>(i % pitch);
    if (pixel >= product.pixels()) continue;
    float sum = bias ? bias[channel] : 0.0f;
    for (int split = 0; split < splits; ++split) sum += parts[split * count + i];
    const int image = product.by_image.quotient(pixel);
    out[(std::int64_t{image} * product.channels() + channel) * product.image_pixels() +
        product.by_image.remainder(pixel, image)] = activated(activation, sum);
  }
}

/// What the model needs to know of a GPU, and of a tile on it: numbers fitted to an H200. Another
/// GPU has others, but the choice depends on their ratios only.
struct Model {
  static constexpr double kSmFlops = 65e12 / 132;  ///< an SM, multiply-adds alone
  static constexpr double kBytes = 3.5e12;         ///< a second, written or read, through the L2
  static constexpr double kLaunch = 3e-6;          ///< of the second kernel
  static constexpr double kAlone = 1.35;  ///< how much longer a block takes that fills half an SM
};

/// Seconds that the product takes with blocks of T, each with 1 / splits of the steps.
template <class T>
double estimated_seconds(const GatheredProduct& product, int splits, double efficiency, int sms) {
  const std::int64_t blocks =
      std::int64_t{product.m_tiles} * product.n_tiles * product.groups * splits;
  const double block = 2.0 * T::kBlockM * T::kBlockN * T::kBlockK *
                       ceil_div(product.steps, splits) / (Model::kSmFlops * efficiency);
  const std::int64_t busiest = ceil_div<std::int64_t>(blocks, sms);  // blocks of one SM
  // Blocks of an SM take turns. The last ones may be too few to hide each other's waiting.
  const std::int64_t last = busiest % T::kBlocks;
  double seconds = static_cast<double>(busiest) * block;
  if (last > 0 && last * T::kThreads <= 256) {
    seconds += static_cast<double>(last) * block * (Model::kAlone - 1.0);
  }
  if (splits > 1) {
    const double sums = static_cast<double>(StoreParts::pitch(product)) * product.channels();
    seconds += (2.0 * splits + 1.0) * sums * sizeof(float) / Model::kBytes + Model::kLaunch;
  }
  return seconds;
}

/// Calls body(TileTag<T>, product planned for T, splits) for the tile and the number of parts that
/// the model thinks best.
template <class Body>
auto with_plan(const Conv2dProblem& conv, const Body& body) {
  const GatheredProduct product = forward_product(conv);
  const int sms = multiprocessors();
  double best = 1e300;
  int best_tile = 0, best_splits = 1, tile = 0;
  const auto consider = [&]<class T>(TileTag<T> tag, double efficiency) {
    const GatheredProduct plan = planned_for(tag, product);
    const int fewest = conv.map == TileMap::split_k ? std::min(kDefaultSplits, plan.steps) : 1;
    for (int splits = fewest; splits <= std::min(kMostSplits, plan.steps); ++splits) {
      const double seconds = estimated_seconds<T>(plan, splits, efficiency, sms);
      if (seconds < best) {
        best = seconds;
        best_tile = tile;
        best_splits = splits;
      }
    }
    ++tile;
  };
  consider(TileTag<Tile128>{}, 0.73);
  consider(TileTag<Tile64>{}, 0.69);
  consider(TileTag<Tile32>{}, 0.50);
  consider(TileTag<TileSmall>{}, 0.30);
  const auto with = [&](auto tag) { return body(tag, planned_for(tag, product), best_splits); };
  switch (best_tile) {
    case 0: return with(TileTag<Tile128>{});
    case 1: return with(TileTag<Tile64>{});
    case 2: return with(TileTag<Tile32>{});
    default: return with(TileTag<TileSmall>{});
  }
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
        splits > 1 ? splits * product.channels() * StoreParts::pitch(product) : 0;
    return static_cast<std::size_t>(product.packed_floats() + parts) * sizeof(float) + kAlignment;
  });
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  with_plan(conv, [&](auto tag, const GatheredProduct& product, int splits) {
    using T = typename decltype(tag)::Tile;
    const auto* x = arrays.in<float>("x");
    const auto* bias = arrays.in_or_null<float>("bias");
    auto* y = arrays.out<float>("y");
    auto* packed = aligned<float>(arrays.workspace<void>());
    launch_pack(product, arrays.in<float>("weights"), packed);
    const Products<1> products = {.of = {product}, .splits = splits, .map = conv.map};
    if (splits == 1) {
      launch_gathered<T>(products, StoreImages(product, y, bias, conv.activation), x, packed);
      return std::size_t{0};
    }
    float* const parts = packed + product.packed_floats();  // whole tiles: aligned as well
    launch_gathered<T>(products, StoreParts{parts}, x, packed);
    const std::int64_t count = product.channels() * StoreParts::pitch(product);
    launch(conv2d_add_parts, {dim3(blocks_for(count, kThreads, kMaxGridX - 1)), dim3(kThreads)},
           product, splits, static_cast<const float*>(parts), bias, conv.activation, y);
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

Implementation<Conv2dProblem> implicit_gemm_split_k() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
