/// @file gather_by_table.cuh
/// @brief The copies of gathered elements into tiles of shared memory, by a table: each element
/// along k = (c, r, s) has a tap of its own. Where there are too few channels for whole steps.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// One k = (c, r, s), where the steps are not taken tap by tap.
struct TapOffset {
  unsigned offset;  ///< bytes from the window's corner, modulo 2^32
  unsigned bits;    ///< bit r, and bit R + s
};
/// Rows of the table of offsets in shared memory: 16 KB.
inline constexpr int kMaxTableRows = 2048;

/// Whether the steps along k are (c, r, s) with a table, rather than (r, s, c): where whole tiles
/// of channels would be mostly padding.
inline bool takes_table(const WindowProduct& product, int block_k) {
  return product.channels % block_k != 0 && product.R + product.S <= 31 &&
         std::int64_t{product.channels} * product.R * product.S <= kMaxTableRows - block_k &&
         std::int64_t{product.channels} * product.H * product.W < 0x40000000;
}

/// Bytes of a product's table in shared memory.
inline std::size_t table_bytes(const GatheredProduct& product) {
  return product.table ? static_cast<std::size_t>(product.k_rows) * sizeof(TapOffset) : 0;
}

/// What a thread gathers, by a table: an entry says where its tap lies in every window.
template <class T>
class GatherByTable {
 public:
  static constexpr bool kTable = true;  ///< takes one, which fill() has filled

  /// Fills the table [k_rows]. A barrier must separate it from the first copy().
  __device__ static void fill(const GatheredProduct& product, TapOffset* table) {
    const int taps = product.R * product.S;
    for (int row = static_cast<int>(threadIdx.x); row < product.k_rows; row += T::kThreads) {
      const int c = row / taps, r = row % taps / product.S, s = row % product.S;
      const int offset = (c * product.H + r * product.tap.h) * product.W + s * product.tap.w;
      // Rows behind the last channel: no pixel has that tap.
      table[row] = c < product.channels ? TapOffset{static_cast<unsigned>(offset) * kBytes,
                                                    1u << r | 1u << (product.R + s)}
                                        : TapOffset{0, ~0u};
    }
  }

  /// @param in [images][groups][channels][H][W]
  __device__ GatherByTable(const GatheredProduct& product, const BlockPlace& place, const float* in,
                           int, const TapOffset* table)
      : windows_(product, place, in), table_(table) {
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      missing_[i] = missing_taps(product, windows_.h[i], windows_.w[i]);
    }
  }

  /// Starts the copies of that step's tile [kBlockK][kBlockN].
  __device__ void copy(const GatheredProduct&, int step, float* tile) {
    float* const to = windows_.first(tile);
    const TapOffset* const taps = table_ + step * T::kBlockK;
    // Entries are read several at a time: a copy does not begin before its entry is there.
    constexpr int kAtOnce = T::kRows < 8 ? T::kRows : 8;
    static_assert(T::kRows % kAtOnce == 0);
#pragma unroll
    for (int j0 = 0; j0 < T::kRows; j0 += kAtOnce) {
      TapOffset tap[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) tap[j] = taps[windows_.row + (j0 + j) * T::kRowStep];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
        for (int i = 0; i < T::kPixels; ++i) {
          const bool inside = (tap[j].bits & missing_[i]) == 0;
          const unsigned offset = inside ? windows_.corner[i] + tap[j].offset : 0;
          ptx::cp_async<kBytes>(to + windows_.at(j0 + j, i), windows_.group + offset,
                                inside ? kBytes : 0);
        }
      }
    }
  }

 private:
  static constexpr int kBytes = GatheredWindows<T>::kBytes;

  __device__ static unsigned missing_taps(const GatheredProduct& product, int h, int w) {
    unsigned missing = ~0u;
    for (int r = 0; r < product.R; ++r) {
      if (is_inside(h + r * product.tap.h, product.H)) missing &= ~(1u << r);
    }
    for (int s = 0; s < product.S; ++s) {
      if (is_inside(w + s * product.tap.w, product.W)) {
        missing &= ~(1u << (product.R + s));
      }
    }
    return missing;
  }

  GatheredWindows<T> windows_;
  const TapOffset* table_;
  unsigned missing_[T::kPixels];  ///< bit r: row r of taps is not inside; bit R + s
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
