/// @file segment_order.cuh
/// @brief An order of rows that is made beside what else must be made before a product: segments,
/// each sorted by masks; implicit_gemm_fused_sort.cu explains it.
#pragma once

#include "core/cuda/workspace_cutter.hpp"
#include "core/rulebook_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/sorted_masks.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

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
    __syncthreads();  // all have read the last keys before those of the next segment come
  }
}

/// The workspace of a product whose order is made in it, front to back.
struct OrderedWorkspace {
  std::int32_t* order;  ///< [rows]
  std::byte* rest;      ///< For all else; null without a workspace.
  std::size_t bytes;    ///< Of the order; the rest begins behind them.
};

/// @param begin the workspace, or null to learn its size
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
