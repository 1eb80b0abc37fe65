/// @file implicit_gemm_cp_async.cu
/// @brief sparse_dgrad: cp.async; the forward pass's float32 kernel, run on transposed weights.
///
/// - Before: output_stationary.cu
/// - The same maths: cpu_reference/sparse_dgrad/direct.cpp
/// - The kernel: cuda_optimized/sparse_conv/implicit_gemm_cp_async.cu
///
/// **The idea.** As in output_stationary.cu, the gradient is a sparse convolution of dy with each
/// tap's matrix transposed. It can therefore reuse the forward kernel, with its asynchronous
/// copies, its tap skipping by warp and its two halves of the taps. The parameters of this kernel
/// are a table, its masks and their orders, for either direction:
///
///     strided      dx[in] = sum over k of  dy[ nbr_back[k][in] ]  x  W_k^T
///     subm         dx[in] = sum over j of  dy[ nbr[j][in] ]       x  W_(KV - 1 - j)^T
///
/// Under `subm` the table of the forward pass is also that of the gradient if the taps of the
/// weights are reversed (mirrored_table.cu). The transposition reverses them at no extra cost.
///
/// **Expect.** The times of the forward pass, plus 3 to 5 us for the transposition: on an H200 74
/// us for sweep-32-subm3, 233 us for sweep-64-subm3, 810 us for sweep-128-subm3. implicit_gemm.cu,
/// which alternates between loads and products, takes 25 to 40 % more.
/// @expect loads_per_output.weights 27 * 32 * 32 / 16384 = 1.6875, transposed once
/// @expect loads_per_output.dy 3838 * 8 / 16384 = 1.8740, a load for each pair, in vectors
/// @expect bytes_per_lane.dy.async 16
/// @expect launches 3
/// **Costs.** Workspace of KV * Cin * Cout floats. Not supported: what the forward pass does not
/// support.
/// **Try.** The weights change once per training step, and both passes read them. Which kernel of
/// the step could transpose them without delaying either pass?
#include "core/cuda/grid_stride.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_cp_async.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 2048;  ///< Upper bound of the grid; threads stride over more
                                           ///< weights.

/// Whether the table of the forward pass is used, with the weights of opposite taps exchanged.
HOST_DEVICE bool mirrored(const SparseConvProblem& conv) {
  return conv.book.mode == SparseMode::subm;
}

/// weights [KV][Cin][Cout] to transposed [KV][Cout][Cin]. Any one-dimensional grid.
__global__ void sparse_dgrad_implicit_gemm_cp_async_transpose_weights(SparseConvProblem conv,
                                                                      const float* weights,
                                                                      float* transposed) {
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  for (const std::int64_t to : grid_stride(conv.book.KV * Cin * Cout)) {
    const std::int64_t k = to / (Cin * Cout), co = to / Cin % Cout, ci = to % Cin;
    const std::int64_t from = mirrored(conv) ? conv.book.KV - 1 - k : k;
    transposed[to] = weights[(from * Cin + ci) * Cout + co];
  }
}

/// The gradient as a convolution: the rows of dy are its inputs.
SparseConvProblem turned_round(SparseConvProblem conv) {
  std::swap(conv.Cin, conv.Cout);
  std::swap(conv.N, conv.M);
  conv.bias = false;
  conv.activation = Activation::none;
  return conv;
}

Declined supports(const SparseConvProblem& conv) {
  return sparse_conv::implicit_gemm_cp_async.supports(turned_round(conv));
}

std::int64_t weight_count(const SparseConvProblem& conv) {
  return std::int64_t{conv.book.KV} * conv.Cin * conv.Cout;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return static_cast<std::size_t>(weight_count(conv)) * sizeof(float);
}

/// dy [M][Cout], weights [KV][Cin][Cout], dx [N][Cin], and of the table nbr_back [KV][N], or under
/// `subm` nbr [KV][N], with masks and orders.
void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context& context) {
  float* transposed = context.workspace_as<float>();
  launch(sparse_dgrad_implicit_gemm_cp_async_transpose_weights,
         {blocks_for(weight_count(conv), kThreads, kMaxBlocks), kThreads}, conv, arrays.weights,
         transposed);
  const bool same = mirrored(conv);
  sparse_conv::implicit_gemm_cp_async.run(
      turned_round(conv),
      {.features = arrays.dy,
       .weights = Input(transposed),
       .y = arrays.dx,
       .nbr = same ? arrays.nbr : arrays.nbr_back,
       .mask = same ? arrays.mask : arrays.mask_back,
       .split_order = same ? arrays.split_order : arrays.split_order_back},
      context);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return sparse_conv::implicit_gemm_cp_async.choice(turned_round(conv));
}

}  // namespace

extern const Implementation<SparseDgradArrays> implicit_gemm_cp_async = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
