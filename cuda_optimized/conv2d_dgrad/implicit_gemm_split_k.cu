/// @file implicit_gemm_split_k.cu
/// @brief conv2d_dgrad as a matrix product: several blocks share the sums of a tile.
///
/// - Before: implicit_gemm_cp_async.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** That of cuda_optimized/conv2d/implicit_gemm_split_k.cu: B7 has 100 tiles for the
/// 132 SMs of an H200, but sums of 4608 products. So several blocks share a tile and compute a part
/// of each sum. A second kernel adds the parts, always in the same order. What differs is that the
/// pixels of a residue class are scattered over dx. A part has them one after the other, so that a
/// warp stores vectors of neighbours; a row of it has all classes of a channel. The second kernel
/// reads the parts in the order of dx, which undoes the scattering on the way:
///
///     part, one channel   | a a a a . | b b b b . | c c c . . | d d d . . |     stride 2
///                          class (0,0)    (0,1)       (1,0)       (1,1)
///     dx, one row           a b a b a b ...  =  part 0 + part 1 + ...
///
/// The forward rung's model chooses the tile and the number of parts; it counts the tiles of all
/// classes together.
///
/// **Expect.** B7 (32x512x7x7, 512 filters 3x3), in five parts: the model expects 180 us instead of
/// 280, of which writing and adding the parts take 13. B6 (32x256x14x14), in two parts: 170 instead
/// of 280. All others of B4 to B10 stay whole.
/// **Costs.** A workspace of as many copies of dx as there are parts. A class without taps stores
/// zeros in each part. Declined: what implicit_gemm_cp_async.cu declines.
/// **Try.** Let the blocks add their parts to dx with atomics, in the order in which they finish.
/// Run it twice, on data that are not integers. How many of the bits are the same?
#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d/implicit_gemm_tiles.cuh"
#include "cuda_optimized/conv2d_dgrad/packed_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

constexpr int kClasses = 4;  ///< Of a grid, at most.
constexpr int kMostSplits = 32;
[[maybe_unused]] constexpr int kThreads = 256;  ///< Of a block that adds parts.

/// Elements of dx.
std::int64_t elements(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.C * conv.H * conv.W;
}

/// Where the parts of a sum lie: parts [splits][channels][classes][pitch], the pixels of a class in
/// their order, with room for those of the largest class.
struct PartsLayout {
  int classes_w;       ///< classes side by side
  std::int64_t pitch;  ///< floats from a class to the next, a multiple of 4
  std::int64_t row;    ///< floats of all classes of a channel
  std::int64_t part;   ///< floats of a part

  explicit PartsLayout(const Conv2dProblem& conv)
      : classes_w(std::min(conv.stride.w, conv.W)),
        pitch((std::int64_t{largest_class(conv).pixels()} + 3) / 4 * 4),
        row(pitch * std::min(conv.stride.h, conv.H) * classes_w), part(row * conv.C) {}

  /// The first pixel of a channel's part, in the class that begins at pixel (h, w) of dx.
  HOST_DEVICE std::int64_t at(int split, int channel, int h, int w) const {
    return split * part + channel * row + (h * classes_w + w) * pitch;
  }
};

/// Writes the sums of a block to its part, as vectors of neighbours.
struct StoreParts {
  PartsLayout layout;
  float* parts;

  template <class T>
  __device__ void store(const conv2d::GatheredProduct& product, const conv2d::BlockPlace& place,
                        const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                        float*) const {
    const int channel = place.group * product.group_m + place.m;
    const std::int64_t to =
        layout.at(place.split, channel, product.out_row, product.out_column) + place.n;
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      if (place.m + m >= product.group_m || place.n + n >= product.pixels()) return;
      *reinterpret_cast<float4*>(parts + (to + m * layout.row + n)) = four;
    });
  }
};

/// Divisions that find an element of dx, and its class.
struct ElementDivisions {
  FastDivision width, height, channels, stride_h, stride_w;

  explicit ElementDivisions(const Conv2dProblem& conv)
      : width(conv.W), height(conv.H), channels(conv.C), stride_h(conv.stride.h),
        stride_w(conv.stride.w) {}
};

/// dx [N][C][H][W] = the sum of the parts. Grid <= ceil(count/256), block 256.
/// @param count elements of dx
__global__ void __launch_bounds__(kThreads)
    conv2d_dgrad_add_parts(Conv2dProblem conv, ElementDivisions divide, PartsLayout layout,
                           int count, int splits, const float* parts, float* dx) {
  for (std::int64_t element = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; element < count;
       element += std::int64_t{gridDim.x} * kThreads) {
    const auto i = static_cast<int>(element);
    const int rows = divide.width.quotient(i), w = divide.width.remainder(i, rows);
    const int planes = divide.height.quotient(rows), h = divide.height.remainder(rows, planes);
    const int n = divide.channels.quotient(planes), c = divide.channels.remainder(planes, n);
    // Pixel (y, x) of class (class_h, class_w), which has height x width pixels an image.
    const int y = divide.stride_h.quotient(h), class_h = divide.stride_h.remainder(h, y);
    const int x = divide.stride_w.quotient(w), class_w = divide.stride_w.remainder(w, x);
    const int height = ceil_div(conv.H - class_h, conv.stride.h);
    const int width = ceil_div(conv.W - class_w, conv.stride.w);
    const float* part = parts + layout.at(0, c, class_h, class_w) + (n * height + y) * width + x;
    float sum = 0.0f;
    for (int split = 0; split < splits; ++split) sum += part[split * layout.part];
    dx[i] = sum;
  }
}

/// The forward rung's model of an H200, for all classes together.
struct Model {
  static constexpr double kSmFlops = 65e12 / 132;  ///< an SM, multiply-adds alone
  static constexpr double kBytes = 3.5e12;         ///< a second, written or read, through the L2
  static constexpr double kLaunch = 3e-6;          ///< of the second kernel
  static constexpr double kAlone = 1.35;  ///< how much longer a block takes that fills half an SM
};

/// What the classes, planned for one tile, amount to.
struct Work {
  std::int64_t tiles = 0;  ///< of classes that have taps
  std::int64_t steps = 0;  ///< of all those tiles
  int most_steps = 0;      ///< of a tile
};

/// Seconds that the classes take with blocks of T, each with 1 / splits of its tile's steps.
template <class T>
double estimated_seconds(const Conv2dProblem& conv, const Work& work, int splits, double efficiency,
                         int sms) {
  if (work.tiles == 0) return splits;
  const double steps =
      std::max(1.0, static_cast<double>(work.steps) / static_cast<double>(work.tiles * splits));
  const double block =
      2.0 * T::kBlockM * T::kBlockN * T::kBlockK * steps / (Model::kSmFlops * efficiency);
  const std::int64_t busiest = ceil_div<std::int64_t>(work.tiles * splits, sms);  // of one SM
  // Blocks of an SM take turns. The last ones may be too few to hide each other's waiting.
  const std::int64_t last = busiest % T::kBlocks;
  double seconds = static_cast<double>(busiest) * block;
  if (last > 0 && last * T::kThreads <= 256) {
    seconds += static_cast<double>(last) * block * (Model::kAlone - 1.0);
  }
  if (splits > 1) {
    const auto bytes = static_cast<double>(elements(conv)) * sizeof(float);
    seconds += (2.0 * splits + 1.0) * bytes / Model::kBytes + Model::kLaunch;
  }
  return seconds;
}

/// Calls body(TileTag<T>, splits) for the tile and the number of parts that the model thinks best.
template <class Body>
auto with_plan(const Conv2dProblem& conv, const Body& body) {
  const int sms = multiprocessors();
  double best = 1e300;
  int best_tile = 0, best_splits = 1, tile = 0;
  const auto consider = [&]<class T>(conv2d::TileTag<T>, double efficiency) {
    const bool table = all_take_table<T>(conv);
    Work work;
    for_each_class(conv, [&](const ResidueClass&, const conv2d::GatheredProduct& unplanned) {
      const conv2d::GatheredProduct product = conv2d::planned<T>(unplanned, table);
      if (product.steps == 0) return;
      const std::int64_t tiles = std::int64_t{product.m_tiles} * product.n_tiles * product.groups;
      work.tiles += tiles;
      work.steps += tiles * product.steps;
      work.most_steps = std::max(work.most_steps, product.steps);
    });
    // The kernel that adds parts counts elements in 31 bits; where there are more, nothing is
    // split.
    const int most = elements(conv) < (1 << 30) ? std::clamp(work.most_steps, 1, kMostSplits) : 1;
    for (int splits = 1; splits <= most; ++splits) {
      const double seconds = estimated_seconds<T>(conv, work, splits, efficiency, sms);
      if (seconds < best) {
        best = seconds;
        best_tile = tile;
        best_splits = splits;
      }
    }
    ++tile;
  };
  consider(conv2d::TileTag<conv2d::Tile128>{}, 0.73);
  consider(conv2d::TileTag<conv2d::Tile64>{}, 0.69);
  consider(conv2d::TileTag<conv2d::Tile32>{}, 0.50);
  consider(conv2d::TileTag<conv2d::TileSmall>{}, 0.30);
  switch (best_tile) {
    case 0: return body(conv2d::TileTag<conv2d::Tile128>{}, best_splits);
    case 1: return body(conv2d::TileTag<conv2d::Tile64>{}, best_splits);
    case 2: return body(conv2d::TileTag<conv2d::Tile32>{}, best_splits);
    default: return body(conv2d::TileTag<conv2d::TileSmall>{}, best_splits);
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product(conv)) return reason;
  return conv2d::why_no_gather(largest_class(conv));
}

/// Floats of the packed weights of all classes.
template <class T>
std::int64_t packed_floats(const Conv2dProblem& conv) {
  const bool table = all_take_table<T>(conv);
  std::int64_t floats = 0;
  for_each_class(conv, [&](const ResidueClass&, const conv2d::GatheredProduct& product) {
    floats += conv2d::planned<T>(product, table).packed_floats();
  });
  return floats;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return with_plan(conv, [&]<class T>(conv2d::TileTag<T>, int splits) {
    const std::int64_t parts = splits > 1 ? splits * PartsLayout(conv).part : 0;
    return static_cast<std::size_t>(packed_floats<T>(conv) + parts) * sizeof(float) +
           conv2d::kAlignment;
  });
}

/// Packs the weights of all classes, and computes them, kClasses in a grid.
template <class T, class Store>
void compute_classes(const Conv2dProblem& conv, const Arguments& arrays, const Store& store,
                     int splits, float* packed) {
  const bool table = all_take_table<T>(conv);
  auto* next_packed = packed;  // where the next class's weights go
  conv2d::Products<kClasses> products{};
  products.count = 0;
  products.splits = splits;
  const auto launch_products = [&] {
    if (products.count == 0) return;
    conv2d::launch_gathered<T>(products, store, arrays.in<float>("dy"), packed);
    packed = next_packed;
    products.count = 0;
  };
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::GatheredProduct& unplanned) {
    const conv2d::GatheredProduct product = conv2d::planned<T>(unplanned, table);
    launch_pack_class(conv, residue, product, arrays.in<float>("weights"), next_packed);
    next_packed += product.packed_floats();
    products.of[products.count++] = product;
    if (products.count == kClasses) launch_products();
  });
  launch_products();
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  with_plan(conv, [&]<class T>(conv2d::TileTag<T>, int splits) {
    auto* packed = conv2d::aligned<float>(arrays.workspace<void>());
    auto* dx = arrays.out<float>("dx");
    if (splits == 1) {
      compute_classes<T>(conv, arrays, StoreClass(conv, dx), splits, packed);
      return std::size_t{0};
    }
    float* const parts = packed + packed_floats<T>(conv);  // whole tiles: aligned as well
    const PartsLayout layout(conv);
    compute_classes<T>(conv, arrays, StoreParts{layout, parts}, splits, packed);
    launch(conv2d_dgrad_add_parts,
           {dim3(blocks_for(elements(conv), kThreads, kMaxGridX - 1)), dim3(kThreads)}, conv,
           ElementDivisions(conv), layout, static_cast<int>(elements(conv)), splits,
           static_cast<const float*>(parts), dx);
    return std::size_t{0};
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_plan(conv, [&]<class T>(conv2d::TileTag<T> tag, int splits) {
    return text(in_words(tag, all_take_table<T>(conv)), ", ", how_many(splits, "part"), ", ",
                classes_in_words(conv, kClasses),
                splits == 1 && pixels_in_fours(conv) ? ", pixels in fours" : "");
  });
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_split_k() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
