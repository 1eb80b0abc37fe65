/// @file segment_order.cuh
/// @brief Segments of 2048 rows, each sorted by its masks by one block in shared memory;
/// implicit_gemm_fused_sort.cu explains the order and the sorting network.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// The keys that the threads of a block sort. Thread i holds the keys at positions i, i + kThreads
/// ... A key is a row's mask, as many bits as fit, followed by the row's original position. Keys at
/// a distance of up to 16 are exchanged by shuffles within a warp, those at a distance of kThreads
/// within a thread.
template <int kThreads, int kKeys>
struct SortedMasks {
  static constexpr unsigned kRows = kKeys * kThreads;  ///< That are sorted together: a power of 2.
  static constexpr unsigned kNone = ~0u;               ///< The key of no row, which sorts last.
  unsigned exchanged[2][kRows];  ///< Keys exchanged between warps, double-buffered.

  /// The key of a row.
  /// @param mask of its first 32 taps, of `taps` in all @param place its position, < kRows
  __device__ static unsigned key_of(unsigned mask, int taps, int place) {
    const unsigned high = mask << max(32 - taps, 0) >> 1;  // so that it is less than kNone
    return high / kRows * kRows + static_cast<unsigned>(place);
  }
  /// The original position of the row of a key.
  __device__ static int place_of(unsigned key) { return static_cast<int>(key % kRows); }

  /// Sorts the keys of all threads, in the network of Batcher, "Sorting networks and their
  /// applications", 1968.
  __device__ void sort(unsigned (&key)[kKeys]) {
    const int thread = static_cast<int>(threadIdx.x);
    int turn = 0;
#pragma unroll
    for (int size = 2; size <= kKeys * kThreads; size *= 2) {
#pragma unroll
      for (int apart = size / 2; apart >= 1; apart /= 2) {
        const bool between_warps = apart >= 32 && apart < kThreads;
        unsigned other[kKeys];
        if (between_warps) {
#pragma unroll
          for (int j = 0; j < kKeys; ++j) exchanged[turn][thread + j * kThreads] = key[j];
          // Separates these stores from the loads below. The buffers alternate, so the next stores
          // to this one follow the next barrier.
          __syncthreads();
        }
#pragma unroll
        for (int j = 0; j < kKeys; ++j) {
          other[j] = between_warps       ? exchanged[turn][(thread ^ apart) + j * kThreads]
                     : apart >= kThreads ? key[(j ^ apart / kThreads) % kKeys]
                                         : __shfl_xor_sync(0xFFFFFFFF, key[j], apart);
        }
        if (between_warps) turn ^= 1;
#pragma unroll
        for (int j = 0; j < kKeys; ++j) {
          const int place = thread + j * kThreads;
          const bool takes_less = ((place & apart) == 0) == ((place & size) == 0);
          key[j] = takes_less ? min(key[j], other[j]) : max(key[j], other[j]);
        }
      }
    }
  }
};

constexpr int kSortThreads = 1024;                                ///< Of a block that sorts.
constexpr int kSortedOfThread = 2;                                ///< Rows of a thread.
using SegmentMasks = SortedMasks<kSortThreads, kSortedOfThread>;  ///< Of a segment.
constexpr int kSegment = kSortedOfThread * kSortThreads;          ///< Rows.

/// An order of rows, and what it is made of.
struct SegmentOrder {
  int rows, taps;            ///< taps: KV
  const std::int32_t* mask;  ///< [rows][mask_words(taps)]
  std::int32_t* order;       ///< [rows], to be written

  /// Segments of kSegment rows, the last one shorter.
  HOST_DEVICE int segments() const { return ceil_div(rows, kSegment); }
};

/// Sorts the segments, each by a block. Any one-dimensional grid of kSortThreads.
__device__ inline void sort_segments(const SegmentOrder& of, SegmentMasks& masks) {
  const int thread = static_cast<int>(threadIdx.x), words = mask_words(of.taps);
  for (int segment = static_cast<int>(blockIdx.x); segment < of.segments();
       segment += static_cast<int>(gridDim.x)) {
    const int first = segment * kSegment, count = min(of.rows - first, kSegment);
    unsigned key[kSortedOfThread];
#pragma unroll
    for (int j = 0; j < kSortedOfThread; ++j) {
      const int place = thread + j * kSortThreads;
      key[j] = SegmentMasks::kNone;
      if (place < count) {
        const std::int32_t bits = of.mask[std::int64_t{first + place} * words];
        key[j] = SegmentMasks::key_of(static_cast<unsigned>(bits), of.taps, place);
      }
    }
    masks.sort(key);
#pragma unroll
    for (int j = 0; j < kSortedOfThread; ++j) {
      const int place = thread + j * kSortThreads;
      if (place < count) of.order[first + place] = first + SegmentMasks::place_of(key[j]);
    }
    __syncthreads();  // all threads have read the last keys before those of the next segment
                      // overwrite them
  }
}

/// The workspace of a product whose order is made in it, front to back.
struct OrderedWorkspace {
  std::int32_t* order;  ///< [rows]
  std::byte* rest;      ///< For all else; null without a workspace.
  std::size_t bytes;    ///< Bytes of the order; the rest begins after them.
};

/// @param begin the workspace, or null to compute its size
inline OrderedWorkspace ordered_workspace_at(std::int64_t rows, std::byte* begin) {
  WorkspaceCutter cutter(begin);
  OrderedWorkspace work{};
  work.order = cutter.take<std::int32_t>(rows);
  // Whole multiples of what a piece of the rest is aligned to.
  work.bytes = ceil_div<std::size_t>(cutter.bytes(), 256) * 256;
  if (begin != nullptr) work.rest = begin + work.bytes;
  return work;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
