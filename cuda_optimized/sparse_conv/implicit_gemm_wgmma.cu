/// @file implicit_gemm_wgmma.cu
/// @brief sparse_conv with Hopper's wgmma: gathered rows are multiplied where they landed.
///
/// - Before: implicit_gemm_mma.cu
/// - After: implicit_gemm_producers.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** The tiles, lists of taps and rings are those of implicit_gemm_mma.cu. But where a
/// warp there needs 4 ldmatrix and 8 mma.sync for each 32 bytes of depth, here one instruction of
/// four warps is enough: `wgmma` reads both factors from shared memory by itself.
///
///     cp.async, row by row            stage                 two warpgroups
///     features[nbr[tap][row]]  ->  a [128][64]  128 bytes   d [64][Cout] += a [64][64] * b
///     weights of the tap       ->  b [Cout][64]   a row     d [64][Cout] += a [64][64] * b
///
/// Hopper's copy engine (TMA) copies boxes, and rows from anywhere are no box. So threads copy, and
/// permute the 16-byte pieces of a row as the engine would: wgmma undoes it. fence.proxy.async
/// makes what threads have written visible to wgmma. Products run while the threads ask for the
/// rows of a later step.
///
/// Both factors must lie along k. Weights [Cin][Cout] do not: a kernel transposes them into the
/// workspace first. And wgmma truncates float32 to TF32, so another kernel first rounds all
/// features into the workspace. Both count.
///
/// **Expect.** As many bytes from L2 as implicit_gemm_mma, and a third of its instructions.
/// Predicted on an H200 in float16: 70 us for sweep-64-subm3, 160 us for sweep-128-subm3.
/// **Costs.** All 128 rows of a tile are multiplied if any of them needs the tap. Stages are 128
/// bytes deep: with 32 halves, half of each is zeros. Workspace for the weights and, in float32,
/// the features. Declined: precision fp32; GPUs other than compute capability 9.0; over 1024 taps.
/// **Try.** Leave out fence.proxy.async. Does a test notice, here or on a GPU?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/with_type.hpp"
#include "cuda_optimized/gemm/wgmma_tile.cuh"
#include "cuda_optimized/sparse_conv/implicit_gemm_mma.cuh"
#include "cuda_optimized/sparse_conv/warpgroup_sums.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kCopyThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More numbers than these take: threads stride.

/// 128 rows and kN channels by two warpgroups; rows of 128 bytes, 64 deep.
template <class T, int kN, int kBlocksPerSm, bool kPieces_>
struct WgmmaRows : MmaShape<T, 2 * kWarpgroupRows, kN, kN / 2, 128, 3, kBlocksPerSm, kPieces_> {
  using Base = MmaShape<T, 2 * kWarpgroupRows, kN, kN / 2, 128, 3, kBlocksPerSm, kPieces_>;
  static constexpr bool kAlongK = true;
  static constexpr unsigned kAlignment = gemm::kAtom;
  static_assert(Base::kThreads == 256 && Base::kBytesA % gemm::kAtom == 0 &&
                Base::kBytesB % gemm::kAtom == 0);
  static std::size_t shared_bytes(int taps) { return Base::shared_bytes(taps) + kAlignment; }
};

/// Block Shape::kThreads; grid: all tiles, those of the same rows side by side.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    wgmma_rows(GatheredRows<typename Shape::Number> conv, FastDivision by_chunks,
               unsigned tiles_n) {
  using T = typename Shape::Number;
  // The last rows of the order have the most taps: their tiles begin first.
  const unsigned last = gridDim.x / tiles_n - 1;
  GatheredTile<Shape> tile(conv, by_chunks, std::int64_t{last - blockIdx.x / tiles_n} * Shape::M,
                           static_cast<int>(blockIdx.x % tiles_n) * Shape::N);
  tile.prepare();
  WarpgroupSums<T, Shape::N> sums;
  const int group = static_cast<int>(threadIdx.x) / 128;
  tile.for_each_step(
      [&](int, const char* a) {
        const std::uint64_t left =
            ptx::wgmma_descriptor(a + group * kWarpgroupRows * Shape::kRowBytes);
        const std::uint64_t right = ptx::wgmma_descriptor(a + Shape::kBytesA);
        ptx::wgmma_fence();
#pragma unroll
        for (int deep = 0; deep < Shape::kRowBytes; deep += kDeep) {
          // Descriptors count in units of 16 bytes.
          const auto next = static_cast<std::uint64_t>(deep / 16);
          sums.add(left + next, right + next);
        }
        ptx::wgmma_commit_group();
      },
      // The copies of a later step have been asked for while the products run.
      [](int, const char*) { ptx::wgmma_wait_group<0>(); });
  tile.store(sums, static_cast<int>(threadIdx.x) / 32 * 16, 0);
}

/// Rounds numbers [count]. Any one-dimensional grid.
__global__ void round_numbers(std::int64_t count, const float* from, float* to) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < count; i += grid_threads) to[i] = as_factor(from[i]);
}

/// to [taps][channels][summed] from weights [taps][summed][channels]. Any one-dimensional grid.
template <class T>
__global__ void transpose_weights(std::int64_t count, int summed, int channels, const T* weights,
                                  T* to) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < count; i += grid_threads) {
    const std::int64_t row = i / summed, s = i % summed, tap = row / channels, c = row % channels;
    to[i] = as_factor(weights[(tap * summed + s) * channels + c]);
  }
}

std::int64_t weights_of(const SparseConvProblem& conv) {
  return std::int64_t{conv.book.KV} * conv.Cin * conv.Cout;
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  return gemm::why_no_wgmma();
}

/// Elements of the transposed weights in the workspace; what follows begins at 16 bytes.
std::int64_t transposed_of(const SparseConvProblem& conv) {
  return ceil_div(weights_of(conv), std::int64_t{8}) * 8;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  std::int64_t count = transposed_of(conv);
  if (conv.dtype == DType::f32) count += std::int64_t{conv.N} * conv.Cin;  // rounded features
  return static_cast<std::size_t>(count) * size_of(conv.dtype);
}

template <class Shape>
void launch_shape(const GatheredRows<typename Shape::Number>& conv) {
  launch_tiles<Shape>(wgmma_rows<Shape>, conv);
}

/// Calls body(shape).
template <class T, class Body>
void with_shape(bool pieces, int channels, const Body& body) {
  if (!pieces) {
    body(WgmmaRows<T, 64, 2, false>{});
  } else if (channels <= 64) {
    body(WgmmaRows<T, 64, 2, true>{});
  } else {
    body(WgmmaRows<T, 128, 2, true>{});
  }
}

template <class T>
void run_as(const SparseConvProblem& problem, const Arguments& arrays) {
  T* const transposed = arrays.workspace<T>();
  launch(transpose_weights<T>,
         {blocks_for(weights_of(problem), kCopyThreads, kMaxBlocks), kCopyThreads},
         weights_of(problem), problem.Cin, problem.Cout, arrays.in<T>("weights"), transposed);
  GatheredRows<T> conv = gathered_rows<T>(problem, arrays);
  conv.weights = transposed;
  if constexpr (std::is_same_v<T, float>) {
    float* const rounded = transposed + transposed_of(problem);
    const std::int64_t count = std::int64_t{problem.N} * problem.Cin;
    launch(round_numbers, {blocks_for(count, kCopyThreads, kMaxBlocks), kCopyThreads}, count,
           conv.from, rounded);
    conv.from = rounded;
  }
  with_shape<T>(consists_of_pieces(conv), conv.channels,
                [&]<class Shape>(Shape) { launch_shape<Shape>(conv); });
}

void run(const SparseConvProblem& conv, const Arguments& arrays) {
  with_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  std::string words;
  with_type(conv.dtype, [&]<class T>(T) {
    with_shape<T>(would_consist_of_pieces<T>(conv.Cin, conv.Cout), conv.Cout,
                  [&]<class Shape>(Shape) {
                    words = text(dtype_name(conv), ", ", Shape::M, " x ", Shape::N,
                                 Shape::kPieces ? ", in pieces" : "");
                  });
  });
  return words;
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_wgmma() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
