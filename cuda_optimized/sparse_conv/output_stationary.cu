/// @file output_stationary.cu
/// @brief sparse_conv, rung 2 on the GPU: every output collects its sum, tap by tap, in a register.
///
/// - Before: cuda_naive/sparse_conv/scatter.cu (pairs add to outputs)
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
/// - Used by: cuda_optimized/sparse_dgrad/output_stationary.cu
///
/// **The idea.** Give each output to a thread that stays with it. The table nbr[k][out] answers the
/// question that an output asks: which input row do I meet at tap k, if any? Then the sum runs over
/// taps and channels in a register, and is stored once. Outputs without pairs store their zero.
///
///     nbr          out 0  1  2  3            thread (out = 2, co):
///       k = 0        -1  0 -1  2               k = 0   nothing
///       k = 1         0  1  2  3               k = 1   sum += features[2] . W_1[co]
///       k = 2         1 -1  3 -1               k = 2   sum += features[3] . W_2[co]
///
/// A warp's threads have neighbouring channels of one row: its loads of weights are coalesced, its
/// loads of nbr and features are of one address, and it skips a missing tap as a whole. A thread
/// owns the same channel of kRows rows, so that a weight, once loaded, serves up to kRows of them.
///
/// **Expect.** No atomics and no zeroing; deterministic. Where all four rows have the tap, 5 loads
/// for 4 multiply-adds, where scatter has 8: at most 1/5 of the arithmetic peak instead of 1/8. nbr
/// adds KV * M * 4 bytes, of which four in five are -1 in a LiDAR sweep.
/// **Costs.** A tap that only one of a thread's rows has costs the same loads of weights as one
/// that all four have. With fewer than 32 output channels a warp spans several rows, and waits for
/// each tap that any of them has. Declines other types than float32.
#include "core/rung.hpp"
#include "cuda_optimized/sparse_conv/output_stationary.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kThreads = 256;
constexpr int kWidest = 32;  ///< At most so many threads along the channels: one warp.
constexpr int kRows = 4;     ///< Rows of a thread.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More rows than these take: blocks stride.

/// Block (channels, rows); any grid (rows, channels).
__global__ void output_stationary_rows(OutputStationary conv) {
  const std::int64_t summed = conv.summed, channels = conv.channels, rows = conv.rows;
  const std::int64_t tile_rows = std::int64_t{blockDim.y} * kRows;
  const std::int64_t grid_channels = std::int64_t{gridDim.y} * blockDim.x;

  std::int64_t c = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  for (; c < channels; c += grid_channels) {
    for (std::int64_t tile = blockIdx.x * tile_rows; tile < rows; tile += gridDim.x * tile_rows) {
      const std::int64_t first = tile + threadIdx.y;  // this thread's rows lie blockDim.y apart
      float sum[kRows] = {};
      for (std::int64_t k = 0; k < conv.taps; ++k) {
        const float* from[kRows];  // the row that is met at this tap, or null
        bool any = false;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const std::int64_t row = first + r * std::int64_t{blockDim.y};
          const std::int64_t met = row < rows ? conv.table[k * rows + row] : -1;
          from[r] = met >= 0 ? conv.from + met * summed : nullptr;
          any = any || met >= 0;
        }
        if (!any) continue;
        const float* weights = conv.weights + k * summed * channels + c;
        for (std::int64_t s = 0; s < summed; ++s) {
          const float weight = weights[s * channels];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            if (from[r]) sum[r] += from[r][s] * weight;
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t row = first + r * std::int64_t{blockDim.y};
        if (row < rows) conv.to[row * channels + c] = sum[r];
      }
    }
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M], y [M][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  launch_output_stationary({.taps = conv.book.KV,
                            .rows = conv.M,
                            .summed = conv.Cin,
                            .channels = conv.Cout,
                            .table = arrays.in<std::int32_t>("nbr"),
                            .from = arrays.in<float>("features"),
                            .weights = arrays.in<float>("weights"),
                            .to = arrays.out<float>("y")});
}

}  // namespace

void launch_output_stationary(const OutputStationary& conv) {
  int width = 1;  // threads along the channels: a power of two, so that it divides kThreads
  while (width < conv.channels && width < kWidest) width *= 2;
  const int height = kThreads / width;
  const dim3 grid(blocks_for(conv.rows, height * kRows, kMaxBlocks),
                  blocks_for(conv.channels, width, kMaxGridYZ));
  launch(output_stationary_rows,
         {grid, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))}, conv);
}

Implementation<SparseConvProblem> output_stationary() { return {.supports = supports, .run = run}; }

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
