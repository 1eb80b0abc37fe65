/// @file implicit_gemm_producers.cu
/// @brief sparse_conv with producer warps: four warps gather, a warpgroup only multiplies.
///
/// - Before: implicit_gemm_wgmma.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
/// - The kernels: implicit_gemm_producers.cuh
///
/// **The idea.** Threads that copy have nothing to multiply, and threads that multiply have nothing
/// to look up. Four warps find taps and rows and ask for them; a warpgroup does nothing but wgmma:
///
///     producers, 32 rows a warp            stages               consumers, 128 rows
///     wait for empty[s]               +---------------+         wait for full[s]
///     rows: cp.async, 16 bytes each ->| tap 3 | tap 7 |         wgmma, tap by tap
///     weights: one bulk copy a tap  ->| 32 channels   |         all but this stage's are done:
///     arrive at full[s] when landed   +---------------+---->    arrive at empty[s - 1]
///
/// Two mbarriers a stage stand between them. A producer does not wait for its copies: the hardware
/// arrives in its place when they have landed, so all stages may be on their way at once. While
/// consumers store a tile, producers are in the next one. A stage holds as many taps as fit 128
/// bytes: four of 16 channels of 16 bits, two of 32.
///
/// **Expect.** The bytes from L2 decide. In 16 bits, for sweep-16-subm3, sweep-32-subm3,
/// sweep-64-subm3, sweep-128-subm3: 67, 119, 263 and 713 MB of rows, weights, indices and y. At 4
/// TB/s these are 17, 30, 66 and 178 us; wgmma alone would take 2, 5, 17 and 64 us on an H200.
/// **Costs.** 256 threads and 64 to 100 KB of shared memory a block. Workspace for weights, and for
/// features that are float32 or unaligned. A tap that one row needs is multiplied for all 128.
/// Declined: precision fp32; GPUs other than compute capability 9.0; over 1024 taps.
/// **Try.** Tune the table of shapes. With 128 channels a stage could hold half a tap's channels:
/// which of the numbers above would change?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_producers.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

Declined supports(const SparseConvProblem& conv) {
  return declined_by_producers(conv, conv.M, conv.Cout);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_type(conv.dtype, [&]<class T>(T) {
    return producers_workspace_bytes<T>(conv.book.KV, conv.M, conv.N, conv.Cin, conv.Cout);
  });
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M] with masks and order, y [M][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  with_type(conv.dtype, [&]<class T>(T) {
    multiply_by_producers<false>(gathered_rows<T>(conv, arrays), conv.N, arrays.workspace<char>());
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return producers_in_words(conv, conv.M, conv.Cin, conv.Cout);
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_producers() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
