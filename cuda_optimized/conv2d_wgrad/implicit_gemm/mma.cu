/// @file mma.cu
/// @brief Half-precision `mma.sync`: `ldmatrix.trans` transposes both operands on the way to
/// registers.
///
/// - Before: cp_async.cu
/// - After: warp_specialized.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** `mma.sync` takes 16 steps of k at a time, two in each register. Here k runs over
/// pixels, and in NHWC the channels of a pixel are contiguous, in x and in dy: both operands are
/// MN-major. Both are staged in this order, by copies of 16 bytes whose zero-fill is the padding,
/// and `ldmatrix.trans` transposes 8 x 8 elements while it loads them:
///
///     pixel 0  [ k0 k1 ... k7 ]                     lane 0: k0 of pixels 0 and 1
///     pixel 1  [ k0 k1 ... k7 ]  ldmatrix.trans ->  lane 1: k0 of pixels 2 and 3
///       ...                                         lane 4: k1 of pixels 0 and 1
///
/// It reads 16 bytes of each of eight pixels at once. These pieces are permuted by exclusive or
/// with the pixel's index, so that they are in different banks. db is one more mma: dy^T times a
/// column of ones. As in the previous rung, blocks get even shares of all steps, and a second
/// kernel adds the parts of each tile in a fixed order.
///
/// **Expect.** For 64 pixels a block of 128 x 256 copies 48 KB and reads 128 KB of fragments: 1400
/// cycles of shared memory beside 1540 of `mma.sync`, so 400 TFLOP/s. On an H200: B4, B6 30 us, B7
/// 35 us, B9 190 us, B10 600 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect bytes_per_lane.x.async 16
/// @expect loads_per_output.dy 3 * 64 * 256 / 8 / 36928 = 0.1664, three tiles, in vectors
/// @expect loads_per_output.x 46 * 46 * 64 / 8 / 36928 = 0.4584, of 48 taps an axis, 46 inside
/// @expect excess.shared.load 0, of ldmatrix
/// @expect launches 2
/// **Costs.** 152 KB of shared memory per block. Channels or filters of a group that are no
/// multiple of 8 are copied one by one, in tiles of 64 x 64. Not supported: other types, NCHW,
/// compute capability below 8.0, 2^31 steps.
/// **Try.** Leave out the exclusive or. How many wavefronts does a request take then?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/mma_half_copies.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

/// The fragments of 16 pixels: rows of dy^T, which are filters, and columns of the windows.
template <MmaShape S, class T>
struct HalfFactors {
  std::uint32_t a[S.warp_m / 16][4], b[S.warp_n / 8][2];

  /// The fragment of filters m to m + 15. `tile` has the filters of a pixel contiguous.
  __device__ static void load_rows(const T* tile, int m, int pixel, std::uint32_t (&rows)[4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ptx::ldmatrix_x4_trans(
        rows, tile + swizzled_place<S.M>(pixel + lane / 16 * 8 + lane % 8, m + lane / 8 % 2 * 8));
  }
  /// All fragments of a warp: filters from m on, columns from n on, of a stage's tiles.
  __device__ void load(const T* stage, int m, int n, int pixel) {
#pragma unroll
    for (int i = 0; i < S.warp_m / 16; ++i) load_rows(stage, m + 16 * i, pixel, a[i]);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const T* const tile = stage + S.M * S.step;
#pragma unroll
    for (int j = 0; j < S.warp_n / 8; j += 2) {
      std::uint32_t two[4];  // fragments, of 8 columns each
      ptx::ldmatrix_x4_trans(
          two, tile + swizzled_place<S.N>(pixel + lane % 16, n + 8 * j + lane / 16 * 8));
#pragma unroll
      for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = two[e];
    }
  }
};

/// x [N][H][W][C], dy [N][P][Q][K], parts [blocks + tiles - 1][S.part()].
/// Grid (product.blocks), block (HalfBlock<Shape>::kThreads).
/// @tparam kAligned channels and filters of a group in eights, x and dy at multiples of 16 bytes
template <class Shape, class T, bool kAligned>
__global__ void __launch_bounds__(HalfBlock<Shape>::kThreads, Shape::kShape.blocks)
    conv2d_wgrad_implicit_gemm_mma(MmaProduct product, const T* x, const T* dy, float* parts) {
  using B = HalfBlock<Shape>;
  constexpr MmaShape S = Shape::kShape;
  constexpr int kStages = Shape::kStages;
  T* const stages = dynamic_shared<T>();
  auto* const pixels = reinterpret_cast<HalfPixel*>(stages + kStages * B::kNumbers);
  const auto stage_of = [=](int step) { return stages + step % kStages * B::kNumbers; };
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int warp_m = warp / B::kWarpsN * S.warp_m, warp_n = warp % B::kWarpsN * S.warp_n;
  const int bias_m = warp % B::kWarpsN * B::kBias * 16;  // within the warp's rows
  constexpr std::uint32_t kOne = std::is_same_v<T, Half> ? 0x3c003c00 : 0x3f803f80;
  constexpr std::uint32_t kOnes[2] = {kOne, kOne};

  const int last = product.begin_of(static_cast<int>(blockIdx.x) + 1);
  int next = product.begin_of(static_cast<int>(blockIdx.x));
  while (next < last) {
    // This block's share of a tile's sums.
    const int tile_number = product.by_steps.quotient(next);
    const int first_step = product.by_steps.remainder(next, tile_number);
    const int steps = min(last - next, product.steps - first_step);
    next += steps;
    const DwTile tile = tile_at<S>(product, tile_number);
    const int begin = first_step * S.step, end = min(begin + steps * S.step, product.pixels);
    // db = dy^T times ones, in the tiles of the first columns: each warp adds up kBias of the
    // fragments that it has in common with the warps beside it.
    const bool with_bias = tile.n == 0 && bias_m < S.warp_m;

    GradientCopies<typename B::CopiesA, T, kAligned> gradients(product, tile, dy, begin, end);
    const WindowCopies<typename B::CopiesB, T, kAligned> windows(product, tile);
    // A pixel for each thread, which is kAhead steps; two such groups are known at a time.
    const auto decode = [&](int group) {
      const HalfPixel pixel = half_pixel_at(product, x, begin + group * B::kThreads + thread, end);
      pixels[group % 2 * B::kThreads + thread] = pixel;
    };
    const auto copy = [&](int step) {
      gradients.template copy<S.step, S.M>(stage_of(step));
      windows.template copy<S.N>(pixels + step % (2 * B::kAhead) * S.step,
                                 stage_of(step) + B::kNumbersA);
      ptx::cp_async_commit_group();
    };
    const auto wait_for_next = [&] {
      ptx::cp_async_wait_group<kStages - 2>();
      // Makes all threads' copies of the next step visible to all; separates the loads of this step
      // from the copies that will overwrite its stage, and decoded pixels from their use.
      __syncthreads();
    };

#pragma unroll
    for (int group = 0; group * B::kAhead < kStages; ++group) decode(group);
    // Separates these pixels from their use; and the last tile's loads from the first copies.
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < kStages - 1; ++step) copy(step);

    float sums[S.warp_m / 16][S.warp_n / 8][4] = {}, bias[B::kBias][4] = {};
    HalfFactors<S, T> factors[2];
    wait_for_next();
    factors[0].load(stage_of(0), warp_m, warp_n, 0);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      if ((step + kStages) % B::kAhead == 0) decode((step + kStages) / B::kAhead);
#pragma unroll
      for (int k = 0; k < S.step; k += kMmaPixels) {
        auto& now = factors[k / kMmaPixels % 2];
        auto& then = factors[1 - k / kMmaPixels % 2];
        std::uint32_t rows[B::kBias][4];  // loaded again: which of now.a they are differs by warp
        if (with_bias) {
#pragma unroll
          for (int i = 0; i < B::kBias; ++i) {
            now.load_rows(stage_of(step), warp_m + bias_m + 16 * i, k, rows[i]);
          }
        }
        // The next fragments are in flight while these are multiplied. After the last step they are
        // not multiplied.
        if (k + kMmaPixels < S.step) {
          then.load(stage_of(step), warp_m, warp_n, k + kMmaPixels);
        } else {
          wait_for_next();
          then.load(stage_of(step + 1), warp_m, warp_n, 0);
        }
        // After the last step, zeros are copied: without a branch, the compiler interleaves copies
        // and mma.
        if (k == 0) copy(step + kStages - 1);
#pragma unroll
        for (int i = 0; i < S.warp_m / 16; ++i) {
#pragma unroll
          for (int j = 0; j < S.warp_n / 8; ++j) mma_m16n8k16<T>(sums[i][j], now.a[i], now.b[j]);
        }
        if (with_bias) {
#pragma unroll
          for (int i = 0; i < B::kBias; ++i) mma_m16n8k16<T>(bias[i], rows[i], kOnes);
        }
      }
    }
    ptx::cp_async_wait_group<0>();  // zeros must not land on the next tile's copies

    // Numbers of blocks and tiles only grow along the steps: their sum tells the parts apart.
    float* const part = parts + (std::int64_t{blockIdx.x} + tile_number) * std::int64_t{S.part()};
#pragma unroll
    for (int i = 0; i < S.warp_m / 8; ++i) {
#pragma unroll
      for (int j = 0; j < S.warp_n / 8; ++j) {
        const float* const two = sums[i / 2][j] + i % 2 * 2;
        *reinterpret_cast<float2*>(part + (warp_m + 8 * i + lane / 4) * S.N + warp_n + 8 * j +
                                   lane % 4 * 2) = {two[0], two[1]};
      }
    }
    if (with_bias && lane % 4 == 0) {  // all columns of these sums are alike
#pragma unroll
      for (int i = 0; i < 2 * B::kBias; ++i) {
        part[S.M * S.N + warp_m + bias_m + 8 * i + lane / 4] = bias[i / 2][i % 2 * 2];
      }
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f16 && conv.dtype != DType::bf16) {
    return text("multiplies numbers of 16 bits, and the problem asks for ",
                dtype_name(conv.dtype, conv.precision));
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (const Declined why = why_not("sm_80")) return why;
  return too_many_steps(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  // Arrays that are not aligned to 16 bytes are computed in small tiles.
  return with_half_tile(conv, [&]<class Shape>(Shape) {
    return static_cast<std::size_t>(
               std::max(mma_part_floats<Shape>(conv), mma_part_floats<SmallHalves>(conv))) *
           sizeof(float);
  });
}

template <class Shape, class T, bool kAligned>
void launch_with(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, float* parts) {
  const T *x = arrays.x, *dy = arrays.dy;
  const MmaProduct product = product_with(conv, Shape::kShape);
  launch(conv2d_wgrad_implicit_gemm_mma<Shape, T, kAligned>,
         {static_cast<unsigned>(product.blocks), HalfBlock<Shape>::kThreads,
          HalfBlock<Shape>::kSharedBytes},
         product, x, dy, parts);
  launch_add_mma_parts<Shape>(product, parts, arrays.dw, arrays.db);
}

/// x [N][H][W][C], dy [N][P][Q][K], dw [K][R][S][C/groups], db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  float* const parts = context.workspace_as<float>();
  with_half_type(conv.dtype, [&]<class T>(T) {
    const T *x = arrays.x, *dy = arrays.dy;
    if (!channels_in_eights(conv) || !begin_at_16_bytes(x, dy)) {
      return launch_with<SmallHalves, T, false>(conv, arrays, parts);
    }
    with_half_tile(conv,
                   [&]<class Shape>(Shape) { launch_with<Shape, T, true>(conv, arrays, parts); });
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_half_tile(conv, [&]<class Shape>(Shape) {
    const MmaProduct product = product_with(conv, Shape::kShape);
    return text(Shape::kShape.M, " x ", Shape::kShape.N,
                channels_in_eights(conv) ? ", in eights" : "",
                product.blocks == 0                   ? ", nothing to do"
                : has_many_parts(product)             ? ", many parts"
                : product.blocks == product.tiles     ? ", one part"
                : product.blocks % product.tiles == 0 ? ", several parts"
                                                      : ", parts of several tiles",
                product.rest != 0 ? ", uneven" : "");
  });
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> implicit_gemm_mma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
