/// @file cp_async.cu
/// @brief `cp.async` pipeline: packed weights, three stages in flight.
///
/// - Before: residue_classes.cu
/// - After: mma.cu, split_k.cu, few_channels.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** A residue class is a convolution of dy with stride 1, so the loop of the forward
/// pass computes it: cuda_optimized/conv2d/implicit_gemm/cp_async.cu explains it. What differs is
/// the packing of the weights, and the addresses of the results:
///
///     forward    packed [r, s, c][k]      from weights [k][c][r][s]     y, all pixels
///     here       packed [r, s, k][c]      the taps of the class only    dx, every stride-th pixel
///
/// One grid computes up to four classes, all that stride 2 has: the grid of a single class may be
/// too small, and its last wave would leave SMs idle.
///
/// **Expect.** The forward pass's times for the same sizes, as for B4 and B10. B8 (1 x 1, stride 2)
/// writes 103 MB of dx, three quarters of it zeros, and every second float at a time: each sector
/// is written twice.
/// @expect lanes.dy.load 0, copies alone
/// @expect loads_per_output.dy 64 * 46 * 46 / (16 * 16) / 16 = 33.0625, 46 of 48 taps inside
/// @expect bytes_per_lane.workspace.async 16, packed weights
/// @expect barriers_per_block 9 * 64 / 8 + 1 = 73, one a step of 8
/// **Costs.** A workspace of the size of the weights, rounded up to whole tiles. With few channels
/// most rows of a tile are empty: B3 fills 3 of 32. Not supported: what residue_classes.cu does not
/// support, and a dy of some 2^29 elements per image.
/// **Try.** Launch a grid for each class instead, each on a stream of its own. Which is faster, and
/// why?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/packed_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

/// dy [N][K][P][Q], packed: for each class [groups][k_rows][padded_m], one after the other.
/// Grid m_tiles * classes.n_tiles * groups * classes.count, block T::kThreads.
/// @tparam Gather GatherTapByTap or GatherByTable
template <class T, template <class> class Gather>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_dgrad_implicit_gemm_cp_async(ClassesOfGrid classes, StoreClass store, const float* dy,
                                        const float* packed) {
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
  place.group = take(classes.of[0].groups);
  const int index = static_cast<int>(block);
  const conv2d::GatheredProduct& product = classes.of[index];
  if (place.n >= product.n_tiles * T::kBlockN) return;  // uniform for the block
  for (int i = 0; i < index; ++i) packed += classes.of[i].packed_floats();

  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  if (product.steps > 0) {  // or the class has no taps
    if constexpr (Gather<T>::kTable) {
      Gather<T>::fill(product, table);
      __syncthreads();  // separates these stores from all loads of the table
    }
    Gather<T> gather(product, place, dy, 0, table);
    constexpr int kFoursM = T::kBlockM / 4, kFoursA = T::kFloatsA / 4;  // of a row, of a tile
    static_assert(T::kThreads % kFoursM == 0);
    const float* weights =
        packed +
        (std::int64_t{place.group} * product.k_rows + thread / kFoursM) * product.padded_m +
        place.m + thread % kFoursM * 4;  // of the tile that is copied next

    int next = 0;  // the step that is copied next
    const auto copy_next = [&](int stage) {
      if (next < product.steps) {
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
    for (int step = 0; step < product.steps; ++step) {
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

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product(conv)) return reason;
  return conv2d::why_no_gather(largest_class(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return conv2d::with_tile(largest_class(conv), [&](auto tag) {
    using T = typename decltype(tag)::Tile;
    const bool table = all_take_table<T>(conv);
    std::int64_t floats = 0;
    for_each_class(conv, [&](const ResidueClass&, const conv2d::WindowProduct& product) {
      floats += conv2d::planned<T>(product, table).packed_floats();
    });
    return static_cast<std::size_t>(floats) * sizeof(float);
  });
}

/// Packs the weights of all classes, and computes them, kClasses in a grid.
template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const bool table = all_take_table<T>(conv);
  const StoreClass store(conv, arrays.dx);
  auto* packed = context.workspace_as<float>();
  auto* next_packed = packed;  // where the next class's weights go
  ClassesOfGrid classes{};
  const auto launch_classes = [&] {
    if (classes.count == 0) return;
    const std::size_t shared = T::kFloats * sizeof(float) + classes.table_bytes();
    launch(table ? conv2d_dgrad_implicit_gemm_cp_async<T, conv2d::GatherByTable>
                 : conv2d_dgrad_implicit_gemm_cp_async<T, conv2d::GatherTapByTap>,
           {dim3(static_cast<unsigned>(classes.blocks())), dim3(T::kThreads), shared}, classes,
           store, arrays.dy, static_cast<const float*>(packed));
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
  conv2d::with_tile(largest_class(conv), [&](auto tag) {
    run_with<typename decltype(tag)::Tile>(conv, arrays, context);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv2d::with_tile(largest_class(conv), [&]<class T>(conv2d::TileTag<T> tag) {
    return text(in_words(tag, all_take_table<T>(conv)), ", ", classes_in_words(conv, kClasses),
                pixels_in_fours(conv) ? ", pixels in fours" : "");
  });
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_cp_async = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
