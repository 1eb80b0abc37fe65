/// @file stage_ring.cuh
/// @brief The device's side of the warp-specialized rungs, without their loops: the ring of stages
/// and its barriers, a producer's list of taps and its copies, and the consumers' store.
/// implicit_gemm_warp_specialized.cu has the loops.
#pragma once

#include <cstring>

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_shapes.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// The first row and channel of a tile.
struct Corner {
  std::int64_t row;  ///< Its index in the order.
  int channel;       ///< The first one.
};
/// The corner of a tile, by its number.
template <class Shape>
__device__ Corner corner_of(const Pass<typename Shape::Number>& pass, int tile) {
  // The last rows of the order have the most taps: their tiles start first.
  const int m = tile / pass.tiles_n;
  return {std::int64_t{pass.tiles_m - 1 - m} * kTileRows, (tile - m * pass.tiles_n) * Shape::N};
}

/// A stage's index in the ring and its phase bit: the number of passes through the ring, modulo 2.
template <class Shape>
struct Place {
  int stage = 0;       ///< Its index.
  unsigned round = 0;  ///< The phase bit.
  /// The next stage.
  __device__ void advance() {
    if (++stage < Shape::kStages) return;
    stage = 0;
    round ^= 1;
  }
};

/// What ends with a stage: nothing, its tile, or all tiles of the block.
enum Ends { kNothing, kTile, kBlock };

/// Shared state of producers and consumers, besides the stages.
template <class Shape>
struct Ring {
  std::uint64_t full[Shape::kStages],  ///< all copies have landed
      empty[Shape::kStages];           ///< all consumer warps have read it
  /// The tile of a stage, and what ends with it.
  struct Label {
    int tile,               ///< Its index.
        ends;               ///< An Ends.
  } label[Shape::kStages];  ///< Indexed by stage.
  // For the producers alone; two of each, for this tile and the next one.
  unsigned met[2][kMaxWords][kProducerWarps];  ///< taps that any row of a warp has
  int following[2];                            ///< the tile after this one
};

/// A producer's number among the producers.
__device__ inline int producer() { return static_cast<int>(threadIdx.x) - kConsumers; }

/// setmaxnreg: allocates registers to the warp, or releases some. All warps of a warpgroup call it.
template <int kRegisters, int kBefore>
__device__ void set_registers() {
  if constexpr (kRegisters > kBefore) {
    ptx::setmaxnreg_inc<kRegisters>();
  } else if constexpr (kRegisters > 0 && kRegisters < kBefore) {
    ptx::setmaxnreg_dec<kRegisters>();
  }
}

/// A producer's iteration over the taps of a tile.
template <class Shape>
class TapWalk {
 public:
  /// The taps of a stage, and the inputs of this lane's row at them, or -1.
  struct Group {
    bool exists = false;                    ///< Whether there are any.
    int tap[Shape::kTaps] = {};             ///< Their indices.
    std::int32_t index[Shape::kTaps] = {};  ///< Inputs, or -1.
  };

  /// @param row this lane's, or -1
  __device__ TapWalk(const Pass<typename Shape::Number>& pass, std::int32_t row)
      : pass_(pass), words_(mask_words(pass.conv.taps)), row_(row) {}

  /// Stores which taps any row of this warp has. Goes from the last word to the first, whose bits
  /// stay in a register.
  __device__ void find(unsigned (&met)[kMaxWords][kProducerWarps]) {
    for (int word = words_ - 1; word >= 0; --word) {
      read(word);
      unsigned any = mine_;
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        any |= __shfl_xor_sync(0xFFFFFFFF, any, distance);
      }
      if (threadIdx.x % 32 == 0) met[word][producer() / 32] = any;
    }
  }
  /// After all warps have found theirs, and before fetch().
  __device__ void begin(const unsigned (&met)[kMaxWords][kProducerWarps]) {
    met_ = met;
    left_ = all_of(0);
  }

  /// The next taps; none if all are done. An incomplete group is filled with its last tap, without
  /// inputs.
  __device__ void fetch(Group& group) {
    int tap = 0;
#pragma unroll
    for (int t = 0; t < Shape::kTaps; ++t) {
      while (left_ == 0 && word_ + 1 < words_) {
        read(++word_);
        left_ = all_of(word_);
      }
      const bool exists = left_ != 0;
      const int bit = exists ? __ffs(static_cast<int>(left_)) - 1 : 0;
      if (exists) tap = 32 * word_ + bit;
      group.tap[t] = tap;
      group.index[t] = -1;
      if (exists && (mine_ >> bit & 1u) != 0) {
        group.index[t] = pass_.conv.table[std::int64_t{tap} * pass_.conv.rows + row_];
      }
      if (t == 0) group.exists = exists;
      left_ &= left_ - 1;
    }
  }

 private:
  /// Reads a word of the row's mask.
  __device__ void read(int word) {
    mine_ =
        row_ < 0 ? 0 : static_cast<unsigned>(pass_.conv.mask[std::int64_t{row_} * words_ + word]);
  }
  __device__ unsigned all_of(int word) const {
    unsigned all = 0;
#pragma unroll
    for (int warp = 0; warp < kProducerWarps; ++warp) all |= met_[word][warp];
    return all;
  }

  const Pass<typename Shape::Number>& pass_;
  const unsigned (*met_)[kProducerWarps] = nullptr;
  int words_, word_ = 0;
  unsigned left_ = 0;  // of word_, taps of the tile to come
  unsigned mine_ = 0;  // of word_, taps of this lane's row
  std::int32_t row_;
};

/// The row that this lane owns in a tile, or -1.
template <class Shape>
__device__ std::int32_t own_row(const Pass<typename Shape::Number>& pass, int tile) {
  if (tile >= pass.tiles) return -1;
  const std::int64_t at = corner_of<Shape>(pass, tile).row + producer();
  return at < pass.conv.rows ? pass.conv.order[at] : -1;
}

/// Starts the copies of this warp's rows of a tap: channels `s0` and up.
/// @param index of the row that this lane owns
template <class Shape>
__device__ void ask_for_rows(const Pass<typename Shape::Number>& pass, std::int32_t index, int s0,
                             char* a) {
  constexpr int kAtOnce = 32 / Shape::kPieces;  // rows of a warp's copy
  const int lane = producer() % 32, piece = lane % Shape::kPieces, below = lane / Shape::kPieces;
  const int s = s0 + piece * Shape::kCount;
  const bool inside = s < pass.pitch;
#pragma unroll
  for (int j = 0; j < 32; j += kAtOnce) {
    const std::int32_t met = __shfl_sync(0xFFFFFFFF, index, j + below);
    const int row = producer() / 32 * 32 + j + below;
    const bool exists = met >= 0 && inside;
    ptx::cp_async<kPiece>(
        a + row * Shape::kTapBytes + (piece ^ permutation<Shape::kPieces>(row)) * kPiece,
        pass.conv.from + (exists ? std::int64_t{met} * pass.pitch + s : 0), exists ? kPiece : 0);
  }
}

/// Converts an accumulator to the element of the result; undefined for a channel that does not
/// exist.
template <class T>
__device__ T finished(const GatheredRows<T>& conv, int channel, float sum) {
  const bool biased = conv.bias != nullptr && channel < conv.channels;
  const float bias = biased ? conv.bias[channel] : 0.0f;
  return rounded_to<T>(activated(conv.activation, sum + bias));
}

/// Stores a warp's 16 rows. After wgmma, each of four lanes has two neighbouring accumulators of
/// the 8 that a fragment has of a row. They exchange pairs, until each lane has neighbours of one
/// fragment:
///
///                fragment 0   1   2   3                              0 ... 3
///       lane 0           a0  b0  c0  d0     with lane ^ 1, and       a0 a1 a2 a3
///       lane 1           a1  b1  c1  d1     with lane ^ 2 :          b0 b1 b2 b3
///       lane 2           a2  b2  c2  d2                              c0 c1 c2 c3
///       lane 3           a3  b3  c3  d3                              d0 d1 d2 d3
///
/// @param rows of this lane, or -1 @param first the tile's first channel
template <class Shape, class Sums>
__device__ void store_pieces(const GatheredRows<typename Shape::Number>& conv, const Sums& sums,
                             const std::int32_t (&rows)[2], int first) {
  using T = typename Shape::Number;
  constexpr int kGroup = kExchanged<Shape>;
  constexpr int kWords = Shape::kSize / 2;  // of a pair
  struct alignas(2 * kGroup * Shape::kSize) Piece {
    std::uint32_t words[kGroup][kWords];
  };
  const int place = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j0 = 0; j0 < Shape::N / 8; j0 += kGroup) {
      Piece piece;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const int channel = first + 8 * (j0 + j) + 2 * place;
        T pair[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          pair[e] = finished(conv, channel + e, sums.of[4 * (j0 + j) + 2 * half + e]);
        }
        std::memcpy(piece.words[j], pair, sizeof pair);
      }
#pragma unroll
      for (int apart = 1; apart < kGroup; apart *= 2) {
        const bool upper = (place & apart) != 0;
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          if ((j & apart) != 0) continue;
#pragma unroll
          for (int w = 0; w < kWords; ++w) {
            std::uint32_t &low = piece.words[j][w], &high = piece.words[j + apart][w];
            const std::uint32_t given = __shfl_xor_sync(0xFFFFFFFF, upper ? low : high, apart);
            (upper ? low : high) = given;
          }
        }
      }
      const int channel = first + 8 * (j0 + place % kGroup) + 2 * (place / kGroup * kGroup);
      if (rows[half] < 0 || channel >= conv.channels) continue;
      T* const to = conv.to + std::int64_t{rows[half]} * conv.channels + channel;
      *reinterpret_cast<Piece*>(to) = piece;
    }
  }
}

/// Stores a tile of accumulators.
/// @param sums accumulators of this warp, kRowTiles of them @param rows of this lane, or -1
/// @param first the tile's first channel
/// @param pieces whether rows of the result consist of them
template <class Shape, class Sums>
__device__ void store_tile(const GatheredRows<typename Shape::Number>& conv,
                           const Sums (&sums)[kRowTiles], const std::int32_t (&rows)[kRowTiles][2],
                           int first, bool pieces) {
  if (pieces) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) store_pieces<Shape>(conv, sums[i], rows[i], first);
    return;
  }
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    sums[i].for_each([&](int row, int column, const auto& values) {
      const std::int32_t to = row < 8 ? rows[i][0] : rows[i][1];
      if (to < 0) return;
      const int channel = first + column;
      for (int e = 0; e < 2 && channel + e < conv.channels; ++e) {
        conv.to[std::int64_t{to} * conv.channels + channel + e] =
            finished(conv, channel + e, values[e]);
      }
    });
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
