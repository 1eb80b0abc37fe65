/// @file mma.cu
/// @brief Half-precision tensor cores (`mma.sync`) in NHWC: `ldmatrix.trans` transposes the
/// weights, which are not repacked.
///
/// - Before: cp_async.cu
/// - After: wgmma_tf32.cu, mma_tf32.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** Pixel h of dx reads pixel p of dy through tap r if p * stride = h + pad - r *
/// dilation. All pixels with the same h % stride and w % stride form a residue class. They meet the
/// same taps, so a class is a forward pass over dy with stride 1, with a dense sub-filter whose
/// taps walk backwards. The loop is that of conv2d's rung, and one grid computes up to four
/// classes.
///
/// What differs is operand B. Its k runs over taps and channels of dy, its columns over channels of
/// dx, and in the weights [K][R][S][C] the columns are adjacent. So the tile has rows along the
/// columns, and `ldmatrix.trans` transposes matrices of 8 x 8 on the way to the registers, which
/// hold two elements along k. No kernel repacks the weights:
///
///     weights   k      c0 c1 c2 ...       register of lane l:  elements k = 2 (l % 4) and
///               k + 1  c0 c1 c2 ...                            2 (l % 4) + 1 of column l / 4
///
/// **Expect.** As many multiply-adds as the forward pass, at its speed: 560 us for B10, 250 us for
/// B9 and 32 us for B4 on an H200. For B8 (1 x 1, stride 2) three of four classes have no taps, and
/// their tiles only write zeros: 50 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect loads_per_output.dy 64 * 46 * 46 / (16 * 16) / 64 / 8 = 1.0332, in vectors
/// @expect bytes_per_lane.dy.async 16, eight channels
/// @expect excess.shared.load 0, of ldmatrix
/// @expect bytes_per_lane.dx.store 8, four channels
/// @expect launches 1, nothing is packed
/// **Costs.** Workspace for the parts of split sums. Channels of a group, of dy or of dx, that are
/// no multiple of 8, or arrays that are not aligned to 16 bytes, are copied element by element. Not
/// supported: FP32, NCHW, compute capability below 8.0.
/// **Try.** Give the fifth to ninth class of stride 3 a grid of their own first. Which class is the
/// largest of its grid?
#include <type_traits>

#include "core/conv2d_gradients.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/mma_halves_plan.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/mma_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::kHalfDepth;
using conv2d::kVector;
using conv2d::SmallHalves;
using conv2d::TapWalk;

/// Where element (k, n) of a tile of weights lies: rows of kLength channels of dx.
template <int kLength>
HOST_DEVICE int weight_place(int k, int n) {
  return k * kLength + ((n / kVector ^ k % 8) * kVector | n % kVector);
}

/// Loads the fragments of a warp's weights: columns n ..., rows k ... k + 15.
template <int kLength, int kCount, class T>
__device__ void load_weights(const T* tile, int n, int k, std::uint32_t (&fragments)[kCount][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < kCount; j += 2) {
    std::uint32_t two[4];  // fragments j and j + 1
    ptx::ldmatrix_x4_trans(
        two, tile + weight_place<kLength>(k + lane % 16, n + 8 * j + lane / 16 * kVector));
#pragma unroll
    for (int e = 0; e < 4; ++e) fragments[j + e / 2][e % 2] = two[e];
  }
}

/// dx [N][H][W][C], or with splits the sums [splits][N][H][W][C] in `parts`. dy [N][P][Q][K],
/// weights [K][R][S][C/groups]. Grid (tiles of the largest class, splits, classes), tiles of
/// channels fastest. Block (S::kThreads).
/// @tparam kWindowVectors, kWeightVectors copies of dy and of the weights have 16 bytes, see
/// WindowVectors; else a single element
template <class S, class T, bool kWindowVectors, bool kWeightVectors>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    conv2d_dgrad_implicit_gemm_mma(const __grid_constant__ HalfClasses classes,
                                   conv2d::HalfTiles tiles, std::int64_t part_size, const T* dy,
                                   const T* weights, T* dx, float* parts) {
  const GatheredGemm& product = classes.of[blockIdx.z];
  const conv2d::HalfBlock<S> block(product, tiles);
  if (block.rows <= 0) return;  // past the last pixel of a small class
  conv2d::CopyWindows<kWindowVectors, S, T> copy_windows(product, block, dy);
  // A thread copies vectors of kRows adjacent rows of weights, or all elements of one row: rows of
  // one tap.
  constexpr int kPieces = S::N / kVector, kRows = kHalfDepth * kPieces / S::kThreads;
  static_assert(kVector % kRows == 0);
  const int thread = static_cast<int>(threadIdx.x), piece = thread % kPieces * kVector;
  const int first_row = kWeightVectors ? thread / kPieces * kRows : thread % kHalfDepth;
  int next_row = block.begin + first_row;
  TapWalk at(product, next_row < block.end ? next_row : 0);
  weights += block.group * product.weights_group + product.weights_first + block.n0;
  const int column_count = product.filters - block.n0;
  T* const stages = dynamic_shared<T>();
  int copy_stage = 0, load_stage = 0;
  const auto after = [](int stage) {
    return stage == (S::kStages - 1) * S::kStage ? 0 : stage + S::kStage;
  };
  const auto start_copies = [&](int step) {
    T* const tile = stages + copy_stage;
    if (step < block.stages()) {
      T* const to = tile + S::kWindows;
      const int columns = next_row < block.end ? column_count : 0;
      const T* from = columns > 0 ? weights + at.r * product.weights_r + at.s * product.weights_s +
                                        std::int64_t{at.c} * classes.weights_channel
                                  : weights;
      if constexpr (kWeightVectors) {
        const bool inside = piece < columns;
        from += inside ? piece : 0;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          ptx::cp_async<16>(to + weight_place<S::N>(first_row + i, piece), from, inside ? 16 : 0);
          from += inside ? classes.weights_channel : 0;
        }
      } else {
        for (int n = thread / kHalfDepth; n < S::N; n += S::kThreads / kHalfDepth) {
          to[weight_place<S::N>(first_row, n)] = n < columns ? from[n] : T{};
        }
      }
      next_row += kHalfDepth;
      at.advance(product);
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
    conv2d::load_windows(stages + load_stage, block.warp_m, k, a[k / 16 % 2]);
    load_weights<S::N>(stages + load_stage + S::kWindows, block.warp_n, k, b[k / 16 % 2]);
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
          conv2d::mma_m16n8k16<T>(sums[i][j], a[k / 16 % 2][i], b[k / 16 % 2][j]);
        }
      }
      if (k == 0) start_copies(step + S::kStages - 1);
    }
  }

  auto* const staged = reinterpret_cast<float*>(stages);
  const auto store = [&](auto* out) {
    const auto pixel = [&](int row) { return pixel_at(product, block.m0 + row).out; };
    store_sums(product, block, sums, staged, nullptr, pixel, out);
  };
  if (parts != nullptr) {
    store(parts + blockIdx.y * part_size);
  } else {
    store(dx);
  }
}

Declined supports(const Conv2dProblem& conv) {
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  const std::int64_t pixels = std::int64_t{conv.N} * conv.H * conv.W;
  if (const Declined why = conv2d::why_no_mma_halves(conv, pixels, taps * (conv.K / conv.groups))) {
    return why;
  }
  if (taps * (conv.C / conv.groups) > conv2d::kMaxDepth) return "filters of 2^31 weights and more";
  return {};
}

std::int64_t outputs_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.N} * conv.H * conv.W * conv.C;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return conv2d::part_bytes(half_plan_of(conv), outputs_of(conv));
}

/// dy [N][P][Q][K], weights [K][R][S][C/groups], dx [N][H][W][C].
template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const T *dy = arrays.dy, *weights = arrays.weights;
  T* dx = arrays.dx;
  const HalfPlan plan = half_plan_of(conv);
  float* const parts = plan.splits > 1 ? context.workspace_as<float>() : nullptr;
  HalfClasses classes{{}, 0, conv.R * conv.S * (conv.C / conv.groups)};
  const auto aligned = [](const T* array) {
    return reinterpret_cast<std::uintptr_t>(array) % 16 == 0;
  };
  bool windows = aligned(dy);
  const bool rows = aligned(weights) && rows_in_vectors(conv);
  const auto launch_with = [&]<class S, bool kWindowVectors, bool kWeightVectors>(
                               S, std::bool_constant<kWindowVectors>,
                               std::bool_constant<kWeightVectors>) {
    const int filters = classes.of[0].filters;
    const std::int64_t tiles =
        ceil_div<std::int64_t>(classes.most_pixels(), S::M) * ceil_div(filters, S::N) * conv.groups;
    launch(conv2d_dgrad_implicit_gemm_mma<S, T, kWindowVectors, kWeightVectors>,
           {dim3(blocks_for(tiles, 1), static_cast<unsigned>(plan.splits),
                 static_cast<unsigned>(classes.count)),
            S::kThreads, S::kSharedBytes},
           classes, conv2d::HalfTiles(filters, S::N, conv.groups), outputs_of(conv), dy, weights,
           dx, parts);
  };
  const auto launch_classes = [&] {
    constexpr std::true_type vectors;
    constexpr std::false_type elements;
    if (classes.count == 0) return;
    if (windows && rows) {
      conv2d::with_shape(plan, [&](auto shape) { launch_with(shape, vectors, vectors); });
    } else if (windows) {
      launch_with(SmallHalves{}, vectors, elements);
    } else {
      launch_with(SmallHalves{}, elements, elements);
    }
    classes.count = 0;
  };
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& window) {
    const GatheredGemm product = half_product_of(conv, residue, window);
    windows = windows && conv2d::in_vectors(product);
    classes.of[classes.count++] = product;
    if (classes.count == kHalfClasses) launch_classes();
  });
  launch_classes();
  if (parts != nullptr) {
    conv2d::launch_sum_half_parts(parts, plan.splits, outputs_of(conv), nullptr, conv.C,
                                  Activation::none, dx);
  }
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  with_half_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays, context); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const ResidueClass residue(conv, 0, 0);
  const GatheredGemm product = half_product_of(conv, residue, residue.product(conv, 0, 0));
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              in_words(product, half_plan_of(conv), conv2d::in_vectors(product)),
              rows_in_vectors(conv) ? ", rows of weights as well, " : ", ",
              classes_in_words(conv, kHalfClasses));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_mma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
