/// @file direct.cpp
/// @brief Definition of sparse_wgrad: the pairs of the rulebook are processed one by one.
///
/// - After: cuda_naive/sparse_wgrad/scatter.cu, gather_gemm_scatter.cpp
/// - On the GPU: cuda_naive/sparse_wgrad/scatter.cu
///
/// **The idea.** In the forward pass, the weight (k, ci, co) multiplies element ci of an input row
/// and adds to element co of an output row, for each pair of tap k. Its gradient is the sum of the
/// products of these two over all pairs of the tap:
///
///     dw_k  +=   features[in]   x   dy[out]          for each pair (k, in, out)
///
///               |  |          [ . . . . ]
///          Cin  |  |     x       Cout        =   [ Cin x Cout ]     an outer product
///               |  |
///
/// A tap without pairs has the gradient zero.
///
/// **Expect.** pairs * Cin * Cout multiply-adds, as in the forward pass, but in KV sums per ci and
/// co, each as long as its tap has pairs: few sums with many terms.
/// **Costs.** All of dw_k is read and written for every pair. The shorter types are converted to
/// float and accumulated in float.
#include <algorithm>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::cpu_reference::sparse_wgrad {
namespace {

/// features [N][Cin], dy [M][Cout], pairs [P][3], dw [KV][Cin][Cout].
template <class T>
void run_as(const SparseConvProblem& conv, const SparseWgradArrays& arrays) {
  const T* features = arrays.features;
  const T* dy = arrays.dy;
  const auto* pairs = needed("pairs", arrays.pairs, conv.pairs);
  float* dw = arrays.dw;
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;

  std::fill_n(dw, conv.book.KV * Cin * Cout, 0.0f);
  for (std::int64_t i = 0; i < conv.pairs; ++i) {
    const std::int64_t k = pairs[3 * i], in = pairs[3 * i + 1], out = pairs[3 * i + 2];
    for (std::int64_t ci = 0; ci < Cin; ++ci) {
      const float x = to_float(features[in * Cin + ci]);
      float* tap = dw + (k * Cin + ci) * Cout;
      for (std::int64_t co = 0; co < Cout; ++co) tap[co] += x * to_float(dy[out * Cout + co]);
    }
  }
}

void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

std::string choice_in_words(const SparseConvProblem& conv) { return dtype_name(conv); }

}  // namespace

extern const Implementation<SparseWgradArrays> direct = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::sparse_wgrad
