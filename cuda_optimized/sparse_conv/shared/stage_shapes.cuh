/// @file stage_shapes.cuh
/// @brief The host's side of the warp-specialized rungs: the shapes of a stage, which one suits a
/// problem, and the workspace with repacked weights and, where needed, copied rows.
/// implicit_gemm_warp_specialized.cu explains them.
#pragma once

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/half.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

constexpr int kTileRows = 128;  ///< Of a block; a producer thread owns one of them.
constexpr int kRowTiles = kTileRows / kWarpgroupRows;                    ///< Of the consumers.
constexpr int kConsumers = 128;                                          ///< Threads: a warpgroup.
constexpr int kProducers = kTileRows, kProducerWarps = kProducers / 32;  ///< Another one.
constexpr int kBlockThreads = kConsumers + kProducers;                   ///< Per block.
constexpr int kMaxWords = kMaxTaps / 32;                                 ///< Of a mask.

/// The size of a stage and the number of stages. A stage has `taps` tiles of rows, followed by as
/// many of weights, all with rows of `tap_bytes`.
struct StageSizes {
  int tap_bytes;   ///< Bytes of a row's channels in a stage: 32, 64 or 128.
  int taps;        ///< Of a stage; above 1 only where tap_bytes are all channels.
  int channels;    ///< Size of a block's tile.
  int stages = 3;  ///< Number of stages in shared memory.
  int blocks = 3;  ///< Blocks that should be resident on an SM.
};

/// The constants that follow from these sizes for a type.
template <class T, StageSizes kSizes>
struct StageShape {
  using Number = T;                                          ///< Type of features and weights.
  static constexpr int kTapBytes = kSizes.tap_bytes;         ///< Of a row of a tap.
  static constexpr int kTaps = kSizes.taps;                  ///< Per stage.
  static constexpr int N = kSizes.channels;                  ///< Channels of a tile.
  static constexpr int kStages = kSizes.stages;              ///< Number of stages in shared memory.
  static constexpr int kBlocks = kSizes.blocks;              ///< Blocks that should be resident on
                                                             ///< an SM.
  static constexpr int kSize = static_cast<int>(sizeof(T));  ///< Bytes of an element.
  static constexpr int kDepth = kTapBytes / kSize;           ///< Channels of a tap in a stage.
  static constexpr int kCount = kPiece / kSize;              ///< Elements of a piece.
  static constexpr int kPieces = kTapBytes / kPiece;         ///< Of a row.
  static constexpr int kBytesA = kTileRows * kTapBytes;      ///< Rows of a tap.
  static constexpr int kBytesB = N * kTapBytes;              ///< Weights of a tap.
  static constexpr int kStageBytes = kTaps * (kBytesA + kBytesB);  ///< Per stage.
  /// Dynamic shared memory of a block.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kSwizzleAtom;
  /// Registers per thread at which kBlocks fit on an SM.
  static constexpr int kEvenly = 65536 / kBlocks / kBlockThreads / 8 * 8;
  /// Registers of a producer, where consumers need more for their accumulators than producers for
  /// their indices; 0: evenly.
  static constexpr int kProducerRegisters = kRowTiles * N / 2 + 40 > kEvenly ? 56 : 0;
  /// Registers of a consumer: all others.
  static constexpr int kConsumerRegisters =
      kProducerRegisters == 0 ? 0 : 2 * kEvenly - kProducerRegisters;
  static_assert(kConsumers == kProducers && kRowTiles == 2);
  static_assert(kStageBytes % kSwizzleAtom == 0 && kBytesB % (8 * kTapBytes) == 0);
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

/// Calls body(shape) with the first shape that has all channels, or the last. Where that has
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

/// The reason why producer warps do not support this number of rows and channels, or none.
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
  return why_not("sm_90a");
}

/// A short description of its choice.
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

/// The tiles of all rows.
template <class T>
struct Pass {
  GatheredRows<T> conv;  ///< `from` and `weights` as prepare() leaves them
  int pitch;             ///< elements of a row of `from`
  int chunks;            ///< stages that a row's channels take
  int tiles_m, tiles_n;  ///< tiles along rows and along channels
  int tiles;             ///< of rows and channels
  unsigned* handed_out;  ///< counter of tiles beyond the first one of each block
};

/// Layout of the workspace, in order of addresses.
template <class T>
struct Workspace {
  unsigned* handed_out;  ///< See Pass.
  T* blocks;             ///< Of weights.
  T* copy;               ///< Of rows.
  std::size_t bytes;     ///< Total size in bytes.
};

/// @param sources rows of `from` @param begin the workspace, or null to compute its size
template <class Shape>
Workspace<typename Shape::Number> workspace_at(int taps, std::int64_t sources, int summed,
                                               int channels, std::byte* begin) {
  using T = typename Shape::Number;
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  work.handed_out = cutter.take<unsigned>(1);
  work.blocks = cutter.take<T>(std::int64_t{ceil_div(channels, Shape::N)} * taps *
                               ceil_div(summed, Shape::kDepth) * Shape::N * Shape::kDepth);
  work.copy = cutter.take<T>(sources * ceil_div(summed, Shape::kCount) * Shape::kCount);
  work.bytes = cutter.bytes();
  return work;
}

/// Bytes of workspace for a product.
/// @param rows of `to` @param sources rows of `from`
template <class T>
std::size_t producers_workspace_bytes(int taps, std::int64_t rows, std::int64_t sources, int summed,
                                      int channels) {
  std::size_t bytes = 0;
  with_shape<T>(rows, summed, channels, [&]<class Shape>(Shape) {
    bytes = workspace_at<Shape>(taps, sources, summed, channels, nullptr).bytes;
  });
  return bytes;
}

/// The parameters of prepare(), which runs before the GEMM.
template <class T>
struct Preparation {
  int taps,                 ///< As GatheredRows::taps.
      summed,               ///< As GatheredRows::summed.
      channels,             ///< As GatheredRows::channels.
      chunks,               ///< As Pass::chunks.
      tiles_n;              ///< As Pass::tiles_n.
  const T *weights, *rows;  ///< as GatheredRows::weights and GatheredRows::from
  T* blocks;                ///< [tiles_n][taps][chunks]: weights [N][kDepth], permuted
  int pitch;                ///< elements of a row of `copy`; a multiple of a piece
  std::int64_t pieces;      ///< of `copy`; 0: there is none
  bool by_pieces;           ///< whether `rows` consist of pieces, as well
  T* copy;                  ///< [...][pitch]: rows as operands, zeros after the last channel
  unsigned* handed_out;     ///< zeroed

  /// Of the blocks of weights.
  template <class Shape>
  HOST_DEVICE std::int64_t weight_pieces() const {
    return std::int64_t{tiles_n} * taps * chunks * Shape::N * Shape::kPieces;
  }
};

/// The preparation of a GEMM.
/// @param sources rows of conv.from
template <class Shape>
Preparation<typename Shape::Number> preparation_of(const GatheredRows<typename Shape::Number>& conv,
                                                   std::int64_t sources, std::byte* workspace) {
  using T = typename Shape::Number;
  const Workspace<T> work =
      workspace_at<Shape>(conv.taps, sources, conv.summed, conv.channels, workspace);
  Preparation<T> preparation = {
      .taps = conv.taps,
      .summed = conv.summed,
      .channels = conv.channels,
      .chunks = ceil_div(conv.summed, Shape::kDepth),
      .tiles_n = ceil_div(conv.channels, Shape::N),
      .weights = conv.weights,
      .rows = conv.from,
      .blocks = work.blocks,
      .pitch = ceil_div(conv.summed, Shape::kCount) * Shape::kCount,
      .pieces = 0,
      .by_pieces = rows_are_pieces<Shape>(conv.summed) && begins_at_piece(conv.from),
      .copy = work.copy,
      .handed_out = work.handed_out};
  if (std::is_same_v<T, float> || !preparation.by_pieces) {
    preparation.pieces = sources * (preparation.pitch / Shape::kCount);
  }
  return preparation;
}

/// The parameters of the GEMM after the preparation.
template <class Shape>
Pass<typename Shape::Number> pass_after(const Preparation<typename Shape::Number>& preparation,
                                        const GatheredRows<typename Shape::Number>& conv) {
  const auto tiles_m = static_cast<int>(ceil_div<std::int64_t>(conv.rows, kTileRows));
  Pass<typename Shape::Number> pass = {.conv = conv,
                                       .pitch = preparation.pitch,
                                       .chunks = preparation.chunks,
                                       .tiles_m = tiles_m,
                                       .tiles_n = preparation.tiles_n,
                                       .tiles = tiles_m * preparation.tiles_n,
                                       .handed_out = preparation.handed_out};
  pass.conv.weights = preparation.blocks;
  // Also where there is no row at all: a copy of 0 bytes needs an aligned address, too.
  if (preparation.pieces != 0 || !begins_at_piece(conv.from)) pass.conv.from = preparation.copy;
  return pass;
}

/// Stores piece i of those at `to`.
template <class T, int kCount>
__device__ void store_piece(T* to, std::int64_t i, const T (&numbers)[kCount]) {
  uint4 whole;
  std::memcpy(&whole, numbers, sizeof whole);
  reinterpret_cast<uint4*>(to)[i] = whole;
}

/// Copies the rows as operands, if they need it. Any one-dimensional grid.
template <class Shape>
__device__ void copy_rows(const Preparation<typename Shape::Number>& p) {
  using T = typename Shape::Number;
  T numbers[Shape::kCount];
  const int pieces_of_row = p.pitch / Shape::kCount;
  for (const std::int64_t i : grid_stride(p.pieces)) {
    if (p.by_pieces) {
      const uint4 whole = reinterpret_cast<const uint4*>(p.rows)[i];
      std::memcpy(numbers, &whole, sizeof whole);
    }
    const std::int64_t row = p.by_pieces ? 0 : i / pieces_of_row;
#pragma unroll
    for (int j = 0; j < Shape::kCount; ++j) {
      if (!p.by_pieces) {
        const std::int64_t s = (i - row * pieces_of_row) * Shape::kCount + j;
        numbers[j] = s < p.summed ? p.rows[row * p.summed + s] : T{};
      }
      numbers[j] = as_factor(numbers[j]);
    }
    store_piece(p.copy, i, numbers);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
