/// @file listed_taps.cuh
/// @brief A tile's rows, and the list of the taps that any of them has; implicit_gemm_cp_async.cu
/// explains it.
#pragma once

#include "cuda_optimized/sparse_conv/shared/split_masks.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// A tile's rows, and the taps that any of them has.
/// @tparam Shape_ an AsyncRows
template <class Shape_>
class ListedTaps {
 public:
  using Shape = Shape_;  ///< Of the tile.

  /// All threads of the block call it. It waits twice for the others, and before that writes into
  /// what the tile before has read: a barrier must lie between.
  __device__ ListedTaps(const HalfOfTaps& half, std::int64_t first_row)
      : warp_(static_cast<int>(threadIdx.x) / 32), lane_(static_cast<int>(threadIdx.x) % 32),
        words_(mask_words(half.conv.KV)) {
    if (lane_ < Shape::kWarpRows) {
      const std::int64_t at = first_row + warp_ * Shape::kWarpRows + lane_;
      if (at < half.conv.M) row_ = half.order[at];
      Shape::rows()[warp_ * Shape::kWarpRows + lane_] = row_;
    }
    for (int word = 0; word < words_; ++word) {
      unsigned bits = 0;
      if (row_ >= 0) {
        bits = static_cast<unsigned>(half.conv.mask[std::int64_t{row_} * words_ + word]);
      }
      for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
      if (lane_ == 0) Shape::masks()[warp_ * words_ + word] = bits & taps_in_word(half, word);
    }
    __syncthreads();  // all masks are there before warp 0 reads them
    if (warp_ == 0) list_taps();
    __syncthreads();  // the list is there before anybody asks for its length
    count_ = static_cast<int>(Shape::list(words_)[32 * words_]);
  }

  /// The row of this lane, or -1; a warp's first lanes have its rows.
  __device__ int row() const { return row_; }
  /// How many taps there are.
  __device__ int count() const { return count_; }
  /// The i-th of them.
  __device__ int tap(int i) const { return static_cast<int>(Shape::list(words_)[i] & 0xffff); }
  /// Whether any row of this warp has the i-th.
  __device__ bool warp_has(int i) const {
    return (Shape::list(words_)[i] >> (16 + warp_) & 1) != 0;
  }

 private:
  /// Warp 0 lists the taps that any warp has.
  __device__ void list_taps() {
    unsigned* const list = Shape::list(words_);
    int listed = 0;
    for (int word = 0; word < words_; ++word) {
      unsigned warps = 0;
#pragma unroll
      for (int w = 0; w < Shape::kWarps; ++w)
        warps |= (Shape::masks()[w * words_ + word] >> lane_ & 1) << w;
      const unsigned any = __ballot_sync(~0u, warps != 0);
      if (warps != 0) {
        list[listed + __popc(any & ((1u << lane_) - 1))] =
            static_cast<unsigned>(32 * word + lane_) | warps << 16;
      }
      listed += __popc(any);
    }
    if (lane_ == 0) list[32 * words_] = static_cast<unsigned>(listed);
  }

  int warp_, lane_;
  int words_;     // of a mask
  int row_ = -1;  // of this lane
  int count_;     // of taps
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
