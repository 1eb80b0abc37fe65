/// @file implicit_gemm_producers.cu
/// @brief sparse_dgrad with producer warps and wgmma: the kernels of the forward pass, with the
/// weights as they lie.
///
/// - Before: implicit_gemm_mma.cu
/// - The same maths: cpu_reference/sparse_dgrad/gather_gemm_scatter.cpp
/// - The kernels: cuda_optimized/sparse_conv/implicit_gemm_producers.cuh
///
/// **The idea.** This gradient gathers as the forward pass does: rows of dy, by the table that
/// leads back, in the order of its masks. So it takes the same two kernels, with another template
/// argument about the weights. wgmma wants both factors along k, and k is ci in the forward pass,
/// co here:
///
///     forward    y[m]  += x[nbr[k][m]]       * W_k      W_k [ci][co], along k: columns
///     gradient   dx[n] += dy[nbr_back[k][n]] * W_k^T    W_k [ci][co], along k: rows
///
/// The kernel that puts the weights in place must turn those of the forward pass round: for each
/// piece of 16 bytes it loads 4 or 8 numbers from as many rows. Here a piece is 16 bytes that lie
/// side by side.
///
/// **Expect.** The times of the forward pass, or a little less, for sweep-32-subm3, sweep-64-subm3
/// and sweep-128-subm3: the same rows, the same products, and weights that are loaded in order.
/// **Costs.** As the forward pass: a workspace for the weights and, in float32 or where rows do not
/// consist of 16-byte pieces, for a copy of dy. Declined: float32 with precision fp32; GPUs other
/// than compute capability 9.0; over 1024 taps.
/// **Try.** Under subm, nbr_back is nbr with its taps in the opposite order (mirrored_table.cu).
/// What must change here, so that the table need not be there?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_producers.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

Declined supports(const SparseConvProblem& conv) {
  return sparse_conv::declined_by_producers(conv, conv.N, conv.Cin);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_type(conv.dtype, [&]<class T>(T) {
    return sparse_conv::producers_workspace_bytes<T>(conv.book.KV, conv.N, conv.M, conv.Cout,
                                                     conv.Cin);
  });
}

/// dy [M][Cout], weights [KV][Cin][Cout], nbr_back [KV][N] with masks and order, dx [N][Cin].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  with_type(conv.dtype, [&]<class T>(T) {
    const sparse_conv::GatheredRows<T> gradient = {.taps = conv.book.KV,
                                                   .rows = conv.N,
                                                   .summed = conv.Cout,
                                                   .channels = conv.Cin,
                                                   .table = arrays.in<std::int32_t>("nbr_back"),
                                                   .mask = arrays.in<std::int32_t>("mask_back"),
                                                   .order = arrays.in<std::int32_t>("order_back"),
                                                   .from = arrays.in<T>("dy"),
                                                   .weights = arrays.in<T>("weights"),
                                                   .to = arrays.out<T>("dx")};
    sparse_conv::multiply_by_producers<true>(gradient, conv.M, arrays.workspace<char>());
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return sparse_conv::producers_in_words(conv, conv.N, conv.Cout, conv.Cin);
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_producers() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
