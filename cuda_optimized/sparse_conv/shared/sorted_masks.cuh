/// @file sorted_masks.cuh
/// @brief A block sorts rows by their masks; implicit_gemm_fused_sort.cu explains it.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// What the threads of a block sort. Thread i holds the keys at places i, i + kThreads ...
/// A key is a row's mask, as far as there is room, and behind it the place where the row stood.
template <int kThreads, int kKeys>
struct SortedMasks {
  static constexpr unsigned kRows = kKeys * kThreads;  ///< That are sorted together: a power of 2.
  static constexpr unsigned kNone = ~0u;               ///< The key of no row: the last one.
  unsigned exchanged[2][kRows];  ///< Keys on their way between warps, by turns.

  /// The key of a row.
  /// @param mask of its first 32 taps, of `taps` in all @param place where it stands, < kRows
  __device__ static unsigned key_of(unsigned mask, int taps, int place) {
    const unsigned high = mask << max(32 - taps, 0) >> 1;  // so that it is less than kNone
    return high / kRows * kRows + static_cast<unsigned>(place);
  }
  /// Where the row of a key stood.
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
          // Separates these stores from the loads below. Those of the turn before are done: the
          // next stores there come after the next barrier.
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

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
