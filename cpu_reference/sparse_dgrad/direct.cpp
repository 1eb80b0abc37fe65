/// @file direct.cpp
/// @brief Definition of sparse_dgrad: the pairs of the rulebook are processed one by one.
///
/// - After: cuda_naive/sparse_dgrad/scatter.cu, gather_gemm_scatter.cpp
/// - On the GPU: cuda_naive/sparse_dgrad/scatter.cu
///
/// **The idea.** In the forward pass, a pair multiplies its input row by the matrix of its tap and
/// adds it to its output row. In the backward pass, it multiplies the gradient of the output row by
/// the transposed matrix and adds it to the input row's gradient. The rulebook is the same; its two
/// columns of rows exchange roles.
///
///     forward    features[in]  ---- W_k  --->  y[out]
///     backward         dx[in]  <--- W_k^T ---  dy[out]
///
/// An input that no output reads has no pair: its gradient is zero.
///
/// **Expect.** pairs * Cin * Cout multiply-adds, as in the forward pass. The innermost loop is a
/// dot product along contiguous memory.
/// **Costs.** The dot product is one chain of dependent additions, which the compiler must not
/// reorder. Accumulators are float32 for all types, in a separate array, and are rounded once at
/// the end.
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::cpu_reference::sparse_dgrad {
namespace {

/// dy [M][Cout], weights [KV][Cin][Cout], pairs [P][3], dx [N][Cin].
template <class T>
void run_as(const SparseConvProblem& conv, const SparseDgradArrays& arrays) {
  const T* dy = arrays.dy;
  const T* weights = arrays.weights;
  const auto* pairs = needed("pairs", arrays.pairs, conv.pairs);
  T* dx = arrays.dx;
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;

  std::vector<float> sums(static_cast<std::size_t>(conv.N * Cin));
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    for (std::int64_t ci = 0; ci < Cin; ++ci) {
      float& sum = sums[static_cast<std::size_t>(in * Cin + ci)];
      const T* tap = weights + (k * Cin + ci) * Cout;
      for (std::int64_t co = 0; co < Cout; ++co)
        sum += to_float(dy[out * Cout + co]) * to_float(tap[co]);
    }
  }
  for (std::int64_t i = 0; i < conv.N * Cin; ++i)
    dx[i] = rounded_to<T>(sums[static_cast<std::size_t>(i)]);
}

void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

std::string choice_in_words(const SparseConvProblem& conv) { return dtype_name(conv); }

}  // namespace

extern const Implementation<SparseDgradArrays> direct = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::sparse_dgrad
