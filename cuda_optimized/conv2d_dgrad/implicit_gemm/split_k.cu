/// @file split_k.cu
/// @brief Split-K: several blocks compute partial results of a tile; a second kernel adds them in
/// order.
///
/// - Before: cp_async.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** As in cuda_optimized/conv2d/implicit_gemm/split_k.cu: B7 has 100 tiles for the 132
/// SMs of an H200, but K is 4608. So several blocks compute parts of a tile, and a second kernel
/// adds the parts, always in the same order. What differs is that the pixels of a residue class are
/// scattered over dx. A part stores them contiguously, so that a warp stores vectors; a row of it
/// has all classes of a channel. The second kernel reads the parts in the order of dx, which undoes
/// the permutation:
///
///     part, one channel   | a a a a . | b b b b . | c c c . . | d d d . . |     stride 2
///                          class (0,0)    (0,1)       (1,0)       (1,1)
///     dx, one row           a b a b a b ...  =  part 0 + part 1 + ...
///
/// The model of the forward pass chooses the tile and the number of parts; it counts the tiles of
/// all classes together.
///
/// **Expect.** B7 (32x512x7x7, 512 filters 3x3), in five parts: the model expects 180 us instead of
/// 280 us, of which writing and adding the parts take 13 us. B6 (32x256x14x14), in two parts: 170
/// us instead of 280 us. All others of B4 to B10 are not split.
/// @expect lanes_per_output.workspace.load 24, one of each part
/// @expect lanes_per_output.workspace.store 24 / 4 + 9 * 64 * 32 / 4096 = 10.5, vectors; packing
/// @expect launches 3
/// @expect blocks 24 + 8 + 16 = 48, one tile in 24 parts; packing; sums
/// **Costs.** A workspace of as many copies of dx as there are parts. A class without taps stores
/// zeros in each part. Not supported: what cp_async.cu does not support.
/// **Try.** Let the blocks add their parts to dx with atomics, in the order in which they finish.
/// Run it twice, on data that are not integers. How many of the bits are the same?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/split_model.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/class_parts.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/packed_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

[[maybe_unused]] constexpr int kThreads = 256;  ///< Of a block that adds parts.

/// dy [N][K][P][Q], packed: for each class [groups][k_rows][padded_m], one after the other.
/// Grid m_tiles * classes.n_tiles * splits * groups * classes.count, block T::kThreads.
/// @tparam Gather GatherTapByTap or GatherByTable
/// @tparam Store StoreClass, or StoreParts where there are several splits
template <class T, template <class> class Gather, class Store>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_dgrad_implicit_gemm_split_k(ClassesOfGrid classes, int splits, Store store,
                                       const float* dy, const float* packed) {
  float* const a_tiles = dynamic_shared<float>();             // [stage][k][m]
  float* const b_tiles = a_tiles + T::kStages * T::kFloatsA;  // [stage][k][n]
  auto* const table = reinterpret_cast<conv2d::TapOffset*>(a_tiles + T::kFloats);

  const int thread = static_cast<int>(threadIdx.x);
  // The digits of the block's number, the channels first: blocks with the same pixels are
  // neighbours, so that what they gather is still in the L2 cache.
  unsigned block = blockIdx.x;
  const auto take = [&block](int extent) {
    const auto divisor = static_cast<unsigned>(extent);
    const auto digit = static_cast<int>(block % divisor);
    block /= divisor;
    return digit;
  };
  conv2d::BlockPlace place{};
  place.m = take(classes.of[0].m_tiles) * T::kBlockM;
  place.n = take(classes.n_tiles) * T::kBlockN;
  place.split = take(splits);
  place.group = take(classes.of[0].groups);
  const int index = static_cast<int>(block);
  const conv2d::GatheredProduct& product = classes.of[index];
  if (place.n >= product.n_tiles * T::kBlockN) return;  // uniform for the block
  for (int i = 0; i < index; ++i) packed += classes.of[i].packed_floats();
  const auto step_of = [&](int split) {
    return static_cast<int>(std::int64_t{product.steps} * split / splits);
  };
  const int begin = step_of(place.split), end = step_of(place.split + 1);

  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  if (begin < end) {  // or the class has no taps
    if constexpr (Gather<T>::kTable) {
      Gather<T>::fill(product, table);
      __syncthreads();  // separates these stores from all loads of the table
    }
    Gather<T> gather(product, place, dy, begin, table);
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
        float* const a_tile = a_tiles + stage * T::kFloatsA;
#pragma unroll
        for (int e = 0; e < ceil_div(kFoursA, T::kThreads); ++e) {
          const int four = thread + e * T::kThreads;
          if (kFoursA % T::kThreads == 0 || four < kFoursA) {
            ptx::cp_async<16>(
                a_tile + four * 4,
                weights + std::int64_t{e * (T::kThreads / kFoursM)} * product.padded_m);
          }
        }
        weights += std::int64_t{T::kBlockK} * product.padded_m;
        gather.copy(product, next, b_tiles + stage * T::kFloatsB);
        ++next;
      }
      ptx::cp_async_commit_group();  // also without copies, so that groups are counted as steps
    };

    for (int stage = 0; stage < T::kStages - 1; ++stage) copy_next(stage);
    int stage = 0, free_stage = T::kStages - 1;
    for (int step = begin; step < end; ++step) {
      ptx::cp_async_wait_group<T::kStages - 2>();  // this step's copies by this thread have landed
      // Separates the copies of all threads from the loads below, and the last step's loads from
      // the copies into the stage that it has left.
      __syncthreads();
      copy_next(free_stage);
      tile.template multiply<T::kBlockM, T::kBlockN>(a_tiles + stage * T::kFloatsA,
                                                     b_tiles + stage * T::kFloatsB, sums);
      free_stage = stage;
      stage = stage + 1 == T::kStages ? 0 : stage + 1;
    }
    __syncthreads();  // separates the last loads from the stores of store()
  }
  store.store(product, place, tile, sums, a_tiles);
}

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
    conv2d_dgrad_implicit_gemm_split_k_add_parts(Conv2dProblem conv, ElementDivisions divide,
                                                 PartsLayout layout, int count, int splits,
                                                 const float* parts, float* dx) {
  for (const std::int64_t element : grid_stride<kThreads>(count)) {
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

/// Elements of dx.
std::int64_t elements(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.C * conv.H * conv.W;
}

/// Calls body(TileTag<T>, splits) for the tile and the number of parts that the model thinks best.
template <class Body>
auto with_plan(const Conv2dProblem& conv, const Body& body) {
  return conv2d::with_best_split(
      [&]<class T>(conv2d::TileTag<T>) {
        const bool table = all_take_table<T>(conv);
        std::int64_t tiles = 0, steps = 0;  // of classes that have taps, and of all those tiles
        int most_steps = 0;                 // of a tile
        for_each_class(conv, [&](const ResidueClass&, const conv2d::WindowProduct& unplanned) {
          const conv2d::GatheredProduct product = conv2d::planned<T>(unplanned, table);
          if (product.steps == 0) return;
          const std::int64_t of_class =
              std::int64_t{product.m_tiles} * product.n_tiles * product.groups;
          tiles += of_class;
          steps += of_class * product.steps;
          most_steps = std::max(most_steps, product.steps);
        });
        // The kernel that adds parts counts elements in 31 bits; where there are more, nothing is
        // split.
        const bool few = elements(conv) < (1 << 30);
        return conv2d::SplitWork{.tiles = tiles,
                                 .sums = elements(conv),
                                 .fewest = 1,
                                 .most = few ? std::clamp(most_steps, 1, conv2d::kMostSplits) : 1,
                                 .steps = [=](int splits) {
                                   return std::max(1.0, static_cast<double>(steps) /
                                                            static_cast<double>(tiles * splits));
                                 }};
      },
      body);
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
  for_each_class(conv, [&](const ResidueClass&, const conv2d::WindowProduct& product) {
    floats += conv2d::planned<T>(product, table).packed_floats();
  });
  return floats;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return with_plan(conv, [&]<class T>(conv2d::TileTag<T>, int splits) {
    const std::int64_t parts = splits > 1 ? splits * PartsLayout(conv).part : 0;
    return static_cast<std::size_t>(packed_floats<T>(conv) + parts) * sizeof(float);
  });
}

/// Packs the weights of all classes, and computes them, kClasses in a grid.
template <class T, class Store>
void compute_classes(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Store& store,
                     int splits, float* packed) {
  const bool table = all_take_table<T>(conv);
  auto* next_packed = packed;  // where the next class's weights go
  ClassesOfGrid classes{};
  const auto launch_classes = [&] {
    if (classes.count == 0) return;
    const std::size_t shared = T::kFloats * sizeof(float) + classes.table_bytes();
    launch(table ? conv2d_dgrad_implicit_gemm_split_k<T, conv2d::GatherByTable, Store>
                 : conv2d_dgrad_implicit_gemm_split_k<T, conv2d::GatherTapByTap, Store>,
           {dim3(static_cast<unsigned>(classes.blocks(splits))), dim3(T::kThreads), shared},
           classes, splits, store, arrays.dy, static_cast<const float*>(packed));
    packed = next_packed;
    classes.clear();
  };
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& unplanned) {
    const conv2d::GatheredProduct product = conv2d::planned<T>(unplanned, table);
    launch_pack_class(conv, residue, product, arrays.weights, next_packed);
    next_packed += product.packed_floats();
    classes.add(product);
    if (classes.count == kClasses) launch_classes();
  });
  launch_classes();
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  with_plan(conv, [&]<class T>(conv2d::TileTag<T>, int splits) {
    auto* packed = context.workspace_as<float>();
    float* dx = arrays.dx;
    if (splits == 1) {
      compute_classes<T>(conv, arrays, StoreClass(conv, dx), splits, packed);
      return std::size_t{0};
    }
    float* const parts = packed + packed_floats<T>(conv);  // whole tiles: aligned as well
    const PartsLayout layout(conv);
    compute_classes<T>(conv, arrays, StoreParts{layout, parts}, splits, packed);
    launch(conv2d_dgrad_implicit_gemm_split_k_add_parts,
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

extern const Implementation<Conv2dDgradArrays> implicit_gemm_split_k = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
