/// @file async_tiles.cuh
/// @brief A tile's product over some steps along k, its operands copied asynchronously, as a
/// building block; cuda_optimized/gemm/cp_async.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/gemm/gemm_plan.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The tiles of a and b of kStages steps, in a block's dynamic shared memory.
/// @tparam Tile a ThreadTile
/// @tparam kAligned rows of b can be copied in pieces of 16 bytes
template <class Tile, int kStages, bool kAligned>
class AsyncTiles {
 public:
  static constexpr int kBlockM = Tile::kBlockM, kBlockN = Tile::kBlockN, kBlockK = Tile::kBlockK;
  static constexpr int kThreads = Tile::kThreads;
  /// a's tile is transposed, [k][m]. A warp copies 8 columns of 4 rows at once: with 4 floats
  /// between the rows of the tile, they meet 32 banks.
  static constexpr int kPitchA = kBlockM + 4, kPitchB = kBlockN;
  static constexpr int kStageFloats = kBlockK * (kPitchA + kPitchB);
  static constexpr int kSharedBytes = kStages * kStageFloats * static_cast<int>(sizeof(float));

  /// @param place the tile that the block computes
  __device__ AsyncTiles(const Product& product, tile_map::Tile place)
      : product_(product), m_(std::int64_t{place.m} * kBlockM + threadIdx.x / kColumnsA),
        n_(std::int64_t{place.n} * kBlockN + threadIdx.x % kCopiesB * kFloatsB) {}

  /// Adds the steps step_begin <= step < step_end, of kBlockK each, to the tile's sums. All threads
  /// of the block call it; a second call must be separated from the first by a barrier.
  __device__ void add_steps(const Tile& tile, int step_begin, int step_end,
                            float (&sums)[Tile::kThreadM][Tile::kThreadN]) {
    const std::int64_t k0 = std::int64_t{step_begin} * kBlockK;
    k_left_ = product_.K - k0;
    a_at_ = m_ * product_.K + k0 + threadIdx.x % kColumnsA;
    b_at_ = (k0 + threadIdx.x / kCopiesB) * product_.N + n_;
    // A group of copies for every stage, also where there is nothing to copy: so that waiting for
    // all but the last kStages - 2 groups means the same in every step.
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (step_begin + stage < step_end) copy_next_step(stage);
      ptx::cp_async_commit_group();
    }
    int read = 0, write = kStages - 1;  // stages
    for (int step = step_begin; step < step_end; ++step) {
      ptx::cp_async_wait_group<kStages - 2>();
      // Now this thread's copies for this step have landed. The barrier: those of the others, too,
      // and all have read the stage of the step before, into which the next copies go.
      __syncthreads();
      if (step + kStages - 1 < step_end) copy_next_step(write);
      ptx::cp_async_commit_group();
      tile.template multiply<kPitchA, kPitchB>(a_tile(read), b_tile(read), sums);
      read = read + 1 == kStages ? 0 : read + 1;
      write = write + 1 == kStages ? 0 : write + 1;
    }
  }

 private:
  static constexpr int kColumnsA = 8;                  // that a warp copies of 4 rows of a at once
  static constexpr int kFloatsB = kAligned ? 4 : 1;    // of a copy of b; those of a have one
  static constexpr int kCopiesB = kBlockN / kFloatsB;  // in a row of b's tile
  static_assert(kBlockK % kColumnsA == 0 && kBlockM * kColumnsA % kThreads == 0);
  static_assert(kThreads % kCopiesB == 0 && kBlockK * kCopiesB % kThreads == 0);

  static __device__ float* a_tile(int stage) {
    return dynamic_shared<float>() + stage * kStageFloats;
  }
  static __device__ float* b_tile(int stage) { return a_tile(stage) + kBlockK * kPitchA; }

  /// Starts the copies of the next step. Rows of a beyond M and columns of b beyond N are left out:
  /// their sums are not stored. Beyond K there must be zeros.
  __device__ void copy_next_step(int stage) {
    if (k_left_ >= kBlockK) {
      copy_step<false>(stage);
    } else {
      copy_step<true>(stage);
    }
    k_left_ -= kBlockK;
    a_at_ += kBlockK;
    b_at_ += std::int64_t{kBlockK} * product_.N;
  }

  /// @tparam kRagged not all of the kBlockK columns of a and rows of b exist
  template <bool kRagged>
  __device__ void copy_step(int stage) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int a_k = thread % kColumnsA, b_k = thread / kCopiesB;
    float* a_to = a_tile(stage) + a_k * kPitchA + thread / kColumnsA;
#pragma unroll
    for (int m = 0; m < kBlockM; m += kThreads / kColumnsA) {
      if (m_ + m < product_.M) {
#pragma unroll
        for (int k = 0; k < kBlockK; k += kColumnsA) {
          copy_floats<kRagged, 1>(a_to + k * kPitchA + m, product_.a,
                                  a_at_ + std::int64_t{m} * product_.K + k, a_k + k < k_left_);
        }
      }
    }
    if (n_ >= product_.N) return;
    float* b_to = b_tile(stage) + b_k * kPitchB + thread % kCopiesB * kFloatsB;
#pragma unroll
    for (int k = 0; k < kBlockK; k += kThreads / kCopiesB) {
      copy_floats<kRagged, kFloatsB>(b_to + k * kPitchB, product_.b,
                                     b_at_ + std::int64_t{k} * product_.N, b_k + k < k_left_);
    }
  }

  /// Copies matrix[at ...], or with kMaybe, where not `exists`, zeros; then `at` is not looked at.
  template <bool kMaybe, int kFloats>
  static __device__ void copy_floats(float* to, const float* matrix, std::int64_t at, bool exists) {
    constexpr int kBytes = kFloats * static_cast<int>(sizeof(float));
    if constexpr (kMaybe) {
      ptx::cp_async<kBytes>(to, matrix + (exists ? at : 0), exists ? kBytes : 0);
    } else {
      ptx::cp_async<kBytes>(to, matrix + at);
    }
  }

  Product product_;
  std::int64_t m_, n_;        // the first row of a and column of b that this thread copies
  std::int64_t k_left_;       // columns of a, rows of b, from the next step to the last
  std::int64_t a_at_, b_at_;  // the first elements of the next step that this thread copies
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
