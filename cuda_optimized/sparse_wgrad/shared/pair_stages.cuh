/// @file pair_stages.cuh
/// @brief What surrounds the loops of split_k_wgmma.cu: the shape of a stage, how producer warps
/// gather rows into it, and the second launch, which adds the parts in a fixed order.
#pragma once

#include "core/cuda/early_launch.hpp"
#include "core/rulebook_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

constexpr int kConsumers = 128;                         ///< Threads: a warpgroup that multiplies.
constexpr int kProducers = 128;                         ///< Four warps that gather.
constexpr int kBlockThreads = kConsumers + kProducers;  ///< Per block.

/// A producer's number among the producers.
__device__ inline int producer() { return static_cast<int>(threadIdx.x) - kConsumers; }

/// What a stage is, and how many there are.
struct PairStageSizes {
  int channels;  ///< Of a block's tile: of Cin, and of Cout.
  int pairs;     ///< Per stage.
  int stages;    ///< Number of stages in shared memory.
  int blocks;    ///< Blocks that should be resident on an SM.
};

/// A tile of channels x channels, and its stages. A stage is so many pairs' rows of features, and
/// followed by their rows of dy, each in pieces of up to 64 channels: [piece][pair][channel].
template <class T, PairStageSizes kSizes>
struct PairStages {
  using Number = T;                                         ///< Of features and dy.
  static constexpr int kTile = kSizes.channels;             ///< Of Cin, and of Cout.
  static constexpr int kPairs = kSizes.pairs;               ///< Per stage.
  static constexpr int kStages = kSizes.stages;             ///< Number of stages in shared
                                                            ///< memory.
  static constexpr int kBlocks = kSizes.blocks;             ///< On an SM.
  static constexpr int kColumns = kTile < 64 ? kTile : 64;  ///< Channels of a piece.
  static constexpr int kRowBytes = kColumns * 2;            ///< Of a row of it.
  static constexpr int kPieceBytes = kPairs * kRowBytes;    ///< Of a piece.
  static constexpr int kFactorBytes = kTile / kColumns * kPieceBytes;  ///< Of one operand.
  static constexpr int kStageBytes = 2 * kFactorBytes;                 ///< Of both.
  static constexpr int kRowTiles = ceil_div(kTile, 64);  ///< Products of wgmma, one below another.
  static constexpr int kWarpPairs = kPairs / 2;          ///< Whose rows a producer warp copies.
  static constexpr int kNumbers = ceil_div(kWarpPairs, 32);  ///< Of rows, that a lane looks up.
  static constexpr int kAhead = 2;                           ///< Steps that it looks up ahead.
  /// Dynamic shared memory of a block.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + sparse_conv::kSwizzleAtom;
  /// Registers per thread at which kBlocks fit on an SM.
  static constexpr int kEvenly = 65536 / kBlocks / kBlockThreads / 8 * 8;
  /// Registers of a producer, where consumers need more for their accumulators; 0: evenly
  /// distributed.
  static constexpr int kProducerRegisters = kTile == 128 ? 56 : 0,
                       kConsumerRegisters =
                           kTile == 128 ? 2 * kEvenly - 56 : 0;  ///< Of a consumer.
  static_assert(kStageBytes % sparse_conv::kSwizzleAtom == 0 &&
                kFactorBytes % sparse_conv::kSwizzleAtom == 0);
  static_assert(kBlocks * (kSharedBytes + 2048) <= 227 * 1024, "shared memory of an SM");
};

/// A stage's index in the ring, and its phase bit, the number of passes through the ring modulo 2:
/// the parity that a wait for its barrier needs.
template <class S>
struct Place {
  int stage = 0;       ///< Its index.
  unsigned round = 0;  ///< Passes through the ring, modulo 2.
  /// The next stage.
  __device__ void advance() {
    if (++stage < S::kStages) return;
    stage = 0;
    round ^= 1;
  }
};

/// Which pairs the steps of a part have: one follows the other at a distance.
struct PairSteps {
  int first,     ///< pair of the first step
      left,      ///< pairs from there to the end of the list, > 0
      distance;  ///< pairs from a step to the next
};

/// A producer warp's half of the rows of one operand: warps 0 and 1 copy features, 2 and 3 dy.
/// @tparam kAligned rows can be copied in pieces of 16 bytes
template <class Shape, bool kAligned>
class StagedRows {
 public:
  using Number = typename Shape::Number;  ///< type of the elements

  /// @param c0 the tile's first channel
  __device__ StagedRows(const Number* from, int channels, int c0, const std::int32_t* pairs,
                        PairSteps steps)
      : from_(from + c0), channels_(static_cast<unsigned>(channels)), count_(channels - c0),
        pair_(pairs + std::int64_t{steps.first} * kPairColumns + 1 + factor()), steps_(steps) {}

  /// The indices of rows that this lane copies.
  struct Numbers {
    int of[Shape::kNumbers];  ///< -1: none
  };

  /// Loads the indices of the next step's rows, well before they are needed: a row can be copied
  /// only after its index has been loaded.
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

  /// Copies the rows; zeros past the end.
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
      // Unsigned 32-bit product and addition: one IMAD instruction.
      sparse_conv::copy_piece<kAligned>(
          to + i * Shape::kRowBytes + piece * 16,
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

namespace turns {

inline constexpr int kWidth = 32;              ///< Pieces of dw that a block reduces at a time,
inline constexpr int kGroups = 8;              ///< and threads for each of them.
inline constexpr std::int64_t kBlocks = 1024;  ///< About the number that an H200 holds at once.

/// Sum of two pieces.
__device__ inline float plus(float a, float b) { return a + b; }
/// Sum of two pieces.
__device__ inline float4 plus(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/// dw[k][i] = the sums of tap k's parts, for block y = k. Thread (column, group) adds every
/// kGroups-th part; then the groups are added in their order. Grid (any, any), block (kWidth,
/// kGroups).
/// @param sums [most_parts][pieces]
/// @param dw [KV][pieces]
/// @tparam Piece float or float4
template <class Piece>
__global__ void sparse_wgrad_sum_turns(PairParts parts, const std::int32_t* offsets,
                                       const Piece* sums, std::int64_t pieces, Piece* dw) {
  __shared__ Piece of_group[kGroups][kWidth];
  const int column = static_cast<int>(threadIdx.x), group = static_cast<int>(threadIdx.y);
  for (int k = static_cast<int>(blockIdx.y); k < parts.KV; k += static_cast<int>(gridDim.y)) {
    int first = 0;  // index of this tap's first part, which each warp computes
    for (int other = column; other < k; other += kWidth) {
      first += parts_of(parts, stretch_of(parts, offsets, 0, other));
    }
#pragma unroll
    for (int distance = kWidth / 2; distance > 0; distance /= 2) {
      first += __shfl_xor_sync(0xFFFFFFFF, first, distance);
    }
    const int count = parts_of(parts, stretch_of(parts, offsets, 0, k));
    wait_for_kernel_before();  // everything read so far was complete before that kernel began
    std::int64_t i0 = std::int64_t{blockIdx.x} * kWidth;
    for (; i0 < pieces; i0 += std::int64_t{gridDim.x} * kWidth) {
      const std::int64_t i = i0 + column;
      Piece sum = {};
      if (i < pieces) {
        const Piece* const from = sums + first * pieces + i;
#pragma unroll 4
        for (int part = group; part < count; part += kGroups) {
          const Piece of_part = from[part * pieces];
          sum = plus(sum, of_part);
        }
      }
      of_group[group][column] = sum;
      __syncthreads();  // the sums of all groups are stored
      if (group == 0 && i < pieces) {
#pragma unroll
        for (int other = 1; other < kGroups; ++other) {
          const Piece of_other = of_group[other][column];
          sum = plus(sum, of_other);
        }
        dw[k * pieces + i] = sum;
      }
      __syncthreads();  // the sums are read before the next ones overwrite them
    }
  }
}

}  // namespace turns

/// Adds the parts' sums [most_parts][floats], of one slab, to dw [KV][floats], which is wholly
/// written: zeros for taps without pairs. May begin when all blocks of the kernel before have
/// called let_next_kernel_begin().
inline void launch_sum_turns(const PairParts& parts, const std::int32_t* offsets, const float* sums,
                             std::int64_t floats, float* dw) {
  const bool fours = floats % 4 == 0 && reinterpret_cast<std::uintptr_t>(dw) % sizeof(float4) ==
                                            0;  // as the workspace is
  const auto launch_of = [&]<class Piece>(Piece) {
    const std::int64_t pieces =
        floats * static_cast<int>(sizeof(float)) / static_cast<int>(sizeof(Piece));
    const unsigned taps = blocks_for(parts.KV, 1, kMaxGridYZ);
    const dim3 grid(
        blocks_for(pieces, turns::kWidth, std::max<std::int64_t>(turns::kBlocks / taps, 1)), taps);
    launch_early(turns::sparse_wgrad_sum_turns<Piece>, {grid, dim3(turns::kWidth, turns::kGroups)},
                 parts, offsets, reinterpret_cast<const Piece*>(sums), pieces,
                 reinterpret_cast<Piece*>(dw));
  };
  if (fours) {
    launch_of(float4{});
  } else {
    launch_of(0.0f);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
