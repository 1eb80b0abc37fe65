/// @file mma.cu
/// @brief Half-precision tensor cores (`mma.sync`): implicit GEMM in NHWC, on every GPU since
/// Ampere.
///
/// - Before: cp_async.cu
/// - After: tma_im2col.cu, mma_tf32.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** The pipeline of cp_async.cu stays, and `mma.sync` does the
/// arithmetic: one instruction of a warp multiplies 16 x 16 elements by 16 x 8 and adds the product
/// to FP32 accumulators. In NHWC the channels of a pixel are adjacent. With k = (r, s, c), eight
/// elements along k are one `cp.async` of 16 bytes, which fills with zeros in the padding. What
/// depends on the pixel alone is computed once: the offset of its window, and a bit for each row
/// and column of taps. Along k, each thread walks from tap to tap without a division. `ldmatrix`
/// loads the fragments: the same vector of eight rows at a time. Rows have 128 bytes, so vector v
/// of row i is stored at v ^ (i % 8), and the eight lie in different banks:
///
///     row 0   0 1 2 3 4 5 6 7
///     row 1   1 0 3 2 5 4 7 6        `ldmatrix` of vector 2:  column 2 of row 0,
///     row 2   2 3 0 1 6 7 4 5                                 3 of row 1, 0 of row 2, ...
///
/// **Expect.** On an H200, `mma.sync` reaches at most 62 % of the rate of `wgmma`, 610 TFLOP/s.
/// With 512 filters (B10), tiles of 128 x 256 keep it busy for 70 to 75 % of the time: 540 us. With
/// 64 filters, a stage of 24 KB serves 0.5 M multiply-adds, and the L2 cache's 5.8 TB/s are the
/// limit: 30 us for B4, 240 us for B9. Filters of 1 x 1 have one to four stages a tile, and wait
/// for their first loads and last stores: 40 us for B5, 30 us for B8.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect loads_per_output.x 64 * 46 * 46 / (16 * 16) / 64 / 8 = 1.0332, in vectors
/// @expect bytes_per_lane.x.async 16, eight channels
/// @expect excess.shared.load 0, of ldmatrix
/// @expect bytes_per_lane.y.store 8, four filters
/// @expect sectors_per_request.y.store 32 * 8 / 32 = 8, whole ones
/// @expect launches 1, nothing is packed
/// **Costs.** Workspace for the parts of split sums. Channels of a group that are no multiple of 8,
/// or arrays that are not aligned to 16 bytes, are copied element by element. Not supported: FP32,
/// NCHW, tile maps but row_major, compute capability below 8.0.
/// **Try.** Set kHalfDepth to 32: how many stages fit, and how many barriers does a block pass?
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Loads the fragments of a warp's filters, n ..., elements k ... k + 15.
template <int kCount, class T>
__device__ void load_filters(const T* tile, int n, int k, std::uint32_t (&fragments)[kCount][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T* const from =
      tile + n * kHalfDepth + place_along_k(lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * kVector);
#pragma unroll
  for (int j = 0; j < kCount; j += 2) {
    std::uint32_t two[4];  // fragments j and j + 1
    ptx::ldmatrix_x4(two, from + 8 * j * kHalfDepth);
#pragma unroll
    for (int e = 0; e < 4; ++e) fragments[j + e / 2][e % 2] = two[e];
  }
}

/// y [N][P][Q][K], or with splits their sums [splits][N][P][Q][K] in `parts`, without bias and
/// activation. Grid (tiles, splits), tiles of filters fastest. Block (S::kThreads).
/// @tparam kVectors copies 16 bytes at a time, see WindowVectors; else element by element
template <class S, class T, bool kVectors>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    conv2d_implicit_gemm_mma(GatheredGemm product, HalfTiles tiles, std::int64_t part_size,
                             const T* x, const T* weights, const float* bias, T* y, float* parts) {
  const HalfBlock<S> block(product, tiles);
  CopyWindows<kVectors, S, T> copy_windows(product, block, x);
  const int row_length = static_cast<int>(product.weights_f);
  const T* const filters =
      weights + block.group * product.weights_group + std::int64_t{block.n0} * row_length;
  const int filter_count = product.filters - block.n0;

  T* const stages = dynamic_shared<T>();
  int copy_stage = 0, load_stage = 0;
  const auto after = [](int stage) {
    return stage == (S::kStages - 1) * S::kStage ? 0 : stage + S::kStage;
  };
  const auto start_copies = [&](int step) {
    T* const tile = stages + copy_stage;
    if (step < block.stages()) {
      T* const to = tile + S::kWindows;
      if constexpr (kVectors) {
        constexpr int kRows = copy_windows.kRows;
#pragma unroll
        for (int j = 0; j < S::N; j += kRows) {
          const int f = copy_windows.row() + j;
          const bool inside = f < filter_count && copy_windows.left();
          ptx::cp_async<16>(to + place_along_k(f, copy_windows.element()),
                            filters + (inside ? f * row_length + copy_windows.next() : 0),
                            inside ? 16 : 0);
        }
      } else {
        for (int i = static_cast<int>(threadIdx.x); i < S::kFilters; i += S::kThreads) {
          const int f = i / kHalfDepth, k = copy_windows.next() + i % kHalfDepth;
          const bool inside = f < filter_count && k < block.end;
          to[place_along_k(f, i % kHalfDepth)] =
              inside ? filters[std::int64_t{f} * row_length + k] : T{};
        }
      }
      copy_windows(tile);
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
    copy_stage = after(copy_stage);
  };
  const auto wait_for_stage = [] {
    ptx::cp_async_wait_group<S::kStages - 2>();  // this thread's copies of the next stage
    // Makes the copies of all threads visible to all threads, and separates the loads of the
    // previous stage from the copies that overwrite it.
    __syncthreads();
  };

  std::uint32_t a[2][S::WarpM / 16][4], b[2][S::WarpN / 8][2];
  const auto load = [&](int k) {
    load_windows(stages + load_stage, block.warp_m, k, a[k / 16 % 2]);
    load_filters(stages + load_stage + S::kWindows, block.warp_n, k, b[k / 16 % 2]);
  };
  float sums[S::WarpM / 16][S::WarpN / 8][4] = {};
#pragma unroll 1
  for (int step = 0; step < S::kStages - 1; ++step) start_copies(step);
  wait_for_stage();
  load(0);
#pragma unroll 1
  for (int step = 0; step < block.stages(); ++step) {
#pragma unroll
    for (int k = 0; k < kHalfDepth; k += 16) {
      // The next fragments are loaded while these are multiplied, also across the barrier. After
      // the last stage, the fragments that are loaded are not used.
      if (k + 16 < kHalfDepth) {
        load(k + 16);
      } else {
        wait_for_stage();
        load_stage = after(load_stage);
        load(0);
      }
#pragma unroll
      for (int i = 0; i < S::WarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < S::WarpN / 8; ++j) {
          mma_m16n8k16<T>(sums[i][j], a[k / 16 % 2][i], b[k / 16 % 2][j]);
        }
      }
      if (k == 0) start_copies(step + S::kStages - 1);
    }
  }

  auto* const staged = reinterpret_cast<float*>(stages);
  const auto store = [&](auto* out) {
    const auto pixel = [&](int row) { return std::int64_t{block.m0 + row} * product.out_channels; };
    store_sums(product, block, sums, staged, bias, pixel, out);
  };
  if (parts != nullptr) {
    store(parts + blockIdx.y * part_size);
  } else {
    store(y);
  }
}

GatheredGemm product_of(const Conv2dProblem& conv) {
  const int channels = conv.C / conv.groups, filters = conv.K / conv.groups;
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  GatheredGemm product = gathered_gemm(forward_product(conv), {.group = filters * taps * channels,
                                                               .first = 0,
                                                               .r = std::int64_t{conv.S} * channels,
                                                               .s = channels,
                                                               .f = taps * channels});
  product.activation = conv.activation;
  return product;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.map != TileMap::row_major) {
    return text("the map ", name_of(conv.map), ": this kernel knows only row_major");
  }
  return why_no_mma_halves(conv, product_of(conv).pixels(),
                           std::int64_t{conv.R} * conv.S * (conv.C / conv.groups));
}

HalfPlan plan_of(const GatheredGemm& product) {
  return plan_halves(product, 1, in_vectors(product));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const GatheredGemm product = product_of(conv);
  return part_bytes(plan_of(product), product.pixels() * product.out_channels);
}

/// x [N][H][W][C], weights [K][R][S][C/groups], bias [K] or null, y [N][P][Q][K].
template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const T *x = arrays.x, *weights = arrays.weights;
  const float* bias = arrays.bias;
  T* y = arrays.y;
  GatheredGemm product = product_of(conv);
  const std::int64_t outputs = product.pixels() * conv.K;
  const HalfPlan plan = plan_of(product);
  float* const parts = plan.splits > 1 ? context.workspace_as<float>() : nullptr;
  if (parts != nullptr) product.activation = Activation::none;  // of the whole sum, below
  const auto launch_with = [&]<class S, bool kVectors>(S, std::bool_constant<kVectors>) {
    const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), S::M) *
                               ceil_div(product.filters, S::N) * product.groups;
    launch(conv2d_implicit_gemm_mma<S, T, kVectors>,
           {dim3(blocks_for(tiles, 1), static_cast<unsigned>(plan.splits)), S::kThreads,
            S::kSharedBytes},
           product, HalfTiles(product.filters, S::N, product.groups), outputs, x, weights,
           parts != nullptr ? nullptr : bias, y, parts);
  };
  if (in_vectors(product) && begin_at_16_bytes(x, weights)) {
    with_shape(plan, [&](auto shape) { launch_with(shape, std::true_type{}); });
  } else {
    launch_with(SmallHalves{}, std::false_type{});
  }
  if (parts != nullptr)
    launch_sum_half_parts(parts, plan.splits, outputs, bias, conv.K, conv.activation, y);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  with_half_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays, context); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const GatheredGemm product = product_of(conv);
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              in_words(product, plan_of(product), in_vectors(product)));
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_mma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
