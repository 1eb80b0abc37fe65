/// @file output_stationary.cu
/// @brief sparse_dgrad: output-stationary; each thread accumulates one element of dx over all taps.
///
/// - Before: cuda_naive/sparse_dgrad/scatter.cu
/// - After: implicit_gemm.cu, implicit_gemm_cp_async.cu
/// - The same maths: cpu_reference/sparse_dgrad/direct.cpp
/// - The kernel: cuda_optimized/sparse_conv/output_stationary.cu
///
/// **The idea.** The gradient is a sparse convolution of dy over the inverse table, with each tap's
/// matrix transposed. nbr_back[k][in] is the output row that reads input row `in` at tap k, or -1.
/// The kernel of the forward pass computes both:
///
///     forward    y[out]  = sum over k of  features[ nbr[k][out] ]     x  W_k
///     here       dx[in]  = sum over k of  dy[ nbr_back[k][in] ]       x  W_k^T
///
/// A first launch transposes the matrices in memory, [KV][Cin][Cout] to [KV][Cout][Cin], so that
/// neighbouring threads, with neighbouring ci, read neighbouring weights.
///
/// **Expect.** Two launches, no atomics, a deterministic result. The transposition reads each
/// weight once, the main kernel once for each pair of its tap, thousands of times: the uncoalesced
/// loads of the transposition hardly matter.
/// @expect loads_per_output.weights 27 * 32 * 32 / 16384 = 1.6875, transposed once
/// @expect sectors_per_request.workspace.load 4, coalesced
/// @expect lanes.dx.atomic 0
/// @expect launches 2
/// **Costs.** Workspace for the transposed weights: KV * Cin * Cout floats. Float32 only.
/// **Try.** Leave the transposition out, and let the main kernel read `weights[(k * Cin + ci) *
/// Cout + co]`. How many sectors of 32 bytes does one load of a warp touch?
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/output_stationary.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 2048;  ///< Upper bound of the grid; threads stride over more
                                           ///< weights.

/// weights [KV][Cin][Cout] to transposed [KV][Cout][Cin]. Any one-dimensional grid.
__global__ void sparse_dgrad_output_stationary_transpose_weights(SparseConvProblem conv,
                                                                 const float* weights,
                                                                 float* transposed) {
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  for (const std::int64_t to : grid_stride(conv.book.KV * Cin * Cout)) {
    const std::int64_t k = to / (Cin * Cout), co = to / Cin % Cout, ci = to % Cin;
    transposed[to] = weights[(k * Cin + ci) * Cout + co];
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

std::int64_t weight_count(const SparseConvProblem& conv) {
  return std::int64_t{conv.book.KV} * conv.Cin * conv.Cout;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return static_cast<std::size_t>(weight_count(conv)) * sizeof(float);
}

/// dy [M][Cout], weights [KV][Cin][Cout], nbr_back [KV][N], dx [N][Cin].
void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context& context) {
  float* transposed = context.workspace_as<float>();
  launch(sparse_dgrad_output_stationary_transpose_weights,
         {blocks_for(weight_count(conv), kThreads, kMaxBlocks), kThreads}, conv, arrays.weights,
         transposed);
  sparse_conv::launch_output_stationary({.taps = conv.book.KV,
                                         .rows = conv.N,
                                         .summed = conv.Cout,
                                         .channels = conv.Cin,
                                         .table = arrays.nbr_back,
                                         .from = arrays.dy,
                                         .weights = transposed,
                                         .to = arrays.dx});
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return sparse_conv::output_stationary_in_words(conv.Cin);
}

}  // namespace

extern const Implementation<SparseDgradArrays> output_stationary = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
