/// @file fragment_accumulators.cuh
/// @brief Rows that are loaded directly into mma fragments: the shapes, the loads, the accumulators
/// and their store. implicit_gemm_direct_fragments.cu has the loop.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/cuda/row_or_zeros.hpp"
#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::fragments {

constexpr int kPart = 32;   ///< Taps whose weights are in shared memory: those of a mask's word.
constexpr int kOfLane = 8;  ///< Channels of a row that a lane takes at once: a piece.
constexpr int kTogether = 4 * kOfLane;  ///< Channels of a row that are multiplied at once.

/// The sizes of a kernel.
struct Sizes {
  int threads;  ///< Per block.
  int blocks;   ///< Blocks that should be resident on an SM.
  int ahead;    ///< Taps, or pairs of taps, whose rows are in flight together.
};
/// By channels of a tap that are multiplied at once, 32 or 16, and those of the result.
template <int kSummed, int kChannels>
constexpr Sizes kSizesOf = {.threads = 512, .blocks = 1, .ahead = 2};
/// Two blocks, since their accumulators take few registers.
template <>
constexpr Sizes kSizesOf<16, 16> = {.threads = 512, .blocks = 2, .ahead = 1};
/// Three, for half as many threads.
template <>
constexpr Sizes kSizesOf<16, 32> = {.threads = 256, .blocks = 3, .ahead = 1};
/// As many accumulators as permit two blocks per SM.
template <int kSummed>
constexpr Sizes kSizesOf<kSummed, 64> = {.threads = 256, .blocks = 2, .ahead = 1};

/// The constants that follow from these sizes for a type.
template <class T, int kSummed, int kChannels>
struct FragmentShape {
  static constexpr Sizes kSizes = kSizesOf<kSummed, kChannels>;  ///< See there.
  using Number = T;                                              ///< Type of features, weights and
                                                                 ///< result.
  static constexpr int kDepth = kSummed;                         ///< Channels of a tap.
  static constexpr int kTaps = kTogether / kDepth;               ///< Side by side along k.
  static constexpr int N = kChannels;                            ///< Channels of a tile.
  static constexpr int kThreads = kSizes.threads;                ///< Per block.
  static constexpr int kBlocks = kSizes.blocks;                  ///< Blocks that should be resident
                                                                 ///< on an SM.
  static constexpr int kAhead = kSizes.ahead;                    ///< See Sizes.
  static constexpr int kWarps = kThreads / 32;      ///< Of a block, with kWarpRows each.
  static constexpr int kPieces = N / 8;             ///< Of a row of weights.
  static constexpr int kTapBytes = kDepth * N * 2;  ///< Of a tap's weights.
  static constexpr int kLanesOfTap = 32 / kTaps;    ///< Lanes that look up indices of the same tap.
};

/// The offset of a piece of row s of a tap's weights, in bytes. ldmatrix reads two neighbouring
/// rows of each of four lanes together, kOfLane apart: the swizzle places them in different banks.
template <class Shape>
HOST_DEVICE constexpr int place_of(int s, int piece) {
  const int lane = s / kOfLane, at = s * Shape::kPieces + piece;
  const int other = Shape::kPieces == 2   ? lane % 2 + lane / 2 * 4
                    : Shape::kPieces == 4 ? lane
                                          : lane * 2 + s % 2;
  return (at ^ other) * kPiece;
}

/// Starts the copies of the weights of up to kPart taps, [taps][kDepth][N]; zeros past the last
/// channels.
/// @param tap the first one @param s0, n0 the first channels
template <class Shape, bool kWhole>
__device__ void ask_for_weights(const GatheredRows<typename Shape::Number>& conv, int tap, int s0,
                                int n0, char* to) {
  constexpr int kOfTap = Shape::kDepth * Shape::kPieces;
  const int taps = min(conv.taps - tap, kPart);
#pragma unroll 1  // unrolled, its addresses would take registers that the accumulators need
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

/// A warp's accumulators, kWarpRows rows: row 8 i + lane / 4 is half i % 2 of fragment i / 2.
template <class Shape>
struct FragmentSums {
  using T = typename Shape::Number;                                      ///< Of rows and weights.
  static constexpr int kRows = kWarpRows / 16, kColumns = Shape::N / 8;  ///< Fragments.
  float of[kRows][kColumns][4];  ///< In mma.sync's fragment layout.

  /// The accumulators start with the bias.
  __device__ FragmentSums(const GatheredRows<T>& conv, int n0) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int channel = n0 + 8 * j + static_cast<int>(threadIdx.x) % 4 * 2 + e;
        float bias = 0.0f;
        if (conv.bias != nullptr && channel < conv.channels) bias = conv.bias[channel];
#pragma unroll
        for (int i = 0; i < 2 * kRows; ++i) of[i / 2][j][i % 2 * 2 + e] = bias;
      }
    }
  }

  /// Adds the products of kTogether channels.
  /// @param rows this lane's channels of its four rows
  /// @param weights of the lane's tap @param at the offset of their first piece
  __device__ void add(const uint4 (&rows)[2 * kRows], const char* weights, int at) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int h = 0; h < kColumns / 2; ++h) {
        std::uint32_t right[4];
        ptx::ldmatrix_x4_trans(
            right, weights + (at ^ 2 * h * kPiece) + 4 * step * Shape::kPieces * kPiece);
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const uint4 upper = rows[2 * i], lower = rows[2 * i + 1];
          const std::uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
          const std::uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const std::uint32_t column[2] = {right[2 * j], right[2 * j + 1]};
            if constexpr (std::is_same_v<T, Half>) {
              ptx::mma_m16n8k16_f16(of[i][2 * h + j], step == 0 ? first : second, column);
            } else {
              ptx::mma_m16n8k16_bf16(of[i][2 * h + j], step == 0 ? first : second, column);
            }
          }
        }
      }
    }
  }
};

/// Stores a warp's accumulators. Lanes exchange pairs with their neighbours, until each has four
/// contiguous accumulators of a row: four lanes store 32 bytes.
template <class Shape, bool kWhole>
__device__ void store_sums(const GatheredRows<typename Shape::Number>& conv,
                           FragmentSums<Shape>& sums, int first, int n0) {
  using T = typename Shape::Number;
  const int lane = static_cast<int>(threadIdx.x) % 32, place = lane % 4;
  const bool odd = place % 2 != 0;
  const auto pair_of = [&](const float* two) {
    const T pair[2] = {rounded_to<T>(activated(conv.activation, two[0])),
                       rounded_to<T>(activated(conv.activation, two[1]))};
    std::uint32_t word;
    std::memcpy(&word, pair, sizeof word);
    return word;
  };
#pragma unroll
  for (int i = 0; i < 2 * FragmentSums<Shape>::kRows; ++i) {
    const int row = first + 8 * i + lane / 4;
#pragma unroll
    for (int j = 0; j < Shape::N / 8; j += 2) {
      uint2 four{pair_of(&sums.of[i / 2][j][i % 2 * 2]),
                 pair_of(&sums.of[i / 2][j + 1][i % 2 * 2])};
      const std::uint32_t given = __shfl_xor_sync(0xFFFFFFFF, odd ? four.x : four.y, 1);
      (odd ? four.x : four.y) = given;
      const int channel = n0 + 8 * j + (odd ? 8 : 0) + 2 * (place & 2);
      if (row >= conv.rows || channel >= conv.channels) continue;
      T* const to = conv.to + std::int64_t{row} * conv.channels + channel;
      if constexpr (kWhole) {
        *reinterpret_cast<uint2*>(to) = four;
      } else {
        T numbers[4];
        std::memcpy(numbers, &four, sizeof numbers);
        for (int e = 0; e < 4 && channel + e < conv.channels; ++e) to[e] = numbers[e];
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::fragments
