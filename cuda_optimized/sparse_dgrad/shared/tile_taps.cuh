/// @file tile_taps.cuh
/// @brief The taps of a tile of rows and their input rows: the index of an implicit GEMM's gathered
/// operand A, in shared memory.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {

/// The taps of kRows rows, a word of their masks (32 taps) at a time.
///
///     mask of row 0   . . 1 . 1        tile      . 1 1 . 1     ordinal 0, 1, 2: taps 1, 2, 4
///     mask of row 1   . 1 . . 1        group 0   . 1 1 . 1     met[0] = -1 5 . . .
///     ...                              group 1   . . 1 . 1     met[1] =  7 -1 . . .
///
/// @tparam kGroup rows of a group, which skips the taps that none of its rows has: 16 or 32
template <int kRows, int kGroup>
struct TileTaps {
  static_assert(kRows % 32 == 0 && 32 % kGroup == 0, "a warp finds the taps of whole groups");

  int met[32][kRows];               ///< by ordinal of the tile's tap: the input row of each row
  int row[kRows];                   ///< which row of dx it is, or -1 past the last one
  unsigned groups[kRows / kGroup];  ///< the taps that any row of a group has, as bits

  /// Takes kRows rows in their order, from number `first` on. All threads of the block take part;
  /// find() separates this from what they read.
  __device__ void choose_rows(const std::int32_t* order, std::int64_t first, std::int64_t rows) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows; i += static_cast<int>(blockDim.x)) {
      row[i] = first + i < rows ? order[first + i] : -1;
    }
  }

  /// Finds the taps of word `word`, of those in `wanted`, and their input rows. All threads of the
  /// block take part; each warp finds those of 32 rows at a time.
  /// @returns the tile's taps, as bits
  __device__ unsigned find(const std::int32_t* table, const std::int32_t* mask, int words, int word,
                           unsigned wanted, std::int64_t rows) {
    const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
    __syncthreads();  // separates the reads of the previous word, and the choice of rows, from the
                      // writes below
    for (int i = thread; i < kRows; i += threads) {
      unsigned bits = bits_of(i, mask, words, word) & wanted;
#pragma unroll
      for (int distance = kGroup / 2; distance > 0; distance /= 2) {
        bits |= __shfl_xor_sync(0xFFFFFFFF, bits, distance);
      }
      if (i % kGroup == 0) groups[i / kGroup] = bits;
    }
    __syncthreads();  // the taps of all groups are stored
    unsigned taps = 0;
#pragma unroll
    for (int group = 0; group < kRows / kGroup; ++group) taps |= groups[group];
    for (int i = thread; i < kRows; i += threads) {
      const unsigned mine = bits_of(i, mask, words, word);
      int ordinal = 0;
#pragma unroll 4
      for (unsigned left = taps; left != 0; left &= left - 1) {
        const int bit = __ffs(static_cast<int>(left)) - 1;
        met[ordinal++][i] = (mine >> bit & 1u) != 0 ? table[(32 * word + bit) * rows + row[i]] : -1;
      }
    }
    __syncthreads();  // the input rows are stored
    return taps;
  }

 private:
  __device__ unsigned bits_of(int i, const std::int32_t* mask, int words, int word) const {
    return row[i] < 0 ? 0u : static_cast<unsigned>(mask[std::int64_t{row[i]} * words + word]);
  }
};

/// Those taps of word `word` in first ... end - 1, as bits.
HOST_DEVICE inline unsigned taps_between(int first, int end, int word) {
  const int from = first - 32 * word, to = end - 32 * word;
  if (to <= 0 || from >= 32) return 0;
  const unsigned below_end = to >= 32 ? ~0u : (1u << to) - 1;
  return from <= 0 ? below_end : below_end & ~((1u << from) - 1);
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
