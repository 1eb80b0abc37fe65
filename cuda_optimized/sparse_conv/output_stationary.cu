/// @file output_stationary.cu
/// @brief sparse_conv: output-stationary; each thread accumulates one output over all taps in a
/// register.
///
/// - Before: cuda_naive/sparse_conv/scatter.cu
/// - After: grouped_gemm.cu, implicit_gemm.cu, gather_gemm_scatter.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
///
/// **The idea.** One thread owns one output. The table nbr[k][out] holds the input row of each
/// output row at tap k, or -1. The thread accumulates over taps and channels in a register and
/// stores the result once.
///
///     nbr          out 0  1  2  3            thread (out = 2, co):
///       k = 0        -1  0 -1  2               k = 0   no input
///       k = 1         0  1  2  3               k = 1   acc += features[2] . W_1[co]
///       k = 2         1 -1  3 -1               k = 2   acc += features[3] . W_2[co]
///
/// **Expect.** The result is deterministic, without atomics and without zeroing y. There are two
/// loads per multiply-add, as in scatter, whose atomics the L2 cache handles well: the forward pass
/// gains little. The gradient gains, because scatter's loads are not coalesced there. Small
/// problems leave most SMs idle. nbr adds KV * M * 4 bytes; in a LiDAR sweep three quarters of its
/// entries are -1.
/// @expect lanes.y.atomic 0
/// @expect loads_per_output.features 3838 * 32 / 512 = 239.875, one for each multiply-add
/// @expect loads_per_output.nbr 27
/// @expect launches 1, nothing is zeroed
/// **Costs.** With fewer than 32 output channels a warp spans several rows and executes each tap
/// that any of them has. Each row reads all weights of its taps through the caches. Float32 only.
/// **Try.** Take 8 output channels. How many lanes are idle at a tap that only one row has?
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_conv/output_stationary.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kThreads = 256;
constexpr int kWidest = 32;                   ///< Most threads along the channels: one warp.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< rows.

/// Block (channels, rows); any grid (rows, channels).
__global__ void sparse_conv_output_stationary(OutputStationary conv) {
  const std::int64_t summed = conv.summed, channels = conv.channels;
  const std::int64_t grid_rows = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x;

  std::int64_t c = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  for (; c < channels; c += grid_channels) {
    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    for (; row < conv.rows; row += grid_rows) {
      float sum = conv.bias != nullptr ? conv.bias[c] : 0.0f;
      for (std::int64_t k = 0; k < conv.taps; ++k) {
        const std::int64_t met = conv.table[k * conv.rows + row];
        if (met < 0) continue;  // most taps of most rows have no input
        const float* from = conv.from + met * summed;
        const float* weights = conv.weights + k * summed * channels + c;
#pragma unroll 8
        for (std::int64_t s = 0; s < summed; ++s) sum += from[s] * weights[s * channels];
      }
      conv.to[row * channels + c] = activated(conv.activation, sum);
    }
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M], y [M][Cout].
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  launch_output_stationary({.taps = conv.book.KV,
                            .rows = conv.M,
                            .summed = conv.Cin,
                            .channels = conv.Cout,
                            .table = arrays.nbr,
                            .from = arrays.features,
                            .weights = arrays.weights,
                            .to = arrays.y,
                            .bias = arrays.bias,
                            .activation = conv.activation});
}

/// Threads along the channels: a power of two, so that it divides kThreads.
int width_for(int channels) {
  int width = 1;
  while (width < channels && width < kWidest) width *= 2;
  return width;
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return output_stationary_in_words(conv.Cout);
}

}  // namespace

void launch_output_stationary(const OutputStationary& conv) {
  const int width = width_for(conv.channels), height = kThreads / width;
  const dim3 grid(blocks_for(conv.rows, height, kMaxBlocks),
                  blocks_for(conv.channels, width, kMaxGridYZ));
  launch(sparse_conv_output_stationary,
         {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, conv);
}

std::string output_stationary_in_words(int channels) {
  const int width = width_for(channels);
  return text(width, width == 1 ? " thread a row" : " threads a row",
              channels > width ? ", more channels than threads" : "");
}

extern const Implementation<SparseConvArrays> output_stationary = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
