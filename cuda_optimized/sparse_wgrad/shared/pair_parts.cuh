/// @file pair_parts.cuh
/// @brief Split-K over the pairs of all taps: how they are cut into parts, how a block finds its
/// part and its tile of channels, and the kernel that adds the parts in a fixed order.
/// split_k_atomics.cu explains the parts, split_k.cu the second launch.
#pragma once

#include <algorithm>

#include "core/cuda/launch.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

/// How the pairs are cut: those of each tap into `1 << log_slabs` stretches of the same length, to
/// within a pair; each of them into parts of part_pairs pairs, and a last one with the rest. The
/// parts of a slab, which is the same stretch of all taps, are numbered tap by tap.
///
///     tap 0   |0 |1 |2  |3 |4     slab 0: parts 0 ... 6            pairs of a tap are sorted by
///     tap 1   |3 |4 |5  |5 |6             of all three taps        their outputs: a slab is about
///     tap 2   |6 |      |7 |      slab 1: parts 0 ... 7            the same rows of all taps
struct PairParts {
  int KV;          ///< taps
  int log_slabs;   ///< of the number of slabs
  int part_pairs;  ///< of a part that is not the last of its stretch
  int most_parts;  ///< more than a slab has: the sums of part p of slab s are at s * most_parts + p

  /// How many slabs there are.
  HOST_DEVICE int slabs() const { return 1 << log_slabs; }
};

constexpr int kMaxSlabs = 32;  ///< Slabs at most.

/// Cuts the pairs of a problem: about `wanted` parts, but no shorter or longer ones than these.
/// Depends on nothing but the problem, and so do the bits of the sums.
/// @param shortest pairs of a part; all parts have a multiple of them, but for the last ones
inline PairParts cut_pairs(const SparseConvProblem& conv, std::int64_t wanted, int shortest,
                           int longest) {
  const int KV = conv.book.KV;
  // Each stretch ends with a part that is half as long as the others on average.
  const std::int64_t whole = std::max<std::int64_t>(wanted - KV / 2, 1);
  const auto length = static_cast<int>(std::clamp<std::int64_t>(
      ceil_div(conv.pairs, whole * shortest) * shortest, shortest, longest));
  PairParts parts{KV, 0, length, 0};
  while (parts.slabs() < kMaxSlabs &&
         conv.pairs / length >= 2 * std::int64_t{parts.slabs()} * wanted) {
    ++parts.log_slabs;
  }
  const std::int64_t pairs = conv.pairs / parts.slabs() + KV;  // of a slab, at most
  parts.most_parts = static_cast<int>(pairs / length) + KV;
  return parts;
}

/// Which tile suits the channels of a problem: the smallest that holds Cin and Cout, or the
/// largest.
inline int tile_channels(const SparseConvProblem& conv) {
  const int widest = std::max(conv.Cin, conv.Cout);
  return widest <= 32 ? 32 : widest <= 64 ? 64 : 128;
}

/// A stretch of a tap's pairs.
struct Stretch {
  int first, count;  ///< in the list of pairs
};

/// The stretch of tap k that belongs to a slab; none past the last tap.
__device__ inline Stretch stretch_of(const PairParts& parts, const std::int32_t* offsets, int slab,
                                     int k) {
  if (k >= parts.KV) return {0, 0};
  const int before = offsets[k];
  const std::int64_t pairs = offsets[k + 1] - before;
  const auto begin = static_cast<int>(pairs * slab >> parts.log_slabs);
  const auto end = static_cast<int>(pairs * (slab + 1) >> parts.log_slabs);
  return {before + begin, end - begin};
}

/// How many parts a stretch has.
__device__ inline int parts_of(const PairParts& parts, const Stretch& stretch) {
  return ceil_div(stretch.count, parts.part_pairs);
}

/// For a rung's choice. @param shortest, longest as passed to cut_pairs()
inline std::string in_words(const PairParts& parts, int shortest, int longest) {
  return text(parts.part_pairs <= shortest  ? "shortest parts, "
              : parts.part_pairs >= longest ? "longest parts, "
                                            : "parts, ",
              how_many(parts.slabs(), "slab"));
}

/// A part: its tap, and where its pairs lie.
struct PairPart {
  int k;             ///< the tap
  int first, count;  ///< pairs
};

/// Finds part `index` of a slab. Each lane looks at a tap, and a prefix sum over the warp tells
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

/// The work of this block, all of whose threads call it. Grid (parts of a slab, tiles of channels,
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

/// What the kernels in FP32 work on.
struct PairProduct {
  int Cin, Cout;                        ///< Channels of features and of dy.
  PairParts parts;                      ///< Which pairs a block adds up.
  const float *features, *dy;           ///< [N][Cin], [M][Cout]
  const std::int32_t *pairs, *offsets;  ///< [P][3], [KV + 1]
};

namespace pair_parts {

inline constexpr int kWidth = 32;     ///< Elements of dw that a block adds up at a time,
inline constexpr int kMaxGroups = 8;  ///< and threads for each of them, at most.

/// dw[k][i] = the sums of tap k's parts, for block y = k. Thread (column, group) adds every
/// groups-th part of each slab, slab by slab; then the groups are added in their order. Grid (any,
/// any), block (kWidth, groups).
/// @param sums [slabs][most_parts][floats]
/// @param dw [KV][floats]
static __global__ void sparse_wgrad_sum_pair_parts(PairParts parts, const std::int32_t* offsets,
                                                   const float* sums, std::int64_t floats,
                                                   float* dw) {
  __shared__ int first[kMaxSlabs];  // which part of its slab is this tap's first one
  __shared__ int count[kMaxSlabs];  // and how many it has there
  __shared__ float of_group[kMaxGroups][kWidth];
  const int column = static_cast<int>(threadIdx.x), group = static_cast<int>(threadIdx.y);
  const int groups = static_cast<int>(blockDim.y);
  for (int k = static_cast<int>(blockIdx.y); k < parts.KV; k += static_cast<int>(gridDim.y)) {
    __syncthreads();  // the last tap's numbers are used up
    for (int slab = group; slab < parts.slabs(); slab += groups) {
      int before = 0;
      for (int other = column; other < k; other += 32) {
        before += parts_of(parts, stretch_of(parts, offsets, slab, other));
      }
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        before += __shfl_xor_sync(0xFFFFFFFF, before, distance);
      }
      if (column == 0) {
        first[slab] = before;
        count[slab] = parts_of(parts, stretch_of(parts, offsets, slab, k));
      }
    }
    __syncthreads();  // the numbers are complete before they are used

    std::int64_t i0 = std::int64_t{blockIdx.x} * kWidth;
    for (; i0 < floats; i0 += std::int64_t{gridDim.x} * kWidth) {
      const std::int64_t i = i0 + column;
      float sum = 0.0f;
      for (int slab = 0; i < floats && slab < parts.slabs(); ++slab) {
        const float* from =
            sums + (std::int64_t{slab} * parts.most_parts + first[slab]) * floats + i;
#pragma unroll 4
        for (int part = group; part < count[slab]; part += groups) sum += from[part * floats];
      }
      of_group[group][column] = sum;
      __syncthreads();  // all groups' sums are there
      if (group == 0 && i < floats) {
        for (int other = 1; other < groups; ++other) sum += of_group[other][column];
        dw[k * floats + i] = sum;
      }
      __syncthreads();  // they are used up before the next ones
    }
  }
}

}  // namespace pair_parts

/// Threads that share the parts of an element: so many that each adds a few parts of an average
/// tap. Their number decides the bits of the sum, and depends on nothing but the problem.
inline std::int64_t groups_for(const PairParts& parts) {
  const std::int64_t parts_of_tap = std::int64_t{parts.most_parts} * parts.slabs() / parts.KV;
  return std::clamp<std::int64_t>(parts_of_tap / 4, 1, pair_parts::kMaxGroups);
}

/// For the choice of a rung whose parts launch_sum_pair_parts() adds up.
inline std::string groups_in_words(const PairParts& parts) {
  return text("added by ", how_many(groups_for(parts), "thread"));
}

/// Adds the parts' sums [slabs][most_parts][floats] to dw [KV][floats], which is wholly written:
/// zeros for taps without pairs.
inline void launch_sum_pair_parts(const PairParts& parts, const std::int32_t* offsets,
                                  const float* sums, std::int64_t floats, float* dw) {
  const dim3 grid(blocks_for(floats, pair_parts::kWidth, kMaxGridYZ),
                  blocks_for(parts.KV, 1, kMaxGridYZ));
  const std::int64_t groups = groups_for(parts);
  launch(pair_parts::sparse_wgrad_sum_pair_parts,
         {grid, dim3(pair_parts::kWidth, static_cast<unsigned>(groups))}, parts, offsets, sums,
         floats, dw);
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
