/// @file scatter.cu
/// @brief sparse_max_pool, first on the GPU: a thread for each pair and channel, atomic maxima.
///
/// - Before: cpu_reference/sparse_max_pool/direct.cpp
/// - After: cuda_optimized/sparse_max_pool/output_stationary.cu
/// - The same maths: cpu_reference/sparse_max_pool/direct.cpp
///
/// **The idea.** Pairs of several taps lead to the same output and run at the same time. A maximum
/// can be taken atomically, but of integers only, and argmax must belong to the y beside it. So
/// both go into one number: above, the feature's bits, made to sort as the features do; below, the
/// tap, turned round, so that of equal features the lowest tap makes the largest number.
///
///     key   | rank of the feature, 32 bits | 2^32 - 1 - k, 32 bits |
///           atomicMax(keys[out][c], key)
///
///     float      -inf ... -1.0 ... -0 +0 ... 1.0 ... inf  NaN
///     rank        sign bit set: all bits flipped; else: sign bit set     NaN: all ones
///
/// A second kernel looks up which input the winning tap belongs to, and copies its feature: so the
/// sign of a zero, and whatever a NaN carries, arrive as they were. A key of 0 has had no offer.
///
/// **Expect.** pairs * C atomics of 8 bytes, done by the L2 cache; at most KV of them meet at an
/// address. Unlike a sum, a maximum does not depend on the order: the rung is deterministic, in
/// spite of its atomics.
/// @expect lanes.workspace.atomic 3838 * 32 = 122816, of 3838 pairs
/// @expect bytes_per_lane.workspace.atomic 8
/// @expect launches 2, offers; then winners
/// **Costs.** Workspace: 8 bytes for each element of y, zeroed, changed and read again. A thread
/// divides by C to find its pair.
/// **Try.** Leave the line for NaN out of rank_of(). Which NaN still wins, and which one loses to
/// every number?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_pool_problem.hpp"

namespace convladder::BACKEND::cuda_naive::sparse_max_pool {
namespace {

using Key = unsigned long long;  ///< CUDA has an atomic maximum of these.

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< For more pairs, threads stride.
constexpr std::uint32_t kAllOnes = 0xffffffffu, kSign = 0x80000000u;

/// A number for each feature: rank_of(a) > rank_of(b) if and only if exceeds(a, b). None is 0.
__device__ std::uint32_t rank_of(float feature) {
  if (feature != feature) return kAllOnes;                                       // NaN
  const std::uint32_t bits = __float_as_uint(feature == 0.0f ? 0.0f : feature);  // one zero
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

/// features [N][C], pairs [P][3], keys [M][C], all zero. Any one-dimensional grid.
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

/// features [N][C], nbr [KV][M], keys [M][C], y [M][C], argmax [M][C]. Any one-dimensional grid.
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
