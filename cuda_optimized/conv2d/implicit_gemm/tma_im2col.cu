/// @file tma_im2col.cu
/// @brief conv2d on Hopper: im2col-mode TMA loads the swizzled windows; the products are those of
/// mma.cu.
///
/// - Before: mma.cu
/// - After: wgmma.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** TODO
/// **Expect.** TODO
/// **Costs.** TODO
/// **Try.** TODO
#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/tma_windows.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/half_types.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// The sizes of a kernel: the tile of a block (pixels x filters) and of a warp, stages, and blocks
/// an SM. The cycles of a step, of all warps of an SM, are measured on an H200.
template <int kM, int kN, int kWarpM, int kWarpN, int kStages_, int kBlocks_, int kCycles>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_, kStepCycles = kCycles;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kBytesA = kM * kHalfStep * 2;                ///< of a stage
  static constexpr int kStageBytes = kBytesA + kN * kHalfStep * 2;  ///< windows, then filters
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kSwizzleBytes;
};
using Small = Shape<64, 64, 32, 32, 3, 4, 260>;
using Narrow = Shape<128, 64, 64, 32, 3, 3, 480>;
using Medium = Shape<128, 128, 64, 64, 3, 2, 900>;
using Large = Shape<128, 256, 64, 64, 3, 1, 1750>;

/// The fragments of a warp for 16 steps of k.
template <class S>
struct Fragments {
  std::uint32_t a[S::WarpM / 16][4], b[S::WarpN / 8][2];

  /// Steps k ... k + 15 of a stage. This lane's first row of the windows is at stage[a_at], of the
  /// filters at stage[b_at]. The swizzle is an exclusive or, and so is the way to other pieces of a
  /// row; rows that are a multiple of 8 away are permuted alike.
  template <class T>
  __device__ void load(const T* stage, int a_at, int b_at, int k) {
#pragma unroll
    for (int i = 0; i < S::WarpM / 16; ++i) {
      ptx::ldmatrix_x4(a[i], stage + (a_at ^ k) + 16 * i * kHalfStep);
    }
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; j += 2) {
      std::uint32_t two[4];  // fragments, of 8 filters each
      ptx::ldmatrix_x4(two, stage + (b_at ^ k) + 8 * j * kHalfStep);
#pragma unroll
      for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = two[e];
    }
  }
};

/// y [N][P][Q][K]. Grid (tiles), tiles of filters fastest. Block (S::kThreads).
template <class S, class T>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    conv2d_implicit_gemm_tma_im2col(const __grid_constant__ TmaWindows windows,
                                    PixelRows<T> result) {
  __shared__ std::uint64_t full[S::kStages];  // the stage's windows and filters have arrived
  char* stages = dynamic_shared<char>();
  // The swizzle is a function of the address.
  stages += (kSwizzleBytes - ptx::shared_address(stages) % kSwizzleBytes) % kSwizzleBytes;
  const auto stage_at = [&](int stage) {
    return reinterpret_cast<const T*>(stages + stage * S::kStageBytes);
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) ptx::mbarrier_init(&full[i], 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  const WindowTile tile = tile_of_block<S::M, S::N>(windows);
  WindowStep next;
  int left = windows.steps;  // that are not loaded yet
  const auto load = [&](int stage) {
    if (left-- <= 0 || threadIdx.x != 0) return;
    char* const to = stages + stage * S::kStageBytes;
    // Whole boxes count, also the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(&full[stage], S::kStageBytes);
    ptx::tma_load_im2col(to, &windows.x, &full[stage], tile.word + next.word, tile.w, tile.h,
                         tile.n, static_cast<unsigned short>(next.s * windows.dilation.w),
                         static_cast<unsigned short>(next.r * windows.dilation.h));
    ptx::tma_load<3>(to + S::kBytesA, &windows.weights, &full[stage],
                     {next.word, next.r * windows.S + next.s, tile.n0});
    next.advance(windows);
  };

  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  const int a_from = gemm::swizzled_half(warp_m + lane % 16, lane / 16 * 8);
  const int b_from = S::kBytesA / 2 + gemm::swizzled_half(warp_n + lane % 8 + lane / 16 * 8,
                                                          lane / 8 % 2 * 8);
  Fragments<S> fragments[2];  // of this k16, and of the next one
  float sums[S::WarpM / 16][S::WarpN / 8][4] = {};

  for (int stage = 0; stage < S::kStages - 1; ++stage) load(stage);
  int read = 0, write = S::kStages - 1;  // stages
  unsigned parity = 0;                   // of the phase that stage `read` is in
  ptx::mbarrier_wait(&full[0], parity);
  fragments[0].load(stage_at(0), a_from, b_from, 0);
#pragma unroll 1
  for (int step = 0; step < windows.steps; ++step) {
#pragma unroll
    for (int k = 0; k < kHalfStep; k += 16) {
      const int now = k / 16 % 2;
      if (k + 16 == kHalfStep) {
        if (++read == S::kStages) {
          read = 0;
          parity ^= 1;
        }
        if (step + 1 < windows.steps) ptx::mbarrier_wait(&full[read], parity);
        __syncthreads();  // separates the loads of this stage from the boxes that overwrite it
      }
      // After the last step these are of a stage without data: no product contains them.
      fragments[1 - now].load(stage_at(read), a_from, b_from, (k + 16) % kHalfStep);
      if (k == 0) load(write);  // into the stage of the step before
#pragma unroll
      for (int i = 0; i < S::WarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < S::WarpN / 8; ++j) {
          gemm::mma_m16n8k16<T>(sums[i][j], fragments[now].a[i], fragments[now].b[j]);
        }
      }
    }
    write = write + 1 == S::kStages ? 0 : write + 1;
  }

#pragma unroll
  for (int j = 0; j < S::WarpN / 8; j += 4) {
    const int n = tile.n0 + warp_n + 8 * j;
    const auto bias = result.bias_of(n);
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
