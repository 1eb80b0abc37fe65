/// @file direct.cu
/// @brief gemm, first on the GPU: one thread computes one element of c.
///
/// - Before: cpu_reference/gemm/triple_loop.cpp
/// - After: cuda_optimized/gemm/tiled.cu
/// - The kernel: gemm.cuh (convolutions that end in matrix products use it, too)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** The elements of c are independent, so each becomes a thread. The loops over m and
/// n turn into the thread's index; the loop over k stays as it is. For the convolutions, the kernel
/// takes matrices with any strides, and a product for each image and group.
///
///     blockIdx.x, threadIdx.x -> n    neighbouring threads, neighbouring addresses: coalesced
///     blockIdx.y, threadIdx.y -> m
///     blockIdx.z              -> image, group
///
/// **Expect.** Two loads (a, b) for each multiply-add. A warp's load of b is one cache line, its
/// load of a reads one address. Each row of a is read N / 32 times and each column of b M times,
/// mostly from the caches. In a cycle, an SM serves one warp's load and could start four warps'
/// multiply-adds: at most 1/8 of the arithmetic peak.
/// **Costs.** Nothing is declined. Transposed operands are right but slow: neighbouring threads
/// then read addresses that lie a row apart.
/// **Try.** Set kBlockN to 8 and kBlockM to 32. How many addresses does a warp's load of a touch
/// now, and how many bytes does its load of b bring?
#include "core/gemm_problem.hpp"
#include "core/rung.hpp"
#include "cuda_naive/gemm/gemm.cuh"

namespace convladder::BACKEND::cuda_naive::gemm {
namespace {

void run(const GemmProblem& gemm, const Arguments& arrays) {
  const std::int64_t N = gemm.N, K = gemm.K;
  launch_gemm({.M = gemm.M,
               .N = gemm.N,
               .K = gemm.K,
               .a = {.data = arrays.in<float>("a"), .row_stride = K, .column_stride = 1},
               .b = {.data = arrays.in<float>("b"), .row_stride = N, .column_stride = 1},
               .c = {.data = arrays.out<float>("c"), .row_stride = N, .column_stride = 1}});
}

}  // namespace

Implementation<GemmProblem> direct() { return {.run = run}; }

}  // namespace convladder::BACKEND::cuda_naive::gemm
