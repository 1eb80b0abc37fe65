/// @file fragment_shapes.cuh
/// @brief The shapes of a product whose rows go straight into fragments, where weights lie in
/// shared memory, and how both are brought; implicit_gemm_direct_fragments.cu explains it.
#pragma once

#include <cstring>

#include "core/cuda/row_or_zeros.hpp"
#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/permuted_pieces.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::fragments {

constexpr int kPart = 32;   ///< Taps whose weights are in shared memory: those of a mask's word.
constexpr int kOfLane = 8;  ///< Channels of a row that a lane takes at once: a piece.
constexpr int kTogether = 4 * kOfLane;  ///< Channels of a row that are multiplied at once.

/// The sizes of a kernel.
struct Sizes {
  int threads;  ///< Of a block.
  int blocks;   ///< That should fit on an SM.
  int ahead;    ///< Taps, or pairs of taps, whose rows are on their way together.
};
/// By channels of a tap that are multiplied at once, 32 or 16, and those of the result.
template <int kSummed, int kChannels>
constexpr Sizes kSizesOf = {.threads = 512, .blocks = 1, .ahead = 2};
/// Two blocks, since their sums take few registers.
template <>
constexpr Sizes kSizesOf<16, 16> = {.threads = 512, .blocks = 2, .ahead = 1};
/// Three, for half as many threads.
template <>
constexpr Sizes kSizesOf<16, 32> = {.threads = 256, .blocks = 3, .ahead = 1};
/// As many sums as leave two blocks an SM.
template <int kSummed>
constexpr Sizes kSizesOf<kSummed, 64> = {.threads = 256, .blocks = 2, .ahead = 1};

/// What follows from them for a type.
template <class T, int kSummed, int kChannels>
struct FragmentShape {
  static constexpr Sizes kSizes = kSizesOf<kSummed, kChannels>;  ///< See there.
  using Number = T;                                              ///< Of features, weights, result.
  static constexpr int kDepth = kSummed;                         ///< Channels of a tap.
  static constexpr int kTaps = kTogether / kDepth;               ///< Side by side along k.
  static constexpr int N = kChannels;                            ///< Channels of a tile.
  static constexpr int kThreads = kSizes.threads;                ///< Of a block.
  static constexpr int kBlocks = kSizes.blocks;                  ///< That should fit on an SM.
  static constexpr int kAhead = kSizes.ahead;                    ///< See Sizes.
  static constexpr int kWarps = kThreads / 32;      ///< Of a block, with kWarpRows each.
  static constexpr int kPieces = N / 8;             ///< Of a row of weights.
  static constexpr int kTapBytes = kDepth * N * 2;  ///< Of a tap's weights.
  static constexpr int kLanesOfTap = 32 / kTaps;    ///< Lanes that look up indices of the same tap.
};

/// Where a piece of row s of a tap's weights lies, in bytes. ldmatrix reads two neighbouring rows
/// of each of four lanes together, kOfLane apart: they are permuted into different banks.
template <class Shape>
HOST_DEVICE constexpr int place_of(int s, int piece) {
  const int lane = s / kOfLane, at = s * Shape::kPieces + piece;
  const int other = Shape::kPieces == 2   ? lane % 2 + lane / 2 * 4
                    : Shape::kPieces == 4 ? lane
                                          : lane * 2 + s % 2;
  return (at ^ other) * kPiece;
}

/// Asks for the weights of up to kPart taps, [taps][kDepth][N]; zeros past the last channels.
/// @param tap the first one @param s0, n0 the first channels
template <class Shape, bool kWhole>
__device__ void ask_for_weights(const GatheredRows<typename Shape::Number>& conv, int tap, int s0,
                                int n0, char* to) {
  constexpr int kOfTap = Shape::kDepth * Shape::kPieces;
  const int taps = min(conv.taps - tap, kPart);
#pragma unroll 1  // unrolled, its addresses would take registers that the sums need
  for (int i = static_cast<int>(threadIdx.x); i < taps * kOfTap; i += Shape::kThreads) {
    const int t = i / kOfTap, s = i % kOfTap / Shape::kPieces, piece = i % Shape::kPieces;
    const int channel = n0 + piece * 8;
    const bool exists = s0 + s < conv.summed && channel < conv.channels;
    const std::int64_t row = std::int64_t{tap + t} * conv.summed + s0 + s;
    copy_piece<kWhole>(to + t * Shape::kTapBytes + place_of<Shape>(s, piece),
                       conv.weights + (exists ? row * conv.channels + channel : 0),
                       exists ? conv.channels - channel : 0);
  }
  ptx::cp_async_commit_group();
}

/// A lane's channels of a row, from channel s on; zeros if there is none, and past the last one.
template <bool kWhole, class T>
__device__ uint4 channels_of(const GatheredRows<T>& conv, std::int32_t row, int s) {
  if constexpr (kWhole) {
    return row_or_zeros(conv.from + s, row, static_cast<unsigned>(conv.summed) * 2);
  } else {
    T numbers[kOfLane] = {};
    for (int i = 0; i < kOfLane && row >= 0; ++i) {
      if (s + i < conv.summed) numbers[i] = conv.from[std::int64_t{row} * conv.summed + s + i];
    }
    uint4 piece;
    std::memcpy(&piece, numbers, sizeof piece);
    return piece;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::fragments
