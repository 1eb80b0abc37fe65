/// @file gathered_rows.cuh
/// @brief A sparse convolution as a product of gathered rows: what the rungs on tensor cores are
/// given, and what the host asks about it.
#pragma once

#include <algorithm>

#include "core/activation.hpp"
#include "core/cuda/device_attribute.hpp"
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
  const T* weights;                          ///< [taps][summed][channels], or, where they lie
                                             ///< along k, [taps][channels][summed]
  T* to;                                     ///< [rows][channels], wholly written
  const float* bias = nullptr;               ///< [channels], or null
  Activation activation = Activation::none;  ///< Of complete sums.
};

constexpr int kPiece = 16;      ///< Bytes of a copy, and of what ldmatrix loads of a row.
constexpr int kMaxTaps = 1024;  ///< Their list takes 4 KB of shared memory.

/// Why tensor cores cannot multiply the numbers of a problem, if so.
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

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
