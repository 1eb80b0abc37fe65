/// @file stage_taps.cuh
/// @brief A producer's way through the taps that the rows of a tile meet.
#pragma once

#include "cuda_optimized/sparse_conv/shared/stage_ring.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// A producer's way through the taps of a tile.
template <class Shape>
class TapWalk {
 public:
  /// The taps of a stage, and the inputs of this lane's row at them, or -1.
  struct Group {
    bool exists = false;                    ///< Whether there are any.
    int tap[Shape::kTaps] = {};             ///< Their numbers.
    std::int32_t index[Shape::kTaps] = {};  ///< Inputs, or -1.
  };

  /// @param row this lane's, or -1
  __device__ TapWalk(const Pass<typename Shape::Number>& pass, std::int32_t row)
      : pass_(pass), words_(mask_words(pass.conv.taps)), row_(row) {}

  /// Stores which taps any row of this warp has. Goes from the last word to the first, whose bits
  /// stay in a register.
  __device__ void find(unsigned (&met)[kMaxWords][kProducerWarps]) {
    for (int word = words_ - 1; word >= 0; --word) {
      read(word);
      unsigned any = mine_;
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        any |= __shfl_xor_sync(0xFFFFFFFF, any, distance);
      }
      if (threadIdx.x % 32 == 0) met[word][producer() / 32] = any;
    }
  }
  /// After all warps have found theirs, and before fetch().
  __device__ void begin(const unsigned (&met)[kMaxWords][kProducerWarps]) {
    met_ = met;
    left_ = all_of(0);
  }

  /// The next taps; none if all are done. Behind the last tap the group is filled up with it, but
  /// without inputs.
  __device__ void fetch(Group& group) {
    int tap = 0;
#pragma unroll
    for (int t = 0; t < Shape::kTaps; ++t) {
      while (left_ == 0 && word_ + 1 < words_) {
        read(++word_);
        left_ = all_of(word_);
      }
      const bool exists = left_ != 0;
      const int bit = exists ? __ffs(static_cast<int>(left_)) - 1 : 0;
      if (exists) tap = 32 * word_ + bit;
      group.tap[t] = tap;
      group.index[t] = -1;
      if (exists && (mine_ >> bit & 1u) != 0) {
        group.index[t] = pass_.conv.table[std::int64_t{tap} * pass_.conv.rows + row_];
      }
      if (t == 0) group.exists = exists;
      left_ &= left_ - 1;
    }
  }

 private:
  /// Reads a word of the row's mask.
  __device__ void read(int word) {
    mine_ =
        row_ < 0 ? 0 : static_cast<unsigned>(pass_.conv.mask[std::int64_t{row_} * words_ + word]);
  }
  __device__ unsigned all_of(int word) const {
    unsigned all = 0;
#pragma unroll
    for (int warp = 0; warp < kProducerWarps; ++warp) all |= met_[word][warp];
    return all;
  }

  const Pass<typename Shape::Number>& pass_;
  const unsigned (*met_)[kProducerWarps] = nullptr;
  int words_, word_ = 0;
  unsigned left_ = 0;  // of word_, taps of the tile to come
  unsigned mine_ = 0;  // of word_, taps of this lane's row
  std::int32_t row_;
};

/// The row that this lane owns in a tile, or -1.
template <class Shape>
__device__ std::int32_t own_row(const Pass<typename Shape::Number>& pass, int tile) {
  if (tile >= pass.tiles) return -1;
  const std::int64_t at = corner_of<Shape>(pass, tile).row + producer();
  return at < pass.conv.rows ? pass.conv.order[at] : -1;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
