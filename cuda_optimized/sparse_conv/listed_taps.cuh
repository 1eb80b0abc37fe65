/// @file listed_taps.cuh
/// @brief The shape of a tile whose warps skip taps on their own, its rows, and the list of the
/// taps that any of them has; implicit_gemm_cp_async.cu explains it.
#pragma once

#include "cuda_optimized/sparse_conv/halves.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// The shape of a block's work, and its shared memory: first the stages, then the rest.
/// @tparam Tile_ a gemm::ThreadTile: rows x channels of y, and how deep a step is
/// @tparam kStages_ steps whose tiles are in shared memory, or on their way; at least 2
template <class Tile_, int kStages_>
struct AsyncRows {
  using Tile = Tile_;                                 ///< Of y.
  static constexpr int kStages = kStages_;            ///< See above.
  static constexpr int kWarps = Tile::kThreads / 32;  ///< Of a block.
  static constexpr int kWarpRows = Tile::kWarpM;      ///< A warp copies and multiplies them.
  static constexpr int kPitchA = Tile::kBlockK + 4;   ///< Of the gathered rows.
  static constexpr int kPitchB = Tile::kBlockN;       ///< Of the weights.
  static constexpr int kRowFloats = Tile::kBlockM * kPitchA;  ///< Of a stage's gathered rows.
  static constexpr int kStageFloats = kRowFloats + Tile::kBlockK * kPitchB;  ///< Of a stage.
  static_assert(Tile::kBlockK % 8 == 0 && kWarpRows <= 32);
  static_assert(Tile::kWarpsN == 1, "a warp multiplies the rows that it copies, and no others");
  static_assert(kWarps <= 16, "a list's entry has 16 bits for them");

  /// Dynamic shared memory of a block.
  static constexpr std::size_t shared_bytes(int taps) {
    const int words = mask_words(taps);
    const int behind = Tile::kBlockM * (1 + kStages) + kWarps * words + 32 * words + 1;
    return (static_cast<std::size_t>(kStages) * kStageFloats + static_cast<std::size_t>(behind)) *
           sizeof(float);
  }

  /// [kBlockM][kPitchA]: a stage's gathered rows.
  static __device__ float* rows_at(int stage) {
    return dynamic_shared<float>() + stage * kStageFloats;
  }
  /// [kBlockK][kPitchB]: a stage's weights.
  static __device__ float* weights_at(int stage) { return rows_at(stage) + kRowFloats; }
  /// [kBlockM]: numbers of the tile's rows, or -1.
  static __device__ std::int32_t* rows() {
    return dynamic_shared<std::int32_t>() + kStages * kStageFloats;
  }
  /// [kStages][kBlockM]: nbr at some taps.
  static __device__ std::int32_t* inputs(int slot) { return rows() + (1 + slot) * Tile::kBlockM; }
  /// [kWarps][words]: taps that any row of a warp has.
  static __device__ unsigned* masks() { return reinterpret_cast<unsigned*>(inputs(kStages)); }
  /// [32 * words + 1]: taps that the block does, with a bit from 16 on for each warp that has it;
  /// last their number.
  static __device__ unsigned* list(int words) { return masks() + kWarps * words; }
};

/// A tile's rows, and the taps that any of them has.
template <class Shape>
class ListedTaps {
 public:
  /// All threads of the block call it. It waits twice for the others, and before that writes into
  /// what the tile before has read: a barrier must lie between.
  __device__ ListedTaps(const Half& half, std::int64_t first_row)
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
