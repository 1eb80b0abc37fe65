/// @file stage_shapes.cuh
/// @brief Which shapes producer warps and wgmma have, and which one suits a problem;
/// implicit_gemm_warp_specialized.cu explains them.
#pragma once

#include <algorithm>
#include <tuple>

#include "core/half.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"
#include "cuda_optimized/sparse_conv/shared/warpgroup_accumulators.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

constexpr int kTileRows = 128;  ///< Of a block; a producer thread owns one of them.
constexpr int kRowTiles = kTileRows / kWarpgroupRows;                    ///< Of the consumers.
constexpr int kConsumers = 128;                                          ///< Threads: a warpgroup.
constexpr int kProducers = kTileRows, kProducerWarps = kProducers / 32;  ///< Another one.
constexpr int kBlockThreads = kConsumers + kProducers;                   ///< Of a block.
constexpr int kMaxWords = kMaxTaps / 32;                                 ///< Of a mask.

/// What a stage is, and how many there are. A stage has `taps` tiles of rows, and behind them as
/// many of weights, all with rows of `tap_bytes`.
struct StageSizes {
  int tap_bytes;   ///< Of the channels of a row that lie in a stage: 32, 64 or 128.
  int taps;        ///< Of a stage; above 1 only where tap_bytes are all channels.
  int channels;    ///< Of a block's tile.
  int stages = 3;  ///< In shared memory.
  int blocks = 3;  ///< That should fit on an SM.
};

/// What follows from them for a type.
template <class T, StageSizes kSizes>
struct StageShape {
  using Number = T;                                          ///< Of features and weights.
  static constexpr int kTapBytes = kSizes.tap_bytes;         ///< Of a row of a tap.
  static constexpr int kTaps = kSizes.taps;                  ///< Of a stage.
  static constexpr int N = kSizes.channels;                  ///< Channels of a tile.
  static constexpr int kStages = kSizes.stages;              ///< In shared memory.
  static constexpr int kBlocks = kSizes.blocks;              ///< That should fit on an SM.
  static constexpr int kSize = static_cast<int>(sizeof(T));  ///< Bytes of a number.
  static constexpr int kDepth = kTapBytes / kSize;           ///< Channels of a tap in a stage.
  static constexpr int kCount = kPiece / kSize;              ///< Numbers of a piece.
  static constexpr int kPieces = kTapBytes / kPiece;         ///< Of a row.
  static constexpr int kBytesA = kTileRows * kTapBytes;      ///< Rows of a tap.
  static constexpr int kBytesB = N * kTapBytes;              ///< Weights of a tap.
  static constexpr int kStageBytes = kTaps * (kBytesA + kBytesB);  ///< Of a stage.
  /// Dynamic shared memory of a block.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + gemm::kAtom;
  /// What the compiler gives each thread, so that kBlocks fit.
  static constexpr int kEvenly = 65536 / kBlocks / kBlockThreads / 8 * 8;
  /// Registers of a producer, where consumers need more for their sums than producers for their
  /// indices; 0: evenly.
  static constexpr int kProducerRegisters = kRowTiles * N / 2 + 40 > kEvenly ? 56 : 0;
  /// Registers of a consumer: all others.
  static constexpr int kConsumerRegisters =
      kProducerRegisters == 0 ? 0 : 2 * kEvenly - kProducerRegisters;
  static_assert(kConsumers == kProducers && kRowTiles == 2);
  static_assert(kStageBytes % gemm::kAtom == 0 && kBytesB % (8 * kTapBytes) == 0);
  static_assert(kBlocks * (kSharedBytes + 2304) <= 227 * 1024, "shared memory of an SM");
};

/// All shapes, in the order in which with_shape() tries them.
template <class T>
using Shapes = std::tuple<
    // 16 channels of 16 bits
    StageShape<T, StageSizes{.tap_bytes = 32, .taps = 4, .channels = 16, .stages = 4}>,
    StageShape<T, StageSizes{.tap_bytes = 32, .taps = 4, .channels = 32}>,
    // 16 of float32; 32 of 16 bits
    StageShape<T, StageSizes{.tap_bytes = 64, .taps = 2, .channels = 16, .stages = 4}>,
    StageShape<T, StageSizes{.tap_bytes = 64, .taps = 2, .channels = 32}>,
    StageShape<T, StageSizes{.tap_bytes = 64, .taps = 2, .channels = 64}>,
    // 32 of float32; 64; and more
    StageShape<T, StageSizes{.tap_bytes = 128, .taps = 1, .channels = 32}>,
    StageShape<T, StageSizes{.tap_bytes = 128, .taps = 1, .channels = 64}>,
    StageShape<T, StageSizes{.tap_bytes = 128, .taps = 1, .channels = 128, .blocks = 2}>>;

/// Calls body(shape) with the first shape that has all channels, or the last. But where that has
/// few tiles, with the one of 64 channels, which has twice as many.
template <class T, class Body>
void with_shape(std::int64_t rows, int summed, int channels, const Body& body) {
  const bool few = has_few_tiles(rows, channels);
  bool done = false;
  const auto maybe = [&]<class Shape>(Shape shape, bool is_last) {
    const bool is_deep = Shape::kTapBytes == 128;
    const bool fits = (summed <= Shape::kDepth || is_deep) &&
                      (channels <= Shape::N || (few && is_deep && Shape::N == 64));
    if (done || !(fits || is_last)) return;
    done = true;
    body(shape);
  };
  std::apply(
      [&](auto... shapes) {
        std::size_t left = sizeof...(shapes);
        (maybe(shapes, --left == 0), ...);
      },
      Shapes<T>{});
}

/// How many fragments of 8 channels four lanes exchange, to store pieces of 16 bytes, or of 8 where
/// a tile has no more than 16 channels of 16 bits.
template <class Shape>
constexpr int kExchanged = std::min(kPiece / (2 * Shape::kSize), Shape::N / 8);

/// Whether gathered rows, or those of the result, consist of pieces, if the first one begins at a
/// multiple of 16 bytes.
template <class Shape>
bool rows_are_pieces(int summed) {
  return summed % Shape::kCount == 0;
}
/// Whether a row of the result is whole pairs of what two threads exchange.
template <class Shape>
bool result_is_pieces(int channels) {
  return channels % (2 * kExchanged<Shape>) == 0;
}

/// Why producer warps cannot gather for a product of so many rows and channels, if so.
inline Declined declined_by_producers(const SparseConvProblem& conv, std::int64_t rows,
                                      int channels) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  if (rows / kTileRows * ceil_div(channels, 128) >= 1 << 30) {
    return "2^30 tiles or more of 128 rows and 128 channels";
  }
  // A copy of the features and the weights beside it: their bytes are counted in 64 bits.
  if (std::max(std::int64_t{conv.N} * conv.Cin, std::int64_t{conv.M} * conv.Cout) >= std::int64_t{1}
                                                                                         << 56) {
    return "2^56 features or more";
  }
  return gemm::why_no_wgmma();
}

/// What it chooses, in a few words.
/// @param rows of `to`
inline std::string producers_in_words(const SparseConvProblem& conv, std::int64_t rows, int summed,
                                      int channels) {
  std::string words;
  with_float_type(conv.dtype, [&]<class T>(T) {
    with_shape<T>(rows, summed, channels, [&]<class Shape>(Shape) {
      words = text(dtype_name(conv), ", ", Shape::kTaps, " x ", Shape::kTapBytes, " bytes, ",
                   Shape::N, " channels", rows_are_pieces<Shape>(summed) ? ", rows in pieces" : "",
                   result_is_pieces<Shape>(channels) ? ", result in pieces" : "");
    });
  });
  return words;
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
