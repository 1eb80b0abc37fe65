/// @file async_tiles.cuh
/// @brief A tile's GEMM over some steps along k with `cp.async`, a building block;
/// cuda_optimized/gemm/cp_async.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/gemm/shared/gemm_plan.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The tiles of a and b of kStages steps, in a block's dynamic shared memory.
/// @tparam Tile a ThreadTile
/// @tparam kAligned rows of b can be copied in pieces of 16 bytes
template <class Tile, int kStages, bool kAligned>
class AsyncTiles {
 public:
  static constexpr int kBlockM = Tile::kBlockM,    ///< Rows of a block's tile of c.
      kBlockN = Tile::kBlockN,                     ///< Its columns.
      kBlockK = Tile::kBlockK;                     ///< Products of a step, for each sum.
  static constexpr int kThreads = Tile::kThreads;  ///< Of a block.
  /// a's tile is transposed, [k][m]. A warp copies 8 columns of 4 rows at once: with 4 floats
  /// between the rows of the tile, they meet 32 banks.
  static constexpr int kPitchA = kBlockM + 4,
                       kPitchB = kBlockN;  ///< Floats from a row of a tile to the next.
  static constexpr int kStageFloats = kBlockK * (kPitchA + kPitchB);  ///< Of both tiles.
  /// Dynamic shared memory that a launch must request.
  static constexpr int kSharedBytes = kStages * kStageFloats * static_cast<int>(sizeof(float));

  /// @param place the tile that the block computes
  __device__ AsyncTiles(const Product& product, tile_map::Tile place)
      : product_(product), m0_(std::int64_t{place.m} * kBlockM),
        n0_(std::int64_t{place.n} * kBlockN) {}

  /// Adds the steps step_begin <= step < step_end, of kBlockK each, to the tile's sums. All threads
  /// of the block call it; a second call must be separated from the first by a barrier.
  __device__ void add_steps(const Tile& tile, int step_begin, int step_end,
                            float (&sums)[Tile::kThreadM][Tile::kThreadN]) {
    start(step_begin, step_end);
    int read = 0, write = kStages - 1;  // stages
    for (int step = step_begin; step < step_end; ++step) {
      wait_for_step();
      if (step + kStages - 1 < step_end) copy(step + kStages - 1, write);
      ptx::cp_async_commit_group();
      tile.template multiply<kPitchA, kPitchB>(a_tile(read), b_tile(read), sums);
      read = read + 1 == kStages ? 0 : read + 1;
      write = write + 1 == kStages ? 0 : write + 1;
    }
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

  static __device__ float* a_tile(int stage) {
    return dynamic_shared<float>() + stage * kStageFloats;
  }
  static __device__ float* b_tile(int stage) { return a_tile(stage) + kBlockK * kPitchA; }

  /// Starts the copies of the first kStages - 1 steps.
  __device__ void start(int step_begin, int step_end) {
    const std::int64_t k0 = std::int64_t{step_begin} * kBlockK;
    a_at_ = (m0_ + a_row()) * product_.K + k0 + a_column();
    b_at_ = (k0 + b_row()) * product_.N + n0_ + b_column();
    // No step before this one meets an edge.
    const bool inside = m0_ + kBlockM <= product_.M && n0_ + kBlockN <= product_.N;
    edge_step_ = inside ? product_.K / kBlockK : 0;
    // A group of copies for every stage, also where there is nothing to copy: so that waiting for
    // all but the last kStages - 2 groups means the same in every step.
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (step_begin + stage < step_end) copy(step_begin + stage, stage);
      ptx::cp_async_commit_group();
    }
  }

  /// Waits until the next step's tiles are there.
  static __device__ void wait_for_step() {
    ptx::cp_async_wait_group<kStages - 2>();
    // Now this thread's copies have landed. The barrier: those of the others, too, and all have
    // read what they need of the previous step, into whose stage the next copies go.
    __syncthreads();
  }

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

  /// Rows of a beyond M and columns of b beyond N are left out: their sums are not stored. Beyond K
  /// there must be zeros: cp.async writes them where it is told to read nothing.
  /// @param left columns of a and rows of b from this step on
  __device__ void copy_at_edge(std::int64_t left, float* a_to, float* b_to) const {
    // Few of many large tiles lie at an edge, and what is unrolled here takes registers from the
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

  Product product_;
  std::int64_t m0_, n0_;      // the tile's first row and column
  std::int64_t a_at_, b_at_;  // the first elements of the next step that this thread copies
  int edge_step_;             // the first step that meets an edge
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
