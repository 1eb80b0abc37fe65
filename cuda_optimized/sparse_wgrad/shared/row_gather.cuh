/// @file row_gather.cuh
/// @brief Rows of pairs gathered into shared memory step by step, as one operand of the outer
/// products, and the mma instruction of each number type. split_k_atomics.cu and split_k_mma.cu
/// have the loops.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

/// d += a * b for a [16][kSteps], b [kSteps][8]; floats are rounded to TF32 before.
template <class T>
struct MmaNumber;

/// Floats; mma.sync takes 10 bits of their fraction.
template <>
struct MmaNumber<float> {
  static constexpr int kSteps = 8;  ///< along k, of an instruction
  /// Rounds to nearest; mma.sync by itself would truncate.
  template <int kCount>
  __device__ static void round(std::uint32_t (&fragment)[kCount]) {
#pragma unroll
    for (int e = 0; e < kCount; ++e) fragment[e] = ptx::to_tf32(__uint_as_float(fragment[e]));
  }
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k8_tf32(d, a, b);
  }
};

/// float16.
template <>
struct MmaNumber<Half> {
  static constexpr int kSteps = 16;  ///< along k, of an instruction
  /// Nothing to do.
  template <int kCount>
  __device__ static void round(std::uint32_t (&)[kCount]) {}
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_f16(d, a, b);
  }
};

/// bfloat16.
template <>
struct MmaNumber<BFloat16> {
  static constexpr int kSteps = 16;  ///< along k, of an instruction
  /// Nothing to do.
  template <int kCount>
  __device__ static void round(std::uint32_t (&)[kCount]) {}
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
};

/// Copies 16 bytes of a row to shared memory, of which the first `count` numbers exist; zeros for
/// the others.
/// @tparam kAligned all of them exist, or none, and `from` is a multiple of 16 bytes: then the copy
/// is asynchronous. Otherwise it is there at once, and passes through registers.
template <class T, bool kAligned>
__device__ inline void copy_piece(T* to, const T* from, int count) {
  if constexpr (kAligned) {
    ptx::cp_async<16>(to, from, count > 0 ? 16 : 0);
  } else {
    constexpr int kNumbers = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) to[i] = i < count ? from[i] : T{};
  }
}

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

  /// Loads the indices of the next step's rows, long before they are needed: a row
  /// can be copied only when its index is there.
  __device__ void load_rows() {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int pair = first_row() + j * kRowsAtOnce;
      rows_[j] = pair < left_ ? pair_[pair * kPairColumns] : -1;
    }
    left_ -= Layout::kPairs;
    if (left_ > 0) pair_ += Layout::kPairs * kPairColumns;
  }

  /// Copies the rows whose indices were loaded before; zeros past the part's end.
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

constexpr int kStepPairs = 16;  ///< Pairs whose rows are in shared memory at a time, in each stage.

/// A tile of kStepPairs rows, as they lie.
template <int kTileChannels>
struct PlainRows {
  using Number = float;                                                 ///< See RowGather.
  static constexpr int kPairs = kStepPairs, kChannels = kTileChannels;  ///< See RowGather.
  /// Where channel c of pair i is.
  HOST_DEVICE static int at(int i, int c) { return i * kChannels + c; }
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
