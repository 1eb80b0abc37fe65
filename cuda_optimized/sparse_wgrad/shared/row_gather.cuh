/// @file row_gather.cuh
/// @brief The rows of a part's pairs, copied to shared memory step by step: one factor of the outer
/// products; split_k_atomics.cu explains it.
#pragma once

#include "core/rulebook_problem.hpp"
#include "cuda_optimized/sparse_wgrad/shared/mma_number.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

/// Copies the rows of pairs, a step of them at a time, into the tiles of a stage: [pair][channel].
/// @tparam Layout of a tile: the type Number, kPairs and kChannels, and where pair i's channel c
/// is: at(i, c); 16 bytes of channels stay together
/// @tparam kThreads of the block, all of which take part
/// @tparam kAligned rows can be copied in pieces of 16 bytes
template <class Layout, int kThreads, bool kAligned>
class RowGather {
 public:
  using Number = typename Layout::Number;  ///< what rows consist of

  /// @param column which entry of a pair is the row
  /// @param first, count the part's pairs
  __device__ RowGather(const Number* from, int channels, int c0, const std::int32_t* pairs,
                       int column, int first, int count)
      : from_(from), channels_(channels), c_(c0 + channel()),
        pair_(pairs + std::int64_t{first} * kPairColumns + column), left_(count) {}

  /// Asks for the numbers of the next step's rows: long before they are needed, because the rows
  /// can only be asked for when the numbers are there.
  __device__ void load_rows() {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int pair = first_row() + j * kRowsAtOnce;
      rows_[j] = pair < left_ ? pair_[pair * kPairColumns] : -1;
    }
    left_ -= Layout::kPairs;
    if (left_ > 0) pair_ += Layout::kPairs * kPairColumns;
  }

  /// Asks for the rows whose numbers were asked for before; zeros past the part's end.
  __device__ void copy_rows(Number* tile) const {
    const int count = channels_ - c_;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const bool exists = rows_[j] >= 0 && count > 0;
      copy_piece<Number, kAligned>(tile + Layout::at(first_row() + j * kRowsAtOnce, channel()),
                                   from_ + (exists ? std::int64_t{rows_[j]} * channels_ + c_ : 0),
                                   exists ? count : 0);
    }
  }

 private:
  static constexpr int kNumbers = 16 / static_cast<int>(sizeof(Number));  // of a copy
  static constexpr int kPieces = Layout::kChannels / kNumbers;            // copies of a row
  static constexpr int kRowsAtOnce = kThreads / kPieces;                  // that a block copies
  static constexpr int kRows = Layout::kPairs / kRowsAtOnce;              // that a thread copies
  static_assert(kThreads % kPieces == 0 && Layout::kPairs % kRowsAtOnce == 0);

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kPieces; }
  __device__ static int channel() { return static_cast<int>(threadIdx.x) % kPieces * kNumbers; }

  const Number* from_;
  int channels_, c_;
  const std::int32_t* pair_;  // the next step's first one, if there is a next step
  int left_;                  // pairs from there on; 0 or less past the end
  int rows_[kRows];
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
