/// @file tf32_swap_ab.cuh
/// @brief Stages, fragments and results of products that are computed as c^T = b^T a^T;
/// tf32/swap_ab.cu explains them. Sources are as in tma_matrices.cuh.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

inline constexpr int kPanel = kTensorMapRow;                 ///< Columns of b that lie together.
inline constexpr int kPanelBytes = kWgmmaStep * kPanel * 4;  ///< Of such a piece of a stage.
inline constexpr int kDraftRows = 32;  ///< Of a box of kPanel columns in which sums leave.
inline constexpr int kDraftFloats = kDraftRows * kPanel;  ///< Of such a box.
/// Of all staging buffers: two for each pair of consumer warps, used alternately.
inline constexpr int kDraftBytes = kConsumerThreads / 64 * 2 * kDraftFloats * 4;

/// The sizes of a kernel: a block's tile of c, whose columns are the rows of wgmma, and its stages.
/// @tparam kParts of a in a stage: 1, or 2 for what tf32/wgmma_3xtf32.cu makes of it
template <int kM, int kStages_, int kParts = 1>
struct SwappedShape {
  static constexpr int M = kM,                              ///< rows of a tile
      N = 64 * kConsumers,                                  ///< columns of a tile
      kStages = kStages_;                                   ///< of the ring in shared memory
  static constexpr int kBytesA = kM * kWgmmaStep * 4,       ///< of a stage's a [M][kWgmmaStep]
      kBytesB = N / kPanel * kPanelBytes;                   ///< of its b [N / 32][kWgmmaStep][32]
  static constexpr int kLoadedBytes = kBytesA + kBytesB,    ///< a, then b
      kStageBytes = kLoadedBytes + (kParts - 1) * kBytesA;  ///< and the second part of a
  /// Dynamic shared memory of a block: all stages, boxes for accumulators, and room to align them
  /// to kAtom.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + kDraftBytes + kAtom;
};

/// a [products][M][K] and b [products][K][N] by TMA, as they lie. Of several products,
/// M is whole tiles, and K whole steps.
template <class Shape>
struct TiledSwapped {
  static constexpr int kThreads = 1;  ///< That call load(), and arrive.
  CUtensorMap a, b;                   ///< in boxes of Shape::M x 32, and of 32 x 32
  int tiles_m, K;                     ///< of a product: tiles down c, rows of b

  /// A step of a tile.
  struct Cursor {
    int m,    ///< its first row of a
        n,    ///< its first column of b
        k,    ///< its first column of a
        row;  ///< its first row of b
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    const int m = static_cast<int>(item.m), k = item.first * kWgmmaStep;
    return {m * Shape::M, item.n * Shape::N, k, m / tiles_m * K + k};
  }
  /// Loads the stage at the cursor.
  __device__ void load(const Cursor& cursor, char* stage, std::uint64_t* full) const {
    // Whole boxes count, also the zeros past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kLoadedBytes);
    ptx::tma_load<2>(stage, &a, full, {cursor.k, cursor.m});
#pragma unroll
    for (int i = 0; i < Shape::N / kPanel; ++i) {
      ptx::tma_load<2>(stage + Shape::kBytesA + i * kPanelBytes, &b, full,
                       {cursor.n + i * kPanel, cursor.row});
    }
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const {
    cursor.k += kWgmmaStep, cursor.row += kWgmmaStep;
  }
};

/// The same of one product by a warp, number by number, for arrays whose rows TMA
/// cannot take.
/// @tparam kRounds to TF32, as TMA does it
template <class Shape, bool kRounds>
struct GatheredSwapped {
  static constexpr int kThreads = 32;  ///< A warp, whose lanes call load(), and arrive.
  const float *a, *b;                  ///< [M][K]; [K][N]
  GemmProblem gemm;                    ///< their sizes

  /// A step of a tile.
  struct Cursor {
    std::int64_t m, n, k;  ///< its first row of a, column of b, and step
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {item.m * Shape::M, std::int64_t{item.n} * Shape::N,
            std::int64_t{item.first} * kWgmmaStep};
  }
  /// Loads the stage at the cursor.
  __device__ void load(const Cursor& cursor, char* stage, std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float* const a_tile = reinterpret_cast<float*>(stage);
#pragma unroll 1  // or a producer's registers are too few
    for (int i = 0; i < Shape::M; ++i) {
      const std::int64_t m = cursor.m + i, k = cursor.k + lane;
      a_tile[swizzled(i, lane)] = m < gemm.M && k < gemm.K ? taken(a[m * gemm.K + k]) : 0.0f;
    }
#pragma unroll 1
    for (int j = lane; j < Shape::N; j += 32) {
      float* const panel = a_tile + (Shape::kBytesA + j / kPanel * kPanelBytes) / 4;
#pragma unroll 1
      for (int i = 0; i < kWgmmaStep; ++i) {
        const std::int64_t k = cursor.k + i, n = cursor.n + j;
        panel[swizzled(i, j % kPanel)] = k < gemm.K && n < gemm.N ? taken(b[k * gemm.N + n]) : 0.0f;
      }
    }
    ptx::fence_proxy_async();    // ordinary stores, which wgmma will read
    ptx::mbarrier_arrive(full);  // each lane for its own
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kWgmmaStep; }

 private:
  __device__ static float taken(float value) {
    return kRounds ? __uint_as_float(ptx::to_tf32(value)) : value;
  }
};

/// Which column of a pair of warps' 32 a thread holds in row lane / 4, or with half = 1 row lane /
/// 4 + 8, of its warp's 16 rows of wgmma.
///
/// Any order of the columns is right, if stores follow it. This one is chosen for the banks: in
/// four of its bits, that of 16 bytes within the 128 of a swizzled row, the two halves of a warp
/// differ by 5. A load of four rows k ... k + 3 adds 0 ... 3 to that by XOR, a store of rows m, m +
/// 2, m + 4, m + 6 adds 0, 2, 4, 6: in either, all eight places of 16 bytes are met once.
HOST_DEVICE constexpr int column_of(int thread, int half) {
  const int lane = thread % 32, piece = lane / 16 * 5 ^ thread / 32 % 2 * 2 ^ half;
  return piece * 4 + lane / 4 % 4;
}

/// Where a consumer's thread finds its part of b^T, operand A of wgmma.
struct FragmentPlace {
  int at[4];  ///< For the four registers, in floats from a stage's b, for k = 0.

  /// Of a thread, counted in a block.
  __device__ explicit FragmentPlace(int thread) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      at[i] = thread / 64 * (kPanelBytes / 4) +
              swizzled(thread % 4 + i / 2 * 4, column_of(thread, i % 2));
    }
  }
  /// The registers for steps k ... k + 7 of a stage's b; k is a multiple of 8.
  __device__ void load(const float* b, int k, std::uint32_t (&fragment)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) fragment[i] = __float_as_uint(b[at[i] + k * kPanel]);
  }
};

/// Moves the beginning of a described operand. All lie in the same 256 KB, so that descriptors
/// differ in the low word alone: no carry.
__device__ inline std::uint64_t further(std::uint64_t descriptor, int bytes) {
  const auto low = static_cast<std::uint32_t>(descriptor) + static_cast<std::uint32_t>(bytes / 16);
  return descriptor >> 32 << 32 | low;
}

/// c [M][N] by TMA.
template <class Shape>
struct BoxedRows {
  CUtensorMap c;  ///< in boxes of kDraftRows x kPanel, which keeps floats

  /// Stores sums [N][M] of a tile. All consumers call it. @param box which of the two is next
  __device__ void store(const WgmmaItem& item, const float (&sums)[Shape::M / 2], float* drafts,
                        int& box) const {
    const int thread = static_cast<int>(threadIdx.x), pair = thread / 64;
#pragma unroll
    for (int piece = 0; piece < Shape::M / kDraftRows; ++piece) {
      float* const draft = drafts + (2 * pair + box) * kDraftFloats;
      if (thread % 64 == 0) ptx::cp_async_bulk_wait_group_read<1>();
      // TMA has read what the box held: both warps may overwrite it.
      ptx::named_barrier_sync(1 + pair, 64);
#pragma unroll
      for (int i = 0; i < kDraftRows / 2; ++i) {
        const int row = i / 4 * 8 + thread % 4 * 2 + i % 2;
        draft[swizzled(row, column_of(thread, i / 2 % 2))] = sums[piece * kDraftRows / 2 + i];
      }
      ptx::fence_proxy_async();               // orders ordinary stores (generic proxy) before TMA's
                                              // reads (async proxy)
      ptx::named_barrier_sync(1 + pair, 64);  // separates all stores from the copy
      if (thread % 64 == 0) {
        ptx::tma_store<2>(&c, draft,
                          {item.n * Shape::N + pair * kPanel,
                           static_cast<int>(item.m) * Shape::M + piece * kDraftRows});
        ptx::cp_async_bulk_commit_group();
      }
      box ^= 1;
    }
  }
  /// Before the block ends, and its shared memory with it.
  __device__ void finish() const {
    if (threadIdx.x % 64 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// c [M][N] by the threads, where TMA cannot take it.
template <class Shape>
struct PlainRows {
  float* c;           ///< [M][N]
  std::int64_t M, N;  ///< its sizes

  /// Stores sums [N][M] of a tile. All consumers call it.
  __device__ void store(const WgmmaItem& item, const float (&sums)[Shape::M / 2], float*,
                        int&) const {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < Shape::M / 2; ++i) {
      const std::int64_t m = item.m * Shape::M + i / 4 * 8 + thread % 4 * 2 + i % 2;
      const std::int64_t n =
          std::int64_t{item.n} * Shape::N + thread / 64 * kPanel + column_of(thread, i / 2 % 2);
      if (m < M && n < N) c[m * N + n] = sums[i];
    }
  }
  /// No copy is in flight.
  __device__ void finish() const {}
};

/// Whether all rows of a, b and c are aligned to 16 bytes, if the matrices do.
inline bool rows_in_fours(const GemmProblem& gemm) { return gemm.K % 4 == 0 && gemm.N % 4 == 0; }

}  // namespace convladder::BACKEND::cuda_optimized::gemm
