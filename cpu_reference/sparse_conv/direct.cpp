/// @file direct.cpp
/// @brief sparse_conv, rung 1: the rulebook read aloud, pair after pair.
///
/// - After: gather_gemm_scatter.cpp (the pairs of a tap as one matrix product)
/// - On the GPU: cuda_naive/sparse_conv/scatter.cu
///
/// **The idea.** A rulebook says which input row meets which output row at which tap (Graham and
/// van der Maaten, "Submanifold Sparse Convolutional Networks", 2017). With it there, a sparse
/// convolution has no geometry left: for each pair, multiply a row of features by the matrix of its
/// tap and add the product to a row of y.
///
///     pairs  k in out                   features         weights           y
///            0  2   0      row 2  [ Cin ]  x  tap 0 [ Cin x Cout ]  ->  row 0  [ Cout ]  +=
///            0  5   1      row 5  [ Cin ]  x  tap 0 [ Cin x Cout ]  ->  row 1  [ Cout ]  +=
///            1  0   0      row 0  [ Cin ]  x  tap 1 [ Cin x Cout ]  ->  row 0  [ Cout ]  +=
///
/// Rows without any pair stay what they were made: zero.
///
/// **Expect.** pairs * Cin * Cout multiply-adds. The innermost loop runs along memory for both
/// weights and y, so the compiler turns it into vector instructions.
/// **Costs.** The matrix of a tap is read again for every pair, and y is read and written once for
/// each ci. Declines other types than float32.
#include <algorithm>

#include "core/rung.hpp"

namespace convladder::cpu_reference::sparse_conv {
namespace {

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// features [N][Cin], weights [KV][Cin][Cout], pairs [P][3], y [M][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  const float* features = arrays.in<float>("features");
  const float* weights = arrays.in<float>("weights");
  const auto* pairs = arrays.in<std::int32_t>("pairs");
  float* y = arrays.out<float>("y");

  std::fill_n(y, conv.M * std::int64_t{conv.Cout}, 0.0f);
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    for (int ci = 0; ci < conv.Cin; ++ci) {
      for (int co = 0; co < conv.Cout; ++co) {
        y[out * conv.Cout + co] +=
            features[in * conv.Cin + ci] * weights[(k * conv.Cin + ci) * conv.Cout + co];
      }
    }
  }
}

}  // namespace

Implementation<SparseConvProblem> direct() { return {.supports = supports, .run = run}; }

}  // namespace convladder::cpu_reference::sparse_conv
