/// @file weight_chunks.cuh
/// @brief How weights are cut into pieces that fit into constant memory, and are copied to it. Host
/// code.
#pragma once

#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Constant memory: 64 KB for each .cu file.
inline constexpr int kConstantFloats = 64 * 1024 / sizeof(float);

/// Why a problem is declined if not even one channel of a filter fits into constant memory.
inline Declined too_large_for_constant_memory(const Conv2dProblem& conv) {
  return text("a filter of ", conv.R, " x ", conv.S, " weights does not fit into the ",
              kConstantFloats * sizeof(float) / 1024, " KB of constant memory");
}

/// The weights that are in constant memory during one launch, as [k][c][r][s].
struct WeightPiece {
  int k_begin, k_end;  ///< filters
  int c_begin, c_end;  ///< channels, counted within a group
};

/// What becomes of a piece's sums when they are stored: ReLU must wait for the last channels, for
/// it is not additive.
HOST_DEVICE constexpr Activation activation_of(const Conv2dProblem& conv,
                                               const WeightPiece& piece) {
  return piece.c_end == conv.C / conv.groups ? conv.activation : Activation::none;
}

/// The size of a WeightPiece.
struct PieceSize {
  std::int64_t filters, channels;  ///< At most; all channels, or a part of one filter's.
};

/// As much as fits into constant memory. Needs R * S <= kConstantFloats.
inline PieceSize piece_size(const Conv2dProblem& conv) {
  const std::int64_t group_c = conv.C / conv.groups;
  // Filter-channels that fit; a piece takes all channels, or one filter.
  const std::int64_t fitting = kConstantFloats / (std::int64_t{conv.R} * conv.S);
  return {std::max<std::int64_t>(1, fitting / group_c), std::min(group_c, fitting)};
}

/// Calls body(piece) for pieces that together are all the weights. If one filter is larger than
/// constant memory, its channels are cut too: then these pieces follow one another, c ascending,
/// and all but the first add to what y holds. Needs R * S <= kConstantFloats.
template <class Body>
void for_each_piece(const Conv2dProblem& conv, const Body& body) {
  const std::int64_t group_c = conv.C / conv.groups;
  const auto [piece_filters, piece_channels] = piece_size(conv);

  for (std::int64_t k = 0; k < conv.K; k += piece_filters) {
    const std::int64_t k_end = std::min<std::int64_t>(k + piece_filters, conv.K);
    for (std::int64_t c = 0; c < group_c; c += piece_channels) {
      body(WeightPiece{static_cast<int>(k), static_cast<int>(k_end), static_cast<int>(c),
                       static_cast<int>(std::min(c + piece_channels, group_c))});
    }
  }
}

/// Copies a piece of the weights [K][C/groups][R][S] to constant memory, in the order of the
/// stream: after the kernels that still read the piece before, and before the next kernel.
inline void upload(const Conv2dProblem& conv, const WeightPiece& piece, const float* weights,
                   float (&constant_memory)[kConstantFloats]) {
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  const std::int64_t filter = conv.C / conv.groups * taps;                 // floats in `weights`
  const std::int64_t filter_piece = (piece.c_end - piece.c_begin) * taps;  // floats in the piece
  const bool contiguous = filter_piece == filter;
  const int copies = contiguous ? 1 : piece.k_end - piece.k_begin;
  const std::int64_t floats = contiguous ? (piece.k_end - piece.k_begin) * filter : filter_piece;
  for (int i = 0; i < copies; ++i) {
    check(cudaMemcpyToSymbolAsync(constant_memory,
                                  weights + (piece.k_begin + i) * filter + piece.c_begin * taps,
                                  static_cast<std::size_t>(floats) * sizeof(float),
                                  static_cast<std::size_t>(i * filter_piece) * sizeof(float),
                                  cudaMemcpyDeviceToDevice, current_stream()));
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
