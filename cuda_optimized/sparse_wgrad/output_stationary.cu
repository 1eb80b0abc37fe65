/// @file output_stationary.cu
/// @brief sparse_wgrad: output-stationary tiles; a block accumulates 16 x 16 channels of one tap's
/// dw.
///
/// - Before: cuda_naive/sparse_wgrad/scatter.cu
/// - After: split_k_atomics.cu
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** Each thread owns one element of dw and accumulates it over the pairs of its tap in
/// a register; `offsets` gives the range of these pairs. A block takes a tap and a tile of 16 x 16
/// channels. It copies the rows of a chunk of pairs to shared memory, where 16 threads read each
/// value:
///
///     pairs of tap k    features[in]  16 of Cin       dy[out]  16 of Cout
///        (k, 2, 0)      [ . . . . . . . . ]           [ . . . . . . . . ]      chunk in
///        (k, 5, 1)      [ . . . . . . . . ]           [ . . . . . . . . ]      shared memory
///           ...                   ci                          co
///                       thread (ci, co): acc += column ci of the left . column co of the right
///
/// **Expect.** No atomics; pairs are added in order, so the same rulebook gives the same bits. For
/// 64 pairs a thread executes 8 loads from global memory (plus 8 of row numbers) and 2 barriers.
/// Two loads from shared memory per multiply-add: at most 1/8 of the arithmetic peak.
/// @expect lanes.dw.atomic 0
/// @expect loads_per_output.shared 2 * 3838 / 27 = 284.296, two for each multiply-add
/// @expect loads_per_output.features 3838 / 27 / 16 = 8.884, tiles of 16 x 16
/// @expect blocks 27 * 2 * 2 = 108
/// **Costs.** Few blocks: KV * ceil(Cin / 16) * ceil(Cout / 16). Under `subm` those of the centre
/// tap finish last. Every tile gathers the rows of its tap again. Float32 only.
/// **Try.** Let a thread compute 2 x 2 elements. How many loads are there per multiply-add?
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {
namespace {

constexpr int kTile = 16;                     ///< Channels of a tile, on both sides.
constexpr int kThreads = kTile * kTile;       ///< One an element of the tile.
constexpr int kChunk = 64;                    ///< Pairs in shared memory at a time.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more tiles, blocks stride.

/// Copies channels c0, c0 + 1, ... of the rows of `count` pairs into `chunk`; 0 beyond `channels`.
/// @param column which entry of a pair is the row
__device__ void gather_chunk(const float* from, std::int64_t channels, std::int64_t c0,
                             const std::int32_t* pairs, int column, int count,
                             float (&chunk)[kChunk][kTile]) {
  const int c = static_cast<int>(threadIdx.x) % kTile;
  for (int i = static_cast<int>(threadIdx.x) / kTile; i < count; i += kThreads / kTile) {
    const std::int64_t row = pairs[i * kPairColumns + column];
    chunk[i][c] = c0 + c < channels ? from[row * channels + c0 + c] : 0.0f;
  }
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
/// Any one-dimensional grid, block kThreads.
__global__ void __launch_bounds__(kThreads)
    sparse_wgrad_output_stationary(SparseConvProblem conv, const float* features, const float* dy,
                                   const std::int32_t* pairs, const std::int32_t* offsets,
                                   float* dw) {
  __shared__ float inputs[kChunk][kTile];
  __shared__ float gradients[kChunk][kTile];
  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  const std::int64_t tiles_in = ceil_div<std::int64_t>(Cin, kTile);
  const std::int64_t tiles_out = ceil_div<std::int64_t>(Cout, kTile);
  // Neighbouring threads have neighbouring co: dw is stored coalesced.
  const int my_ci = static_cast<int>(threadIdx.x) / kTile;
  const int my_co = static_cast<int>(threadIdx.x) % kTile;

  // All threads of a block have the same tile and chunks, so they reach the same barriers.
  for (std::int64_t tile = blockIdx.x; tile < conv.book.KV * tiles_in * tiles_out;
       tile += gridDim.x) {
    const std::int64_t k = tile / (tiles_in * tiles_out);
    const std::int64_t ci0 = tile / tiles_out % tiles_in * kTile, co0 = tile % tiles_out * kTile;
    float sum = 0.0f;
    for (std::int64_t first = offsets[k]; first < offsets[k + 1]; first += kChunk) {
      const std::int64_t left = offsets[k + 1] - first;
      const int count = left < kChunk ? static_cast<int>(left) : kChunk;
      __syncthreads();  // all threads have read the previous chunk before this one overwrites it
      gather_chunk(features, Cin, ci0, pairs + first * kPairColumns, 1, count, inputs);
      gather_chunk(dy, Cout, co0, pairs + first * kPairColumns, 2, count, gradients);
      __syncthreads();  // the chunk is complete before any thread reads it
      for (int i = 0; i < count; ++i) sum += inputs[i][my_ci] * gradients[i][my_co];
    }
    if (ci0 + my_ci < Cin && co0 + my_co < Cout)
      dw[(k * Cin + ci0 + my_ci) * Cout + co0 + my_co] = sum;
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context&) {
  const std::int64_t tiles =
      std::int64_t{conv.book.KV} * ceil_div(conv.Cin, kTile) * ceil_div(conv.Cout, kTile);
  launch(sparse_wgrad_output_stationary, {blocks_for(tiles, 1, kMaxBlocks), kThreads}, conv,
         arrays.features, arrays.dy, arrays.pairs, arrays.offsets, arrays.dw);
}

}  // namespace

extern const Implementation<SparseWgradArrays> output_stationary = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
