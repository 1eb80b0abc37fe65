/// @file direct.cpp
/// @brief Definition of sparse_conv: the pairs of the rulebook are processed one by one.
///
/// - After: cuda_naive/sparse_conv/scatter.cu, gather_gemm_scatter.cpp
/// - On the GPU: cuda_naive/sparse_conv/scatter.cu
///
/// **The idea.** A rulebook lists which input row contributes to which output row at which tap
/// (Graham and van der Maaten, "Submanifold Sparse Convolutional Networks", 2017). With it, a
/// sparse convolution needs no geometry: for each pair, a row of features is multiplied by the
/// matrix of its tap and added to a row of y.
///
///     pairs  k in out                   features         weights           y
///            0  2   0      row 2  [ Cin ]  x  tap 0 [ Cin x Cout ]  ->  row 0  [ Cout ]  +=
///            0  5   1      row 5  [ Cin ]  x  tap 0 [ Cin x Cout ]  ->  row 1  [ Cout ]  +=
///            1  0   0      row 0  [ Cin ]  x  tap 1 [ Cin x Cout ]  ->  row 0  [ Cout ]  +=
///
/// Rows without any pair keep their initial value: zero, or the bias.
///
/// **Expect.** pairs * Cin * Cout multiply-adds. The innermost loop runs along contiguous weights
/// and accumulators, so the compiler vectorises it.
/// **Costs.** The matrix of a tap is read again for every pair, and a row of accumulators is read
/// and written for each ci. Accumulators are float32 for all types, in a separate array, and are
/// rounded once at the end.
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::cpu_reference::sparse_conv {
namespace {

/// features [N][Cin], weights [KV][Cin][Cout], bias [Cout] or null, pairs [P][3], y [M][Cout].
template <class T>
void run_as(const SparseConvProblem& conv, const SparseConvArrays& arrays) {
  const T* features = arrays.features;
  const T* weights = arrays.weights;
  const auto* bias = arrays.bias;
  const auto* pairs = needed("pairs", arrays.pairs, conv.pairs);
  T* y = arrays.y;
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;

  std::vector<float> sums(static_cast<std::size_t>(conv.M * Cout));
  for (std::int64_t i = 0; bias != nullptr && i < conv.M * Cout; ++i)
    sums[static_cast<std::size_t>(i)] = bias[i % Cout];
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    float* row = sums.data() + out * Cout;
    for (std::int64_t ci = 0; ci < Cin; ++ci) {
      const float x = to_float(features[in * Cin + ci]);
      const T* tap = weights + (k * Cin + ci) * Cout;
      for (std::int64_t co = 0; co < Cout; ++co) row[co] += x * to_float(tap[co]);
    }
  }
  for (std::int64_t i = 0; i < conv.M * Cout; ++i)
    y[i] = rounded_to<T>(activated(conv.activation, sums[static_cast<std::size_t>(i)]));
}

void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

std::string choice_in_words(const SparseConvProblem& conv) { return dtype_name(conv); }

}  // namespace

extern const Implementation<SparseConvArrays> direct = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::sparse_conv
