/// @file split_k_tail.cuh
/// @brief What each block of hopper/split_k_tail.cu computes, and how partial results are added.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "core/gemm_problem.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/gemm/shared/wgmma_kernel.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Tiles of c, of which each block has a whole one in every round; those of the last round may be
/// cut along k, so that all blocks have some of it.
struct WgmmaRounds {
  int tiles_m, tiles_n;  ///< of c
  int steps;             ///< of a tile, of kHalfStep
  int blocks;            ///< of the grid
  int whole;             ///< tiles that are not cut, the first ones
  int parts;             ///< of each of the others, <= steps; blocks >= parts * cut()

  /// How many tiles are cut.
  HOST_DEVICE int cut() const { return tiles_m * tiles_n - whole; }
};

/// What there is to do for this block: whole tiles, and then a part of one.
/// @tparam kCut some tiles are cut
template <bool kCut>
class BlockItems {
 public:
  /// Of the calling block.
  __device__ explicit BlockItems(const WgmmaRounds& rounds)
      : rounds_(rounds), index_(static_cast<int>(blockIdx.x)) {}

  /// The next item, with its part as `split`. False: there is none.
  __device__ bool next(WgmmaItem* item) {
    int tile = index_;
    if (tile < rounds_.whole) {
      item->split = item->first = 0;
      item->last = rounds_.steps;
    } else if constexpr (!kCut) {
      return false;
    } else {
      // Blocks with adjacent indices have the same part of neighbouring tiles: they read the same
      // rows of a, or of b, at the same time.
      const int cut = rounds_.cut(), block = static_cast<int>(blockIdx.x);
      if (index_ == kNone || block >= cut * rounds_.parts) return false;
      const int share = rounds_.steps / rounds_.parts, more = rounds_.steps % rounds_.parts;
      item->split = block / cut;
      item->first = item->split * share + min(item->split, more);
      item->last = item->first + share + (item->split < more ? 1 : 0);
      tile = rounds_.whole + block % cut;
      index_ = kNone - rounds_.blocks;
    }
    index_ += rounds_.blocks;
    // Super-columns of kColumnGroup tiles, which are walked down.
    const int column = tile / (rounds_.tiles_m * kColumnGroup) * kColumnGroup;
    const int columns = min(kColumnGroup, rounds_.tiles_n - column);
    const int inside = tile - column * rounds_.tiles_m;
    item->m = inside / columns;
    item->n = column + inside % columns;
    return true;
  }

 private:
  static constexpr int kNone = 2147483647;  // nothing is left

  const WgmmaRounds& rounds_;
  int index_;
};

/// 64 columns of a tile, as a tile of its own: what one block stores of a tile that is cut.
template <class Shape>
struct PieceOf : Shape {
  static constexpr int N = kHalfColumns;  ///< Columns.
};

/// Parts of sums on their way to the block that stores them, as the registers of those who
/// multiplied hold them: [block][piece of a tile][4 accumulators of a thread][consumer thread].
template <class Shape>
struct SentSums {
  static constexpr int kPieces = Shape::N / kHalfColumns;    ///< of a tile
  static constexpr int kFours = kHalfColumns / 8;            ///< of a thread's piece
  static constexpr int kThreads = 128 * Shape::kWarpgroups;  ///< that multiply
  static constexpr int kOfPiece = kFours * kThreads;         ///< of all threads
  static constexpr int kOfBlock = kPieces * kOfPiece;        ///< of all pieces
  static_assert(Shape::kRowTiles == 1);
  float4* sums;  ///< of block 0

  /// Sends the calling block's part of a piece.
  template <int kPiece>
  __device__ void send(const float (&of)[Shape::N / 2]) const {
    float4* const to = place(static_cast<int>(blockIdx.x), kPiece);
#pragma unroll
    for (int j = 0; j < kFours; ++j) {
      const float* const four = of + 4 * (kPiece * kFours + j);
      to[j * kThreads] = {four[0], four[1], four[2], four[3]};
    }
  }
  /// Adds the part of a piece that a block has sent.
  __device__ void add(int block, int piece, float (&to)[kHalfColumns / 2]) const {
    const float4* const from = place(block, piece);
    float4 sent[kFours];
#pragma unroll
    for (int j = 0; j < kFours; ++j) sent[j] = from[j * kThreads];
#pragma unroll
    for (int j = 0; j < kFours; ++j) {
      to[4 * j] += sent[j].x;
      to[4 * j + 1] += sent[j].y;
      to[4 * j + 2] += sent[j].z;
      to[4 * j + 3] += sent[j].w;
    }
  }

 private:
  __device__ float4* place(int block, int piece) const {
    return sums + std::int64_t{block} * kOfBlock + piece * kOfPiece + threadIdx.x;
  }
};

/// All threads of a cooperative grid meet; what they did before is visible to all. Threads of
/// different roles call it at different places.
__device__ inline void meet_all_blocks() { cooperative_groups::this_grid().sync(); }

/// How the blocks of a product divide it with one shape of tiles, and what that takes.
struct Plan {
  WgmmaRounds rounds;  ///< who computes what
  double cycles;       ///< of an SM, by the model in hopper/split_k_tail.cu
};

/// The best plan with this shape. In parts only if that saves a twentieth, or if the map says so.
/// @param loss factor by which its steps are slower than the tensor cores
template <class Shape>
Plan plan_of(const GemmProblem& gemm, double loss) {
  constexpr int kMeeting = 2000, kTileCycles = Shape::M * Shape::N * 4 / 16;
  constexpr int kPieces = SentSums<Shape>::kPieces;
  const std::int64_t blocks = multiprocessors();
  const int tiles_m = ceil_div(gemm.M, Shape::M), tiles_n = ceil_div(gemm.N, Shape::N);
  const int steps = ceil_div(gemm.K, kHalfStep);
  const std::int64_t tiles = std::int64_t{tiles_m} * tiles_n, full = tiles / blocks;
  const std::int64_t left = tiles % blocks;
  const double cycles = Shape::M * Shape::N / 32 * loss;
  Plan best = {{tiles_m, tiles_n, steps, static_cast<int>(std::min(tiles, blocks)),
                static_cast<int>(tiles), 1},
               cycles * static_cast<double>(ceil_div(tiles, blocks)) * steps};
  if (gemm.map == TileMap::split_k) best.cycles *= 1000;  // whatever is cut is better
  if (left == 0) return best;
  const auto most = static_cast<int>(std::min<std::int64_t>(blocks / left, steps));
  for (int parts = 2; parts <= most; ++parts) {
    const int received = ceil_div(kPieces, parts) * (parts - 1);
    const double all = cycles * static_cast<double>(full * steps + ceil_div(steps, parts)) +
                       kMeeting + kTileCycles * (1.0 + 1.0 * received / kPieces);
    if (all > (best.rounds.parts > 1 ? 1.0 : 0.95) * best.cycles) continue;
    best = {
        {tiles_m, tiles_n, steps, static_cast<int>(full > 0 ? blocks : std::int64_t{parts} * left),
         static_cast<int>(full * blocks), parts},
        all};
  }
  return best;
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
