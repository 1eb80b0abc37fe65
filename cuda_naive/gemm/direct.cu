/// @file direct.cu
/// @brief Naive CUDA GEMM: one thread per element of c.
///
/// - Before: cpu_reference/gemm/triple_loop.cpp
/// - After: cuda_optimized/gemm/tiled.cu
/// - For convolutions: direct_batched.cu, the same for any strides, images and groups
///
/// **The idea.** The elements of c are independent, so each is computed by one thread. The loops
/// over m and n become the thread's index; the loop over k is unchanged.
///
///     blockIdx.x, threadIdx.x -> n    neighbouring threads, neighbouring addresses: coalesced
///     blockIdx.y, threadIdx.y -> m
///
/// **Expect.** Two loads (a, b) per multiply-add. A warp's load of b touches one cache line, and
/// its load of a one address. Each row of a is read N / 32 times and each column of b M times,
/// mostly from the caches. An SM issues one warp-wide load per cycle but four warp-wide
/// multiply-adds: at most 1/8 of the arithmetic peak is reached.
/// @expect loads_per_output.a 64, one for each multiply-add
/// @expect loads_per_output.b 64, another one
/// @expect sectors_per_request.a.load 1, a single address for the warp
/// @expect sectors_per_request.b.load 32 * 4 / 32 = 4, a cache line
/// **Costs.** All problems are supported.
/// **Try.** Set kBlockN to 8 and kBlockM to 32. How many addresses does a warp's load of a touch
/// now, and how many bytes does its load of b read?
#include "core/cuda/launch.hpp"
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/type_names.hpp"

namespace convladder::BACKEND::cuda_naive::gemm {
namespace {

constexpr int kBlockN = 32;  ///< Threads along n: one warp, 128 bytes of a row of c.
constexpr int kBlockM = 8;   ///< Threads along m.
/// Blocks of 256 threads per SM: allows up to 48 registers per thread, so that loads overlap.
[[maybe_unused]] constexpr int kBlocks = 5;

/// a [M][K], b [K][N], bias [N] or null, c [M][N]: one thread per element of c. Launch with grid
/// (ceil(N/32), <= ceil(M/8)), block (32, 8).
template <class T>
__global__ void __launch_bounds__(kBlockN* kBlockM, kBlocks)
    gemm_direct(GemmProblem gemm, const T* a, const T* b, const float* bias, ProductOf<T>* c) {
  const std::int64_t M = gemm.M, N = gemm.N, K = gemm.K;
  const std::int64_t n = std::int64_t{blockIdx.x} * kBlockN + threadIdx.x;
  if (n >= N) return;
  // grid.y is limited to 65535: with more rows, a thread computes several elements of its column.
  for (std::int64_t m = std::int64_t{blockIdx.y} * kBlockM + threadIdx.y; m < M;
       m += std::int64_t{gridDim.y} * kBlockM) {
    float sum = 0.0f;
    for (int k = 0; k < gemm.K; ++k) sum += to_float(a[m * K + k]) * to_float(b[k * N + n]);
    c[m * N + n] = rounded_to<ProductOf<T>>(gemm.finished(sum, bias ? bias[n] : 0.0f));
  }
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  const dim3 grid(blocks_for(gemm.N, kBlockN), blocks_for(gemm.M, kBlockM, kMaxGridYZ));
  with_any_float_type(gemm.dtype, [&]<class T>(T) {
    launch(gemm_direct<T>, {grid, dim3(kBlockN, kBlockM)}, gemm, arrays.a.as<const T>(),
           arrays.b.as<const T>(), arrays.bias.as<const float>(), arrays.c.as<ProductOf<T>>());
  });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return dtype_name(gemm.dtype, gemm.precision);
}

}  // namespace

extern const Implementation<GemmArrays> direct = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_naive::gemm
