/// @file pair_parts.cuh
/// @brief The pairs of all taps, cut into parts that blocks sum up; split_k_atomics.cu explains it.
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

/// Which tile the channels of a problem ask for: the smallest that holds Cin and Cout, or the
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

/// For a rung's choice. @param shortest, longest as cut_pairs() was told
inline std::string in_words(const PairParts& parts, int shortest, int longest) {
  return text(parts.part_pairs <= shortest  ? "shortest parts, "
              : parts.part_pairs >= longest ? "longest parts, "
                                            : "parts, ",
              how_many(parts.slabs(), "slab"));
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
