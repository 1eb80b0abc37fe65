/// @file row_tiles.cuh
/// @brief GEMMs of the rows of pairs: rows as pieces of float or float4, the tile that suits a
/// problem, the tap that a tile belongs to, and the asynchronous copies of its operands.
#pragma once

#include <type_traits>

#include "core/activation.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

inline constexpr int kRowThreads = 256;  ///< Threads of a block that copies rows.
inline constexpr int kWidest = 32;       ///< Most threads along a row: one warp.
/// Blocks of kRowThreads that an SM holds. Blocks stride over more rows.
inline constexpr int kRowBlocksPerSm = 8;

/// Sum of two pieces.
__device__ inline float plus(float a, float b) { return a + b; }
/// Sum of two pieces.
__device__ inline float4 plus(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
/// A piece of zeros.
template <class Piece>
__device__ inline Piece zeros() {
  return Piece{};
}
/// A piece of complete results with the activation applied.
__device__ inline float4 activated(Activation activation, float4 sums) {
  return {convladder::activated(activation, sums.x), convladder::activated(activation, sums.y),
          convladder::activated(activation, sums.z), convladder::activated(activation, sums.w)};
}
using convladder::activated;

/// Whether float4 can be read from there.
inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(float4) == 0;
}

/// Whether rows of so many channels consist of float4, if the first one begins at a multiple of 16
/// bytes.
inline bool channels_in_fours(int channels) { return channels % 4 == 0; }

/// A block for rows of `pieces`: a power of two of threads along a row, the others down.
inline dim3 row_block(int pieces) {
  int across = 1;
  while (across < pieces && across < kWidest) across *= 2;
  return {static_cast<unsigned>(across), static_cast<unsigned>(kRowThreads / across)};
}

/// The grid for `rows` rows of such blocks: what the device holds at once, or less.
inline dim3 row_grid(std::int64_t rows, dim3 block) {
  return {blocks_for(rows, static_cast<int>(block.y),
                     std::int64_t{kRowBlocksPerSm} * multiprocessors())};
}

/// Calls body.operator() of a Piece, with pieces, for rows of so many channels, made of float4
/// where that is possible.
/// @param aligned whether all arrays of such rows begin at multiples of 16 bytes
template <class Body>
void with_piece(int channels, bool aligned, const Body& body) {
  if (aligned && channels_in_fours(channels)) {
    body.template operator()<float4>(channels / 4);
  } else {
    body.template operator()<float>(channels);
  }
}

/// Steps whose tiles are in shared memory or in flight: three of 16 channels, or two of 32.
template <class Tile>
inline constexpr int kStages = Tile::kBlockK > 16 ? 2 : 3;

/// Calls body(std::type_identity<Tile>()) for the gemm::ThreadTile that suits `rows` rows that are
/// multiplied at once: as wide as the output channels, and smaller where there would be few tiles
/// of 128 rows for each SM.
template <class Body>
void with_tile(std::int64_t rows, const SparseConvProblem& conv, const Body& body) {
  using gemm::ThreadTile;
  const std::int64_t tiles = rows / 128 * ceil_div(conv.Cout, 128);
  const bool many = tiles >= enough_blocks(1024);
  const bool some = tiles >= ceil_div<std::int64_t>(enough_blocks(256), 2);
  if (!some) {
    body(std::type_identity<ThreadTile<32, 32, 16, 4, 4, 4>>());
  } else if (conv.Cout <= 32 && conv.Cin <= 16) {
    body(std::type_identity<ThreadTile<128, 32, 16, 8, 4, 4>>());
  } else if (conv.Cout <= 32) {
    body(std::type_identity<ThreadTile<128, 32, 32, 8, 4, 4>>());
  } else if (!many) {
    body(std::type_identity<ThreadTile<64, 64, 16, 4, 8, 4>>());
  } else if (conv.Cout <= 64) {
    body(std::type_identity<ThreadTile<128, 64, 16, 8, 8, 8>>());
  } else {
    body(std::type_identity<ThreadTile<128, 128, 16, 8, 8, 4>>());
  }
}

/// For the description of a rung's choice: the tile that with_tile() takes.
inline std::string tile_in_words(std::int64_t rows, const SparseConvProblem& conv) {
  std::string words;
  with_tile(rows, conv, [&]<class Tile>(std::type_identity<Tile>) {
    words = text(Tile::kBlockM, " x ", Tile::kBlockN, Tile::kBlockK > 16 ? " in deep steps" : "");
  });
  return words;
}

/// Where the slots of tap k begin if all pairs are cut into tiles of `tile` rows, none across two
/// taps. Rounding down plus one slot per tap is sufficient, and at most one slot of a tap stays
/// empty. No thread has to add up the tiles of the previous taps:
///
///     offsets     0           10     13                    tile = 4
///     tap 0       [....][....][..]                         slots 0, 1, 2
///     tap 1                   [...]                        slot  10 / 4 + 1 = 3
///     tap 2                          [....]...             slots 13 / 4 + 2 = 5, ...; 4 is empty
HOST_DEVICE constexpr std::int64_t first_slot(std::int64_t offset, int k, int tile) {
  return offset / tile + k;
}

/// A tile's rows.
struct PairTile {
  int k;               ///< Their tap.
  std::int64_t first;  ///< The first of the pairs.
  int count;           ///< How many; 0 or less: the slot is empty.
};

/// The tile in that slot, for slot < first_slot(pairs, KV, tile). Whole warps call it: each lane
/// reads another tap's offset, [KV + 1].
__device__ inline PairTile tile_in_slot(std::int64_t slot, const std::int32_t* offsets, int KV,
                                        int tile) {
  int begun = 0;  // taps whose slots begin here or before
  for (int k0 = 0; k0 < KV; k0 += 32) {
    const int k = k0 + static_cast<int>(threadIdx.x) % 32;
    const bool has_begun = k < KV && first_slot(offsets[k], k, tile) <= slot;
    begun += __popc(__ballot_sync(0xFFFFFFFF, has_begun));
  }
  const int k = begun - 1;
  const std::int64_t begin = offsets[k], end = offsets[k + 1];
  const std::int64_t first = begin + (slot - first_slot(begin, k, tile)) * tile;
  return {k, first, static_cast<int>(end - first < tile ? end - first : tile)};
}

/// A GEMM: c [M][N] = a [M][K] * b [K][N], row-major.
struct RowProduct {
  int M, N, K;     ///< c is M x N, with K products per element.
  const float* a;  ///< [M][K]
  const float* b;  ///< [K][N]
  float* c;        ///< [M][N]
};

/// The asynchronous copies of a tile's operands, and the stages that they fill in a block's dynamic
/// shared memory. A copy() of a step is
///
///     for m, k:  a_tile[k][m] = a[m0 + m][step * kBlockK + k]        transposed; 4 bytes a copy
///     for k, n:  b_tile[k][n] = b[step * kBlockK + k][n0 + n]        4 or 16 bytes a copy
///
/// @tparam Tile a gemm::ThreadTile
/// @tparam kAligned rows of b can be copied in pieces of 16 bytes
template <class Tile, bool kAligned>
class TileCopies {
 public:
  static constexpr int kBlockM = Tile::kBlockM, kBlockN = Tile::kBlockN;  ///< Of a tile of c.
  static constexpr int kBlockK = Tile::kBlockK;                           ///< Of a step.
  static constexpr int kThreads = Tile::kThreads;                         ///< Per block.
  /// a's tile is transposed, [k][m]. A warp copies 8 columns of 4 rows at once: with rows padded by
  /// 4 floats, the copies go to 32 different banks.
  static constexpr int kPitchA = kBlockM + 4,
                       kPitchB = kBlockN;  ///< Floats from a row of a tile to the next.
  static constexpr int kStageFloats = kBlockK * (kPitchA + kPitchB);  ///< Of both tiles.
  /// Dynamic shared memory of a block.
  static constexpr int kSharedBytes =
      kStages<Tile> * kStageFloats * static_cast<int>(sizeof(float));

  /// @param m, n which tile of c, counted in tiles
  __device__ TileCopies(const RowProduct& product, int m, int n)
      : product_(product), m0_(std::int64_t{m} * kBlockM), n0_(std::int64_t{n} * kBlockN) {
    a_at_ = (m0_ + a_row()) * product_.K + a_column();
    b_at_ = std::int64_t{b_row()} * product_.N + n0_ + b_column();
    // No earlier step reaches beyond an edge.
    const bool inside = m0_ + kBlockM <= product_.M && n0_ + kBlockN <= product_.N;
    edge_step_ = inside ? product_.K / kBlockK : 0;
  }

  /// [kBlockK][kPitchA]: a stage's tile of a.
  static __device__ float* a_tile(int stage) {
    return dynamic_shared<float>() + stage * kStageFloats;
  }
  /// [kBlockK][kPitchB]: a stage's tile of b.
  static __device__ float* b_tile(int stage) { return a_tile(stage) + kBlockK * kPitchA; }

  /// Starts the copies of a step, which is the one after that of the call before.
  __device__ void copy(int step, int stage) {
    float* a_to = a_tile(stage) + a_column() * kPitchA + a_row();
    float* b_to = b_tile(stage) + b_row() * kPitchB + b_column();
    if (step < edge_step_) {
      copy_inside(a_to, b_to);
    } else {
      copy_at_edge(product_.K - std::int64_t{step} * kBlockK, a_to, b_to);
    }
    a_at_ += kBlockK;
    b_at_ += std::int64_t{kBlockK} * product_.N;
  }

 private:
  static constexpr int kColumnsA = 8;                  // that a warp copies of 4 rows of a at once
  static constexpr int kRowsA = kThreads / kColumnsA;  // that a block copies of a at once
  static constexpr int kFloatsB = kAligned ? 4 : 1;    // of a copy of b; those of a have one
  static constexpr int kCopiesB = kBlockN / kFloatsB;  // in a row of b's tile
  static constexpr int kRowsB = kThreads / kCopiesB;   // that a block copies of b at once
  static_assert(kBlockK % kColumnsA == 0 && kBlockM % kRowsA == 0 && kBlockK % kRowsB == 0);

  // The first elements of the tiles that this thread copies.
  static __device__ int a_row() { return static_cast<int>(threadIdx.x) / kColumnsA; }
  static __device__ int a_column() { return static_cast<int>(threadIdx.x) % kColumnsA; }
  static __device__ int b_row() { return static_cast<int>(threadIdx.x) / kCopiesB; }
  static __device__ int b_column() { return static_cast<int>(threadIdx.x) % kCopiesB * kFloatsB; }

  /// Whole tiles: no tests, and as little address arithmetic as possible.
  __device__ void copy_inside(float* a_to, float* b_to) const {
    const float* a = product_.a + a_at_;
    const float* b = product_.b + b_at_;
#pragma unroll
    for (int m = 0; m < kBlockM; m += kRowsA) {
#pragma unroll
      for (int k = 0; k < kBlockK; k += kColumnsA) {
        ptx::cp_async<4>(a_to + k * kPitchA + m, a + std::int64_t{m} * product_.K + k);
      }
    }
#pragma unroll
    for (int k = 0; k < kBlockK; k += kRowsB) {
      ptx::cp_async<4 * kFloatsB>(b_to + k * kPitchB, b + std::int64_t{k} * product_.N);
    }
  }

  /// Rows of a beyond M and columns of b beyond N are not copied: their accumulators are not
  /// stored. Elements beyond K must be zero: cp.async writes zeros where it copies 0 bytes.
  /// @param left columns of a and rows of b from this step on
  __device__ void copy_at_edge(std::int64_t left, float* a_to, float* b_to) const {
    // Few of many large tiles are at an edge, and unrolling here would take registers from the
    // multiply-adds.
    constexpr int kAtOnce = kBlockM <= 32 ? 4 : 1;
#pragma unroll(kAtOnce)
    for (int m = 0; m < kBlockM; m += kRowsA) {
      if (m0_ + a_row() + m >= product_.M) break;
#pragma unroll
      for (int k = 0; k < kBlockK; k += kColumnsA) {
        const bool exists = a_column() + k < left;
        const std::int64_t at = a_at_ + std::int64_t{m} * product_.K + k;
        ptx::cp_async<4>(a_to + k * kPitchA + m, product_.a + (exists ? at : 0), exists ? 4 : 0);
      }
    }
    if (n0_ + b_column() >= product_.N) return;
#pragma unroll(kAtOnce)
    for (int k = 0; k < kBlockK; k += kRowsB) {
      const bool exists = b_row() + k < left;
      const std::int64_t at = b_at_ + std::int64_t{k} * product_.N;
      ptx::cp_async<4 * kFloatsB>(b_to + k * kPitchB, product_.b + (exists ? at : 0),
                                  exists ? 4 * kFloatsB : 0);
    }
  }

  RowProduct product_;
  std::int64_t m0_, n0_;      // the tile's first row and column
  std::int64_t a_at_, b_at_;  // the first elements of the next step that this thread copies
  int edge_step_;             // the first step that reaches an edge
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
