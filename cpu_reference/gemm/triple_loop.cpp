/// @file triple_loop.cpp
/// @brief Definition of gemm: three nested loops.
///
/// - After: cuda_naive/gemm/direct.cu, eigen.cpp
/// - On the GPU: cuda_naive/gemm/direct.cu
///
/// **The idea.** This is the definition: an element of c is the sum of the products of a row of a
/// and a column of b.
///
///                     b  | n              for m  for n          which element
///                        v                  for k               which product of it
///     a  m -> - - - -    c[m,n]               c[m,n] += a[m,k] * b[k,n]
///
/// **Expect.** About one multiply-add per nanosecond, and less once b exceeds the caches: the sum
/// is a chain of dependent additions, and the loop over k reads a column of b with a stride of N
/// floats.
/// **Costs.** All problems are supported. 16-bit and 8-bit elements are multiplied and added in
/// float; only the sum is rounded, once, after bias and activation.
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/type_names.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

/// a [M][K], b [K][N], bias [N] or null, c [M][N].
template <class T>
void run_as(const GemmProblem& gemm, const GemmArrays& arrays) {
  const T* a = arrays.a;
  const T* b = arrays.b;
  const float* bias = arrays.bias;
  ProductOf<T>* c = arrays.c;
  const std::int64_t M = gemm.M, N = gemm.N, K = gemm.K;

  for (std::int64_t m = 0; m < M; ++m) {
    for (std::int64_t n = 0; n < N; ++n) {
      float sum = 0.0f;
      for (std::int64_t k = 0; k < K; ++k) sum += to_float(a[m * K + k]) * to_float(b[k * N + n]);
      c[m * N + n] = rounded_to<ProductOf<T>>(gemm.finished(sum, bias ? bias[n] : 0.0f));
    }
  }
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  with_any_float_type(gemm.dtype, [&]<class T>(T) { run_as<T>(gemm, arrays); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return dtype_name(gemm.dtype, gemm.precision);
}

}  // namespace

extern const Implementation<GemmArrays> triple_loop = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::gemm
