/// @file residue_classes.cu
/// @brief Residue classes: one implicit GEMM for each class of pixels modulo the stride.
///
/// - Before: cuda_naive/conv2d_dgrad/gather.cu
/// - After: cp_async.cu, winograd/4x4.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the gradient is a convolution of dy with the reversed filter, and an
/// implicit GEMM computes it. With stride 2 an even pixel meets other taps than an odd one, but all
/// even pixels meet the *same* taps. So the pixels of dx are divided into classes by the remainders
/// of h and w modulo the stride. Each class is a convolution with stride 1 and with its own subset
/// of the taps:
///
///     stride 2, 3 taps, pad 1           dx   a b a b a      class a (h = 0, 2, ...): tap 1
///                                            c d c d c      class d (h = 1, 3, ...): taps 0 and 2
///     p = (h + pad - r) / stride             a b a b a
///                                            c d c d c      a: 1 tap, b and c: 2, d: 4 of the 9
///
/// There are no products with the zeros of a stride: the classes of a 3 x 3 filter have 9 taps
/// together, for a quarter of the pixels each. A class without taps (1 x 1 with stride 2) is zero.
///
/// **Expect.** The work of the forward pass, whatever the stride. A thread executes 1280
/// instructions for 1024 multiply-adds: on an H200 52 of 65 TFLOP/s at best, and about 40 with four
/// fifths of the issue slots used. That is 5.9 ms for B10 (237 GFLOP) and, with 1.5 waves of
/// blocks, 200 us for B4.
/// @expect loads_per_output.weights 9 * 64 / 32 = 18, small tiles of 32 pixels
/// @expect loads_per_output.dy 64 * 46 * 46 / (16 * 16) / 16 = 33.0625, for all 16 channels
/// @expect barriers_per_block 2 * 9 * 64 / 8 = 144, two a step of 8
/// @expect launches 1, no columns
/// **Costs.** With stride s, the stores of a warp are s elements apart. Not supported: other
/// layouts than NCHW, other types than float32, 2^31 pixels, and filters so large that nearly all
/// products would be with the padding of dy.
/// **Try.** Compute B8 (1 x 1, stride 2) without classes, as a stride 1 convolution of a dy with
/// zeros between its elements. How many of the products are with zeros?
#include "core/conv2d_gradients.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using Large = gemm::ThreadTile<128, 128, 16>;
using Half = gemm::ThreadTile<64, 128, 16>;
using Small = gemm::ThreadTile<32, 32, 8, 4, 4>;

/// dy [N][K][P][Q], weights [K][C/groups][R][S], dx [N][C][H][W]; `residue` and `product` are the
/// class. Grid m_tiles * n_tiles * groups, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 512 / T::kThreads)
    conv2d_dgrad_implicit_gemm_residue_classes(Conv2dProblem conv, ResidueClass residue,
                                               conv2d::GatheredProduct product, StoreClass store,
                                               const float* dy, const float* weights) {
  constexpr int kFloatsA = T::kBlockK * T::kBlockM, kFloatsB = T::kBlockK * T::kBlockN;
  constexpr int kFloatsStore = T::kThreads * T::kThreadN;
  constexpr int kFloats = kFloatsA + kFloatsB > kFloatsStore ? kFloatsA + kFloatsB : kFloatsStore;
  __shared__ float4 shared[kFloats / 4];
  float* const a_tile = &shared[0].x;       // [k][m]
  float* const b_tile = a_tile + kFloatsA;  // [k][n]

  const int thread = static_cast<int>(threadIdx.x);
  const auto m_tiles = static_cast<unsigned>(product.m_tiles);
  const auto n_tiles = static_cast<unsigned>(product.n_tiles);
  const conv2d::BlockPlace place{static_cast<int>(blockIdx.x % m_tiles) * T::kBlockM,
                                 static_cast<int>(blockIdx.x / m_tiles % n_tiles) * T::kBlockN,
                                 static_cast<int>(blockIdx.x / m_tiles / n_tiles), 0};
  static_assert(T::kThreads % T::kBlockN == 0, "a thread gathers for one pixel");
  static_assert(T::kThreads % T::kBlockM == 0, "and loads the weights of one channel");
  constexpr int kApartA = T::kThreads / T::kBlockM, kApartB = T::kThreads / T::kBlockN;
  constexpr int kLoadsA = T::kBlockK / kApartA, kLoadsB = T::kBlockK / kApartB;
  const int k_a = thread / T::kBlockM, k_b = thread / T::kBlockN;  // of its first elements
  const int m = place.m + thread % T::kBlockM, pixel = place.n + thread % T::kBlockN;
  const bool exists = pixel < product.pixels();
  const int image = exists ? product.by_image.quotient(pixel) : 0;
  const int in_image = exists ? product.by_image.remainder(pixel, image) : 0;
  const int row = product.by_row.quotient(in_image);
  const int p0 = exists ? row + product.first.h : -0x40000000;  // a row without any tap
  const int q0 = product.by_row.remainder(in_image, row) + product.first.w;

  // The offsets of the thread's first elements of a step, but for the tap.
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  const std::int64_t filter = std::int64_t{product.filters} * conv.R * conv.S;  // floats
  const int first_k = place.group * product.channels;
  std::int64_t w_at = (std::int64_t{first_k} + k_a) * filter + std::int64_t{m} * conv.R * conv.S;
  std::int64_t dy_at =
      (std::int64_t{image} * conv.K + first_k + k_b) * plane + std::int64_t{p0} * conv.Q + q0;

  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  for (int k0 = 0; k0 < product.channels; k0 += T::kBlockK) {
    const int w_rows = m < product.filters ? product.channels - k0 - k_a : 0;
    for (int r = 0; r < product.R; ++r) {
      for (int s = 0; s < product.S; ++s) {
        const int down = r * product.tap.h, across = s * product.tap.w;
        const int p = p0 + down, q = q0 + across;
        const bool inside = p >= 0 && p < conv.P && q >= 0 && q < conv.Q;
        const int dy_rows = inside ? product.channels - k0 - k_b : 0;
        const std::int64_t dy_tap = dy_at + std::int64_t{down} * conv.Q + across;
        const std::int64_t w_tap = w_at + (residue.h.first_tap + r * residue.h.tap_step) * conv.S +
                                   residue.w.first_tap + s * residue.w.tap_step;
        // All loads, then all stores: a store waits for its load, and would stall the loads after
        // it.
        float a_loaded[kLoadsA], b_loaded[kLoadsB];
#pragma unroll
        for (int e = 0; e < kLoadsA; ++e) {
          a_loaded[e] = e * kApartA < w_rows ? weights[w_tap + e * kApartA * filter] : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < kLoadsB; ++e) {
          b_loaded[e] = e * kApartB < dy_rows ? dy[dy_tap + e * kApartB * plane] : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < kLoadsA; ++e) a_tile[thread + e * T::kThreads] = a_loaded[e];
#pragma unroll
        for (int e = 0; e < kLoadsB; ++e) b_tile[thread + e * T::kThreads] = b_loaded[e];
        __syncthreads();  // separates these stores from the loads below
        tile.template multiply<T::kBlockM, T::kBlockN>(a_tile, b_tile, sums);
        __syncthreads();  // separates these loads from the next step's stores, and the last one's
                          // from those of store()
      }
    }
    w_at += T::kBlockK * filter;
    dy_at += T::kBlockK * plane;
  }
  store.store(product, place, tile, sums, a_tile);
}

/// Computes one class with these tiles.
template <class T>
void launch_with(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays,
                 const ResidueClass& residue, const conv2d::WindowProduct& unplanned) {
  const conv2d::GatheredProduct product = conv2d::planned<T>(unplanned, false);
  const std::int64_t blocks = std::int64_t{product.m_tiles} * product.n_tiles * product.groups;
  launch(conv2d_dgrad_implicit_gemm_residue_classes<T>,
         {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads)}, conv, residue, product,
         StoreClass(conv, arrays.dx), arrays.dy, arrays.weights);
}

conv2d::TileShape shape_of(const conv2d::WindowProduct& product) {
  return conv2d::shape_for(product.filters, product.pixels(), product.groups);
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::WindowProduct& product) {
    switch (shape_of(product)) {
      case conv2d::TileShape::large: return launch_with<Large>(conv, arrays, residue, product);
      case conv2d::TileShape::half: return launch_with<Half>(conv, arrays, residue, product);
      case conv2d::TileShape::small: return launch_with<Small>(conv, arrays, residue, product);
    }
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  std::string first;
  bool all_alike = true;
  for_each_class(conv, [&](const ResidueClass&, const conv2d::WindowProduct& product) {
    const std::string shape = in_words(shape_of(product));
    if (first.empty()) first = shape;
    all_alike = all_alike && shape == first;
  });
  return text(first, all_alike ? "" : " and smaller", ", ", classes_in_words(conv, 1),
              pixels_in_fours(conv) ? ", pixels in fours" : "");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_residue_classes = {
    .supports = why_no_product,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
