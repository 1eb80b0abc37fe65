/// @file pair_stages.cuh
/// @brief Stages of gathered rows that wgmma reads across, and how producer warps fill them;
/// split_k_wgmma.cu explains it.
#pragma once

#include "core/rulebook_problem.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/sparse_conv/shared/permuted_pieces.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_ring.cuh"
#include "cuda_optimized/sparse_conv/shared/warpgroup_accumulators.cuh"
#include "cuda_optimized/sparse_wgrad/shared/mma_number.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

using sparse_conv::producers::kBlockThreads;
using sparse_conv::producers::kConsumers;
using sparse_conv::producers::kProducers;
using sparse_conv::producers::producer;

/// What a stage is, and how many there are.
struct PairStageSizes {
  int channels;  ///< Of a block's tile: of Cin, and of Cout.
  int pairs;     ///< Of a stage.
  int stages;    ///< In shared memory.
  int blocks;    ///< That should fit on an SM.
};

/// A tile of channels x channels, and its stages. A stage is so many pairs' rows of features, and
/// behind them their rows of dy, each in pieces of up to 64 channels: [piece][pair][channel].
template <class T, PairStageSizes kSizes>
struct PairStages {
  using Number = T;                                                    ///< Of features and dy.
  static constexpr int kTile = kSizes.channels;                        ///< Of Cin, and of Cout.
  static constexpr int kPairs = kSizes.pairs;                          ///< Of a stage.
  static constexpr int kStages = kSizes.stages;                        ///< In shared memory.
  static constexpr int kBlocks = kSizes.blocks;                        ///< On an SM.
  static constexpr int kColumns = kTile < 64 ? kTile : 64;             ///< Channels of a piece.
  static constexpr int kRowBytes = kColumns * 2;                       ///< Of a row of it.
  static constexpr int kPieceBytes = kPairs * kRowBytes;               ///< Of a piece.
  static constexpr int kFactorBytes = kTile / kColumns * kPieceBytes;  ///< Of one factor.
  static constexpr int kStageBytes = 2 * kFactorBytes;                 ///< Of both.
  static constexpr int kRowTiles = ceil_div(kTile, 64);  ///< Products of wgmma, one below another.
  static constexpr int kWarpPairs = kPairs / 2;          ///< Whose rows a producer warp brings.
  static constexpr int kNumbers = ceil_div(kWarpPairs, 32);  ///< Of rows, that a lane looks up.
  static constexpr int kAhead = 2;                           ///< Steps that it looks up ahead.
  /// Dynamic shared memory of a block.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + gemm::kAtom;
  /// What the compiler gives each thread, so that kBlocks fit.
  static constexpr int kEvenly = 65536 / kBlocks / kBlockThreads / 8 * 8;
  /// Registers of a producer, where consumers need more for their sums; 0: all have as many.
  static constexpr int kProducerRegisters = kTile == 128 ? 56 : 0,
                       kConsumerRegisters =
                           kTile == 128 ? 2 * kEvenly - 56 : 0;  ///< Of a consumer.
  static_assert(kStageBytes % gemm::kAtom == 0 && kFactorBytes % gemm::kAtom == 0);
  static_assert(kBlocks * (kSharedBytes + 2048) <= 227 * 1024, "shared memory of an SM");
};

/// Which pairs the steps of a part have: one follows the other at a distance.
struct PairSteps {
  int first,     ///< pair of the first step
      left,      ///< pairs from there to the end of the list, > 0
      distance;  ///< pairs from a step to the next
};

/// A producer warp's half of the rows of one factor: warps 0 and 1 bring features, 2 and 3 dy.
/// @tparam kAligned rows can be copied in pieces of 16 bytes
template <class Shape, bool kAligned>
class StagedRows {
 public:
  using Number = typename Shape::Number;  ///< what rows consist of

  /// @param c0 the tile's first channel
  __device__ StagedRows(const Number* from, int channels, int c0, const std::int32_t* pairs,
                        PairSteps steps)
      : from_(from + c0), channels_(static_cast<unsigned>(channels)), count_(channels - c0),
        pair_(pairs + std::int64_t{steps.first} * kPairColumns + 1 + factor()), steps_(steps) {}

  /// The numbers of rows that this lane asks for.
  struct Numbers {
    int of[Shape::kNumbers];  ///< -1: none
  };

  /// Asks for the numbers of the next step's rows: long before they are needed, because the rows
  /// can only be asked for when the numbers are there.
  __device__ void load(Numbers& numbers) {
#pragma unroll
    for (int j = 0; j < Shape::kNumbers; ++j) {
      const int below = 32 * j + producer() % 32, pair = first_row() + below;
      numbers.of[j] =
          below < Shape::kWarpPairs && pair < steps_.left ? pair_[pair * kPairColumns] : -1;
    }
    steps_.left -= steps_.distance;
    if (steps_.left > 0) pair_ += std::int64_t{steps_.distance} * kPairColumns;
  }

  /// Asks for the rows; zeros past the end.
  __device__ void copy(const Numbers& numbers, char* stage) const {
    constexpr int kCopies = Shape::kTile / 8, kAtOnce = 32 / kCopies;  // of a row; rows of a copy
    constexpr int kPieces = Shape::kColumns / 8;
    static_assert(Shape::kWarpPairs % 8 == 0, "the permutation must repeat");
    const int lane = producer() % 32, copy = lane % kCopies, below = lane / kCopies;
    const int left = count_ - copy * 8;
    const Number* const from = from_ + (left > 0 ? copy * 8 : 0);
    char* const to = stage + factor() * Shape::kFactorBytes + copy / kPieces * Shape::kPieceBytes +
                     (first_row() + below) * Shape::kRowBytes;
#pragma unroll
    for (int i = 0; i < Shape::kWarpPairs; i += kAtOnce) {
      const int number = __shfl_sync(0xFFFFFFFF, numbers.of[i / 32], i % 32 + below);
      const int piece = copy % kPieces ^ sparse_conv::permutation<kPieces>(i | below);
      // The product of unsigned numbers of 32 bits, and the sum, are one instruction.
      copy_piece<Number, kAligned>(
          reinterpret_cast<Number*>(to + i * Shape::kRowBytes + piece * 16),
          from + static_cast<unsigned>(max(number, 0)) * std::uint64_t{channels_},
          number >= 0 ? left : 0);
    }
  }

 private:
  __device__ static int factor() { return producer() / 64; }
  __device__ static int first_row() { return producer() / 32 % 2 * Shape::kWarpPairs; }

  const Number* from_;
  unsigned channels_;  // of a row
  int count_;          // and of them from c0 on
  const std::int32_t* pair_;
  PairSteps steps_;
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
