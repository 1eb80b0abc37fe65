/// @file gathered_rows.cuh
/// @brief Shared parts of the rungs on tensor cores: the convolution as a GEMM over gathered rows,
/// rows in shared memory as permuted pieces of 16 bytes, and a warpgroup's accumulators.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/activation.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// to[row][c] = bias[c] + sum over the taps k with from_row = table[k][row] >= 0, and over all s,
/// of from[from_row][s] * weights[k][s][c], activated.
template <class T>
struct GatheredRows {
  int taps;                                  ///< KV
  int rows;                                  ///< of `to`
  int summed;                                ///< Channels of `from`, over which the sum runs.
  int channels;                              ///< Channels of `to`.
  const std::int32_t* table;                 ///< [taps][rows]: rows of `from`, or -1
  const std::int32_t* mask;                  ///< [rows][mask_words(taps)]: which are not -1
  const std::int32_t* order;                 ///< [rows]: rows with like masks are neighbours
  const T* from;                             ///< [...][summed]
  const T* weights;                          ///< [taps][summed][channels], or, where they are
                                             ///< contiguous along k, [taps][channels][summed]
  T* to;                                     ///< [rows][channels], wholly written
  const float* bias = nullptr;               ///< [channels], or null
  Activation activation = Activation::none;  ///< Applied to complete results.
};

constexpr int kPiece = 16;      ///< Bytes of a copy, and of what ldmatrix loads of a row.
constexpr int kMaxTaps = 1024;  ///< Their list takes 4 KB of shared memory.

/// The reason why tensor cores do not support the precision of a problem, or none.
inline Declined declined_by_precision(const SparseConvProblem& conv) {
  if (conv.dtype == DType::f32 && conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  return {};
}

/// Whether tiles of 128 rows and channels are fewer than the multiprocessors: smaller ones keep
/// more of them busy.
inline bool has_few_tiles(std::int64_t rows, int channels) {
  const std::int64_t tiles = ceil_div<std::int64_t>(rows, 128) * ceil_div(channels, 128);
  return tiles < enough_blocks(multiprocessors());
}

/// Whether pieces can be copied from or to there.
inline bool begins_at_piece(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kPiece == 0;
}

/// Whether all rows consist of pieces.
template <class T>
bool consists_of_pieces(const GatheredRows<T>& conv) {
  constexpr int kCount = kPiece / static_cast<int>(sizeof(T));
  return conv.summed % kCount == 0 && conv.channels % kCount == 0 && begins_at_piece(conv.from) &&
         begins_at_piece(conv.weights) && begins_at_piece(conv.to);
}

/// The same for a rung's choice, without arrays: as if they began at multiples of 16 bytes.
template <class T>
bool would_consist_of_pieces(int summed, int channels) {
  GatheredRows<T> conv{};
  conv.summed = summed;
  conv.channels = channels;
  return consists_of_pieces(conv);
}

/// A forward pass with the rows in the order of their masks, as it was given.
template <class T>
GatheredRows<T> gathered_rows(const SparseConvProblem& problem, const SparseConvArrays& arrays) {
  return {.taps = problem.book.KV,
          .rows = problem.M,
          .summed = problem.Cin,
          .channels = problem.Cout,
          .table = arrays.nbr,
          .mask = arrays.mask,
          .order = arrays.order,
          .from = arrays.features,
          .weights = arrays.weights,
          .to = arrays.y,
          .bias = arrays.bias,
          .activation = problem.activation};
}

constexpr int kDeep = 32;  ///< Bytes along k of one mma.sync or wgmma: 8 floats or 16 fp16/bf16
                           ///< elements.
constexpr int kSwizzleAtom = 1024;  ///< Bytes after which the 128-byte swizzle repeats.
constexpr int kWarpRows = 32;       ///< Of a tile, whose taps are found together.

/// The swizzle of a row's pieces: piece p is stored at position p ^ permutation(row). Pieces of the
/// same index in eight rows, which ldmatrix reads together, are in different banks.
template <int kPieces>
HOST_DEVICE constexpr int permutation(int row) {
  static_assert(kPieces == 2 || kPieces == 4 || kPieces % 8 == 0);
  return kPieces == 2 ? row / 4 % 2 : kPieces == 4 ? row / 2 % 4 : row % 8;
}

/// Copies a piece of which `left` elements exist, and zeros after them.
template <bool kPieces, class T>
__device__ inline void copy_piece(char* to, const T* from, int left) {
  if constexpr (kPieces) {
    ptx::cp_async<kPiece>(to, from, left > 0 ? kPiece : 0);
  } else {
    constexpr int kCount = kPiece / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kCount; ++i) reinterpret_cast<T*>(to)[i] = i < left ? from[i] : T{};
  }
}

constexpr int kWarpgroupRows = 64;  ///< Of a wgmma.

/// A warpgroup's accumulators, 64 rows and kN channels, in wgmma's fragment layout.
template <class T, int kN>
struct WarpgroupSums {
  float of[kN / 2] = {};               ///< The accumulators of this thread.
  static constexpr int kTogether = 2;  ///< Neighbours in a row.

  /// Adds the products of 32 bytes along k; the operands are passed as descriptors.
  __device__ void add(std::uint64_t left, std::uint64_t right) {
    if constexpr (std::is_same_v<T, float>) {
      ptx::wgmma_m64k8_tf32<kN>(of, left, right, true);
    } else if constexpr (std::is_same_v<T, Half>) {
      ptx::wgmma_m64k16_f16<kN>(of, left, right, true);
    } else {
      ptx::wgmma_m64k16_bf16<kN>(of, left, right, true);
    }
  }

  /// Calls visit(row, channel, values) for each two neighbouring accumulators; rows count from the
  /// warp's 16.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) {
        const float values[2] = {of[4 * j + 2 * half], of[4 * j + 2 * half + 1]};
        visit(8 * half + lane / 4, 8 * j + lane % 4 * 2, values);
      }
    }
  }
};

/// An element in the form that wgmma needs: float32 rounded to TF32, since wgmma truncates; other
/// types unchanged.
template <class T>
__device__ T as_factor(T number) {
  if constexpr (std::is_same_v<T, float>) {
    return __uint_as_float(ptx::to_tf32(number));
  } else {
    return number;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
