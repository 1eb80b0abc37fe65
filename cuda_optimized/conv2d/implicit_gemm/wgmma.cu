/// @file wgmma.cu
/// @brief `wgmma`: asynchronous instructions read windows and filters from shared memory.
///
/// - Before: tma_im2col.cu
/// - After: warp_specialized.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** `mma.sync` takes its operands from registers, so that a warp loads fragments for
/// each k16. `wgmma` is an instruction of a warpgroup (four warps) that reads 64 pixels x 16
/// channels and 16 channels x N filters from shared memory itself. A descriptor gives the address
/// of an operand, its swizzle, and the distance between groups of 8 rows. In NHWC, k runs fastest
/// in both operands, so that one kind of descriptor describes both:
///
///     windows   [M][64 of k]   64 rows for each warpgroup   the next k16 begins 32 bytes further
///     filters   [N][64 of k]   all rows for all of them     likewise
///
/// `wgmma` runs asynchronously. The four of a stage are committed as a group, and the warpgroup
/// waits for the group before it: the tensor cores have work while the threads meet at the barrier
/// and load the next stage.
///
/// **Expect.** A stage of a tile of 128 x 128 takes the tensor cores 512 cycles, and its 32 KB the
/// L2 cache 700 to 900. Two or three blocks share an SM, so that one multiplies while another one
/// stores. With 64 filters (B4, B9) the L2 cache limits as before. Predicted on an H200 in bf16:
///
///     problem    B4    B5    B6    B7    B9    B10
///     us         24    26    16    24    170   350
///
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect loads_per_output.shared 0, there are no fragments
/// @expect requests_per_block.shared.async 2 * 9 = 18, as before
/// @expect barriers_per_block 1 + 9 = 10, one a step
/// **Costs.** Not supported: as before, and all but compute capability 9.0.
/// **Try.** Replace `wgmma_wait_group<1>` by `<0>`. For which problems is it slower, and why?
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/tma_windows.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// The sizes of a kernel: the tile of a block (pixels x filters), of which each warpgroup has 64
/// pixels, stages, and blocks per SM; and cycles of an SM for a step of a tile and for its ends,
/// measured on an H200.
template <int kM, int kN, int kStages_, int kBlocks_, int kStep, int kEnds>
struct Shape {
  static constexpr int M = kM, N = kN;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kStepCycles = kStep, kEndCycles = kEnds;
  static constexpr int kThreads = kM / 64 * 128;
  static constexpr int kBytesA = kM * kHalfStep * 2;                ///< of a stage
  static constexpr int kStageBytes = kBytesA + kN * kHalfStep * 2;  ///< windows, then filters
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kSwizzleBytes;
};
using Narrow = Shape<128, 64, 3, 3, 530, 1600>;  ///< For at most 64 filters, or few tiles.
using Medium = Shape<128, 128, 3, 2, 710, 3100>;

/// `wgmma` m64nNk16 of this type: d += a * b, where rows of both operands lie along k.
template <int kN, class T>
__device__ void multiply(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN>(d, a, b, true);
  }
}

/// y [N][P][Q][K]. Grid (tiles), tiles of filters fastest. Block (S::kThreads).
template <class S, class T>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    conv2d_implicit_gemm_wgmma(const __grid_constant__ TmaWindows windows, PixelRows<T> result) {
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
  float sums[S::N / 2] = {};

#pragma unroll 1
  for (int step = 0; step < S::kStages - 1; ++step) start_copies(step);
  unsigned parity = 0;  // of the phase that `load_stage` is in
#pragma unroll 1
  for (int step = 0; step < windows.steps; ++step) {
    ptx::mbarrier_wait(&full[load_stage], parity);
    const char* const stage = stages + load_stage * S::kStageBytes;
    const std::uint64_t a_at = ptx::wgmma_descriptor(stage + warp / 4 * 64 * kHalfStep * 2);
    const std::uint64_t b_at = ptx::wgmma_descriptor(stage + S::kBytesA);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kHalfStep; k += 16) {
      multiply<S::N, T>(sums, a_at + k / 8, b_at + k / 8);  // descriptors count in 16 bytes
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    // Now all warpgroups have read the stage of the previous step, and it may be overwritten.
    __syncthreads();
    start_copies(step + S::kStages - 1);
    if (++load_stage == S::kStages) {
      load_stage = 0;
      parity ^= 1;
    }
  }
  ptx::wgmma_wait_group<0>();

  // A warp has 16 pixels, and a lane has pairs of filters of two of them, as of mma.sync.
#pragma unroll
  for (int j = 0; j < S::N / 8; j += 4) {
    const int n = tile.n0 + 8 * j;
    float2 bias[4];
    result.load_bias(n, bias);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      result.store(tile.m0 + warp * 16 + half * 8 + lane / 4, n, bias, [&](int i) {
        return float2{sums[4 * (j + i) + 2 * half], sums[4 * (j + i) + 2 * half + 1]};
      });
    }
  }
}

/// Calls body(S) for the shape of the problem's tiles.
template <class Body>
auto with_shape(const Conv2dProblem& conv, const Body& body) {
  return with_fastest_shape<Narrow, Medium>(conv, body);
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_no_tma_windows(conv)) return why;
  return why_not("sm_90a");
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  with_half_type(conv.dtype, [&]<class T>(T) {
    with_shape(conv, [&]<class S>(S) {
      launch_tma_windows<S, T>(conv2d_implicit_gemm_wgmma<S, T>, conv, arrays);
    });
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_shape(conv, [&]<class S>(S) { return tma_windows_in_words<S>(conv); });
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_wgmma = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
