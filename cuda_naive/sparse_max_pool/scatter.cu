/// @file scatter.cu
/// @brief Scatter: one thread per pair and channel, atomic maximum of value and tap in 64 bits.
///
/// - Before: cpu_reference/sparse_max_pool/direct.cpp
/// - After: cuda_optimized/sparse_max_pool/output_stationary.cu
///
/// **The idea.** Pairs of several taps lead to the same output and are processed concurrently. A
/// maximum can be atomic, but only for integers, and argmax must belong to the same feature as y.
/// Therefore one 64-bit key holds the feature's rank in its high half, and the complement of the
/// tap in its low half, so that among equal features the lowest tap wins.
///
///     key   | rank of the feature, 32 bits | 2^32 - 1 - k, 32 bits |
///           atomicMax(keys[out][c], key)
///     float      -inf ... -1.0 ... -0 +0 ... 1.0 ... inf  NaN
///     rank        sign bit set: all bits flipped; else: sign bit set     NaN: all ones
///
/// A second kernel looks up the input row of the winning tap and copies its feature unchanged. A
/// key of 0 marks an output without candidates.
///
/// **Expect.** pairs * C atomics of 8 bytes, executed by the L2 cache, at most KV per address. A
/// maximum does not depend on the order, so the rung is deterministic.
/// @expect lanes.workspace.atomic 3838 * 32 = 122816, of 3838 pairs
/// @expect bytes_per_lane.workspace.atomic 8
/// @expect launches 2, offers; then winners
/// **Costs.** Workspace of 8 bytes per element of y, which is zeroed, updated and read again. A
/// thread divides by C to find its pair.
/// **Try.** Remove the line for NaN from rank_of(). Which NaN still wins, and which loses to every
/// number?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_max_pool {
namespace {

using Key = unsigned long long;  ///< The operand type of CUDA's 64-bit atomicMax.

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< With more pairs, a thread processes several
                                              ///< (grid-stride loop).
constexpr std::uint32_t kAllOnes = 0xffffffffu, kSign = 0x80000000u;

/// An integer for each feature: rank_of(a) > rank_of(b) if and only if exceeds(a, b). The rank is
/// never 0.
__device__ std::uint32_t rank_of(float feature) {
  if (feature != feature) return kAllOnes;                                       // NaN
  const std::uint32_t bits = __float_as_uint(feature == 0.0f ? 0.0f : feature);  // -0 and +0 have
                                                                                 // the same rank
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

/// features [N][C], pairs [P][3], keys [M][C], which must be zero. Launch with any one-dimensional
/// grid.
__global__ void sparse_max_pool_scatter_offer_pairs(SparsePoolProblem pool, const float* features,
                                                    const std::int32_t* pairs, Key* keys) {
  const std::int64_t C = pool.C;
  for (const std::int64_t item : grid_stride(pool.pairs * C)) {
    const std::int32_t* pair = pairs + item / C * kPairColumns;
    const std::int64_t in = pair[1], out = pair[2], c = item % C;
    const auto k = static_cast<std::uint32_t>(pair[0]);
    const std::uint32_t rank = rank_of(features[in * C + c]);
    atomicMax(&keys[out * C + c], Key{rank} << 32 | (kAllOnes - k));
  }
}

/// features [N][C], nbr [KV][M], keys [M][C], y [M][C], argmax [M][C]. Launch with any
/// one-dimensional grid.
__global__ void sparse_max_pool_scatter_take_winners(SparsePoolProblem pool, const float* features,
                                                     const std::int32_t* nbr, const Key* keys,
                                                     float* y, std::int32_t* argmax) {
  const std::int64_t C = pool.C, M = pool.M;
  for (const std::int64_t i : grid_stride(M * C)) {
    const Key key = keys[i];
    std::int32_t in = -1;
    if (key != 0) {
      const std::int64_t k = kAllOnes - static_cast<std::uint32_t>(key & kAllOnes);
      in = nbr[k * M + i / C];
    }
    y[i] = in < 0 ? 0.0f : features[in * C + i % C];
    argmax[i] = in;
  }
}

std::size_t workspace_bytes(const SparsePoolProblem& pool) {
  return static_cast<std::size_t>(std::int64_t{pool.M} * pool.C) * sizeof(Key);
}

void run(const SparsePoolProblem& pool, const SparseMaxPoolArrays& arrays, const Context& context) {
  const auto* features = arrays.features;
  Key* keys = context.workspace_as<Key>();
  const std::int64_t outputs = std::int64_t{pool.M} * pool.C;
  check(cudaMemsetAsync(keys, 0, workspace_bytes(pool), current_stream()));
  launch(sparse_max_pool_scatter_offer_pairs,
         {blocks_for(pool.pairs * pool.C, kThreads, kMaxBlocks), kThreads}, pool, features,
         arrays.pairs, keys);
  launch(sparse_max_pool_scatter_take_winners,
         {blocks_for(outputs, kThreads, kMaxBlocks), kThreads}, pool, features, arrays.nbr, keys,
         arrays.y, arrays.argmax);
}

}  // namespace

extern const Implementation<SparseMaxPoolArrays> scatter = {
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_naive::sparse_max_pool
