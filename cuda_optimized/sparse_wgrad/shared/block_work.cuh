/// @file block_work.cuh
/// @brief How a block finds its part of the pairs, and its tile of channels; split_k_atomics.cu
/// explains it.
#pragma once

#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

/// A part: its tap, and where its pairs lie.
struct PairPart {
  int k;             ///< the tap
  int first, count;  ///< pairs
};

/// Finds part `index` of a slab. Each lane asks for a tap, and a running sum over the warp tells
/// whose parts they are. All lanes of a warp take part.
/// @returns whether there is such a part
__device__ inline bool part_at(const PairParts& parts, const std::int32_t* offsets, int slab,
                               int index, PairPart* part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int k0 = 0; k0 < parts.KV; k0 += 32) {
    const Stretch mine = stretch_of(parts, offsets, slab, k0 + lane);
    const int count = parts_of(parts, mine);
    int sum = count;  // of this lane and those before
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(0xFFFFFFFF, sum, static_cast<unsigned>(distance));
      if (lane >= distance) sum += other;
    }
    const unsigned beyond = __ballot_sync(0xFFFFFFFF, sum > index);
    if (beyond != 0) {
      const int owner = __ffs(static_cast<int>(beyond)) - 1;
      const int skipped = (index - (sum - count)) * parts.part_pairs;
      const int left = mine.count - skipped;
      part->k = k0 + owner;
      part->first = __shfl_sync(0xFFFFFFFF, mine.first + skipped, owner);
      part->count =
          __shfl_sync(0xFFFFFFFF, left < parts.part_pairs ? left : parts.part_pairs, owner);
      return true;
    }
    index -= __shfl_sync(0xFFFFFFFF, sum, 31);
  }
  return false;
}

/// What a block computes: a tile of a part's sums.
struct BlockWork {
  PairPart part;  ///< its pairs
  int slot;       ///< its number among the parts of all slabs
  int ci0, co0;   ///< the tile's first channels
};

/// The work of this block, all of whose threads ask. Grid (parts of a slab, tiles of channels,
/// slabs): the same pairs' tiles follow one another at a distance, slabs one after the other.
/// @param tiles_out tiles of Cout
/// @returns whether there is any
template <int kTileIn, int kTileOut>
__device__ bool work_of_block(const PairParts& parts, const std::int32_t* offsets, int tiles_out,
                              BlockWork* work) {
  const int slab = static_cast<int>(blockIdx.z), index = static_cast<int>(blockIdx.x);
  if (!part_at(parts, offsets, slab, index, &work->part)) return false;
  const int tile = static_cast<int>(blockIdx.y);
  work->slot = slab * parts.most_parts + index;
  work->ci0 = tile / tiles_out * kTileIn;
  work->co0 = tile % tiles_out * kTileOut;
  return true;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
