/// @file tma_im2col.cu
/// @brief TMA in im2col mode: one thread issues the copies of windows; the products are those of
/// mma.cu.
///
/// - Before: mma.cu
/// - After: wgmma.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** In mma.cu, all threads compute addresses, test for padding and copy 16 bytes at a
/// time. A tensor map in im2col mode describes x and a bounding box, the pixels at which windows
/// begin. One instruction of one thread loads 64 channels of M pixels, which follow one another
/// along w, h and n within the box, shifted by an offset, the tap:
///
///     | o o o o   |   o: where windows begin,     one load:   o-> o-> o->   64 channels each, a
///     | o o o o   |   `stride` pixels apart                   o-> o-> o->   row of 128 bytes
///     + - - - - - +                                           zeros in the padding
///
/// Tiled TMA loads the same channels of the filters. Both boxes arrive with the swizzle that
/// `ldmatrix` expects, and their bytes complete a phase of the stage's mbarrier, `full`.
///
/// **Expect.** The threads only load fragments and multiply: 80 % of the rate of `mma.sync` with
/// long sums (B10). With 64 filters the L2 cache limits (B4, B9), with one step the stores (B5).
/// Without split-K, B7 has too few tiles, and is slower than mma.cu. Predicted on an H200 in bf16:
///
///     problem    B4    B5    B6    B7    B9    B10
///     us         26    30    24    32    210   480
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests_per_block.shared.async 2 * 9 = 18, a tap: a box of windows, one of filters
/// @expect lanes_per_request.shared.async 1, one thread issues a box
/// @expect lanes.global.load 0
/// **Costs.** Not supported: channels in other than multiples of 8, strides over 8, windows over
/// 128 pixels outside of the image, taps over 255 apart, groups that do not fill tiles, split-K,
/// and GPUs before sm_90. Arrays not aligned to 16 bytes have a simple kernel.
/// **Try.** Let the second warp issue the box of filters. How many arrivals does `full` expect?
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/tma_windows.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// The sizes of a kernel: the tile of a block (pixels x filters) and of a warp, stages, and blocks
/// per SM; and cycles of an SM for a step of a tile and for its ends, measured on an H200.
template <int kM, int kN, int kWarpM, int kWarpN, int kStages_, int kBlocks_, int kStep, int kEnds>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kStepCycles = kStep, kEndCycles = kEnds;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kBytesA = kM * kHalfStep * 2;                ///< of a stage
  static constexpr int kStageBytes = kBytesA + kN * kHalfStep * 2;  ///< windows, then filters
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kSwizzleBytes;
};
using Small = Shape<64, 64, 32, 32, 3, 4, 360, 1100>;      ///< For few pixels.
using Narrow = Shape<128, 64, 64, 32, 3, 3, 600, 2000>;    ///< For at most 64 filters.
using Medium = Shape<128, 128, 64, 32, 3, 2, 1125, 3600>;  ///< For few steps.
using Large = Shape<128, 256, 64, 64, 3, 1, 1900, 10000>;  ///< For many steps.

/// Loads the fragments of a warp's windows for 16 steps of k. Rows that are a multiple of 8 away
/// are permuted alike, so fragments differ by constants alone. @param from this lane's first row
template <int kCount, class T>
__device__ void load_windows(const T* from, std::uint32_t (&fragments)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) ptx::ldmatrix_x4(fragments[i], from + 16 * i * kHalfStep);
}

/// The same of a warp's filters.
template <int kCount, class T>
__device__ void load_filters(const T* from, std::uint32_t (&fragments)[kCount][2]) {
#pragma unroll
  for (int j = 0; j < kCount; j += 2) {
    std::uint32_t two[4];  // fragments j and j + 1
    ptx::ldmatrix_x4(two, from + 8 * j * kHalfStep);
#pragma unroll
    for (int e = 0; e < 4; ++e) fragments[j + e / 2][e % 2] = two[e];
  }
}

/// y [N][P][Q][K]. Grid (tiles), tiles of filters fastest. Block (S::kThreads).
template <class S, class T>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    conv2d_implicit_gemm_tma_im2col(const __grid_constant__ TmaWindows windows,
                                    PixelRows<T> result) {
  __shared__ std::uint64_t full[S::kStages];  // the stage's windows and filters have arrived
  char* stages = dynamic_shared<char>();
  // The swizzle is a function of the address.
  stages += (kSwizzleBytes - ptx::shared_address(stages) % kSwizzleBytes) % kSwizzleBytes;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) ptx::mbarrier_init(&full[i], 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  const WindowTile tile = tile_of_block<S::M, S::N>(windows);
  const Conv2dProblem& conv = windows.conv;
  WindowStep next;
  int copy_stage = 0, load_stage = 0;
  const auto start_copies = [&](int step) {
    if (step >= windows.steps || threadIdx.x != 0) return;
    char* const to = stages + copy_stage * S::kStageBytes;
    // Whole boxes count, also the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(&full[copy_stage], S::kStageBytes);
    ptx::tma_load_im2col(to, &windows.x, &full[copy_stage], tile.word + next.word, tile.w, tile.h,
                         tile.n, static_cast<unsigned short>(next.s * conv.dilation.w),
                         static_cast<unsigned short>(next.r * conv.dilation.h));
    ptx::tma_load<3>(to + S::kBytesA, &windows.weights, &full[copy_stage],
                     {next.word, next.r * conv.S + next.s, tile.n0});
    next.advance(windows);
    copy_stage = copy_stage + 1 == S::kStages ? 0 : copy_stage + 1;
  };

  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  // Where this lane's rows begin. The swizzle is an exclusive or, and so is the way along a row.
  const int a_from = gemm::swizzled_half(warp_m + lane % 16, lane / 16 * 8);
  const int b_from =
      S::kBytesA / 2 + gemm::swizzled_half(warp_n + lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
  std::uint32_t a[2][S::WarpM / 16][4], b[2][S::WarpN / 8][2];
  const auto load = [&](int k) {
    const T* const stage = reinterpret_cast<const T*>(stages + load_stage * S::kStageBytes);
    load_windows(stage + (a_from ^ k), a[k / 16 % 2]);
    load_filters(stage + (b_from ^ k), b[k / 16 % 2]);
  };
  float sums[S::WarpM / 16][S::WarpN / 8][4] = {};
#pragma unroll 1
  for (int step = 0; step < S::kStages - 1; ++step) start_copies(step);
  unsigned parity = 0;  // of the phase that `load_stage` is in
  ptx::mbarrier_wait(&full[0], parity);
  load(0);
#pragma unroll 1
  for (int step = 0; step < windows.steps; ++step) {
#pragma unroll
    for (int k = 0; k < kHalfStep; k += 16) {
      // The next fragments are loaded while these are multiplied, also across the barrier. After
      // the last stage, the fragments that are loaded are not used.
      if (k + 16 < kHalfStep) {
        load(k + 16);
      } else {
        if (++load_stage == S::kStages) {
          load_stage = 0;
          parity ^= 1;
        }
        if (step + 1 < windows.steps) ptx::mbarrier_wait(&full[load_stage], parity);
        __syncthreads();  // separates the loads of this stage from the boxes that overwrite it
        load(0);
      }
#pragma unroll
      for (int i = 0; i < S::WarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < S::WarpN / 8; ++j) {
          gemm::mma_m16n8k16<T>(sums[i][j], a[k / 16 % 2][i], b[k / 16 % 2][j]);
        }
      }
      if (k == 0) start_copies(step + S::kStages - 1);
    }
  }

#pragma unroll
  for (int j = 0; j < S::WarpN / 8; j += 4) {
    const int n = tile.n0 + warp_n + 8 * j;
    float2 bias[4];
    result.load_bias(n, bias);
#pragma unroll
    for (int row = 0; row < S::WarpM / 8; ++row) {
      result.store(tile.m0 + warp_m + 8 * row + lane / 4, n, bias, [&](int i) {
        const float* const of = &sums[row / 2][j + i][row % 2 * 2];
        return float2{of[0], of[1]};
      });
    }
  }
}

/// Calls body(S) for the shape of the problem's tiles.
template <class Body>
auto with_shape(const Conv2dProblem& conv, const Body& body) {
  return with_fastest_shape<Small, Narrow, Medium, Large>(conv, body);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_tma_windows(conv)) return why;
  return why_not("sm_90");
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  with_half_type(conv.dtype, [&]<class T>(T) {
    with_shape(conv, [&]<class S>(S) {
      launch_tma_windows<S, T>(conv2d_implicit_gemm_tma_im2col<S, T>, conv, arrays);
    });
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_shape(conv, [&]<class S>(S) { return tma_windows_in_words<S>(conv); });
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_tma_im2col = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
