/// @file mma_tile.cuh
/// @brief A warp's GEMM of two tiles in shared memory on tensor cores, a building block of other
/// rungs; cuda_optimized/gemm/tf32/mma.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Steps along k for which tiles are staged at a time: rows of 128 bytes, once around the banks.
inline constexpr int kMmaStep = 32;

/// How a tile of an operand lies in shared memory. `i` counts along the other axis than k: rows of
/// a, columns of b.
enum class TileOrder {
  along_k,  ///< k runs fastest, as in a row-major a: ldmatrix loads fragments
  across_k  ///< i runs fastest, as in a row-major b: plain loads, a float at a time
};

/// Where element (i, k) of such a tile with kLength values of i lies.
template <TileOrder kOrder, int kLength>
struct MmaTile;

/// Rows of kMmaStep floats. The eight 16-byte pieces of a row change places, by exclusive or with
/// the row's number: ldmatrix takes the same piece of eight rows at a time, and so finds each in
/// other banks.
template <int kLength>
struct MmaTile<TileOrder::along_k, kLength> {
  static constexpr int kFloats = kLength * kMmaStep;  ///< of shared memory
  /// Offset of element (i, k), in floats.
  HOST_DEVICE static int at(int i, int k) { return i * kMmaStep + ((k / 4 ^ i % 8) * 4 | k % 4); }
};

/// Rows of kLength floats and 8 more: the four rows and eight columns of a fragment meet 32 banks.
template <int kLength>
struct MmaTile<TileOrder::across_k, kLength> {
  static constexpr int kPitch = kLength + 8;         ///< floats from a row to the next
  static constexpr int kFloats = kMmaStep * kPitch;  ///< of shared memory
  /// Offset of element (i, k), in floats.
  HOST_DEVICE static int at(int i, int k) { return k * kPitch + i; }
};

/// The index of the calling thread in its warp.
__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x) % 32; }

/// Loads the fragments of a: rows i0 ... i0 + 16 * kCount - 1, steps k0 ... k0 + 7.
template <TileOrder kOrder, int kLength, int kCount>
__device__ inline void load_a(const float* tile, int i0, int k0,
                              std::uint32_t (&fragments)[kCount][4]) {
  using Tile = MmaTile<kOrder, kLength>;
  const int lane = lane_of_warp();
  if constexpr (kOrder == TileOrder::along_k) {
    // The permutation repeats every 8 rows, so that fragments differ by constants alone.
    const float* const from = tile + i0 * kMmaStep + Tile::at(lane % 16, k0 + lane / 16 * 4);
#pragma unroll
    for (int f = 0; f < kCount; ++f) ptx::ldmatrix_x4(fragments[f], from + 16 * f * kMmaStep);
  } else {
#pragma unroll
    for (int f = 0; f < kCount; ++f) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        fragments[f][e] = __float_as_uint(
            tile[Tile::at(i0 + 16 * f + lane / 4 + e % 2 * 8, k0 + lane % 4 + e / 2 * 4)]);
      }
    }
  }
}

/// Loads the fragments of b: columns i0 ... i0 + 8 * kCount - 1, steps k0 ... k0 + 7.
template <TileOrder kOrder, int kLength, int kCount>
__device__ inline void load_b(const float* tile, int i0, int k0,
                              std::uint32_t (&fragments)[kCount][2]) {
  using Tile = MmaTile<kOrder, kLength>;
  const int lane = lane_of_warp();
  if constexpr (kOrder == TileOrder::along_k) {
    static_assert(kCount % 2 == 0, "a load brings two fragments");
    const float* const from =
        tile + i0 * kMmaStep + Tile::at(lane % 8 + lane / 16 * 8, k0 + lane / 8 % 2 * 4);
#pragma unroll
    for (int f = 0; f < kCount; f += 2) {
      std::uint32_t two[4];
      ptx::ldmatrix_x4(two, from + 8 * f * kMmaStep);
#pragma unroll
      for (int e = 0; e < 4; ++e) fragments[f + e / 2][e % 2] = two[e];
    }
  } else {
#pragma unroll
    for (int f = 0; f < kCount; ++f) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        fragments[f][e] =
            __float_as_uint(tile[Tile::at(i0 + 8 * f + lane / 4, k0 + lane % 4 + e * 4)]);
      }
    }
  }
}

/// The fragments of 8 steps along k: 16 * kRows rows of a, 8 * kColumns columns of b. round()
/// leaves alone the operand that is rounded already, where kRoundA or kRoundB is false.
template <int kRows, int kColumns, bool kRoundA = true, bool kRoundB = true>
struct MmaFactors {
  std::uint32_t a[kRows][4], b[kColumns][2];  ///< the bits of this thread's floats

  /// Loads rows a0 ... of a_tile and columns b0 ... of b_tile, steps k0 ... k0 + 7; does not round.
  template <TileOrder kOrderA, int kLengthA, TileOrder kOrderB, int kLengthB>
  __device__ void load(const float* a_tile, int a0, const float* b_tile, int b0, int k0) {
    load_a<kOrderA, kLengthA>(a_tile, a0, k0, a);
    load_b<kOrderB, kLengthB>(b_tile, b0, k0, b);
  }
  /// mma.sync would truncate what is not rounded.
  __device__ void round() {
    if constexpr (kRoundA) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) a[i][e] = ptx::to_tf32(__uint_as_float(a[i][e]));
      }
    }
    if constexpr (kRoundB) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) b[j][e] = ptx::to_tf32(__uint_as_float(b[j][e]));
      }
    }
  }
};

/// The tile of c that a warp computes, 16 * kRows x 8 * kColumns: fragments of mma.sync.
template <int kRows, int kColumns, bool kRoundA = true, bool kRoundB = true>
struct MmaSums {
  using Factors = MmaFactors<kRows, kColumns, kRoundA, kRoundB>;  ///< what multiply() takes
  float of[kRows][kColumns][4] = {};  ///< this thread's four accumulators of each 16 x 8 fragment

  /// Adds the products of these operands, and rounds them first.
  __device__ void multiply(Factors& factors) {
    factors.round();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        ptx::mma_m16n8k8_tf32(of[i][j], factors.a[i], factors.b[j]);
      }
    }
  }

  /// After each stage: there is nothing to do.
  __device__ void end_step() {}

  /// Calls store(row, column, first, second) for each pair of adjacent accumulators; row and column
  /// count from the warp's tile, column is even.
  template <class Store>
  __device__ void for_each_pair(const Store& store) const {
    const int lane = lane_of_warp();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          store(16 * i + 8 * half + lane / 4, 8 * j + lane % 4 * 2, of[i][j][2 * half],
                of[i][j][2 * half + 1]);
        }
      }
    }
  }
};

/// How a block stages its tiles: kStages of cp.async, each a tile of a and after it one of b.
template <TileOrder kOrderA, int kLengthA, TileOrder kOrderB, int kLengthB, int kStageCount>
struct MmaStages {
  static constexpr int kStages = kStageCount;              ///< in shared memory at a time
  using A = MmaTile<kOrderA, kLengthA>;                    ///< a stage's tile of a
  using B = MmaTile<kOrderB, kLengthB>;                    ///< a stage's tile of b
  static constexpr int kFloats = A::kFloats + B::kFloats;  ///< of a stage

  /// Adds the products of `steps` stages to the accumulators of each warp, whose rows of a begin at
  /// a0 and columns of b at b0, multiples of 8. ask(step, a_tile, b_tile) asks for the copies of
  /// one stage. All threads of the block take part.
  /// @param tiles kStages * kFloats in shared memory; no thread uses it any more on return
  /// @param sums MmaSums, or what has its functions
  template <class Sums, class Ask>
  __device__ static void multiply(int steps, float* tiles, int a0, int b0, const Ask& ask,
                                  Sums* sums) {
    const Ring ring{steps, tiles};
    typename Sums::Factors factors[2];
    ring.ask_for_first(ask);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_next();
      ring.ask_for(step + kStages - 1, ask);
      ring.load(step, 0, a0, b0, factors);
#pragma unroll
      for (int k = 0; k < kMmaStep; k += 8) {
        // On their way while the others are multiplied.
        if (k + 8 < kMmaStep) ring.load(step, k + 8, a0, b0, factors);
        sums->multiply(factors[k / 8 % 2]);
      }
      sums->end_step();
    }
    __syncthreads();  // separates the last loads from what the caller stores there
  }

  /// The same, with less waiting for the tensor cores: the first fragments of a stage are loaded
  /// before the last ones of the previous stage are multiplied, and copies are started while
  /// products are in flight. It pays where ldmatrix loads both operands; loads of single floats
  /// take too many registers and issue slots for it.
  template <class Sums, class Ask>
  __device__ static void multiply_ahead(int steps, float* tiles, int a0, int b0, const Ask& ask,
                                        Sums* sums) {
    const Ring ring{steps, tiles};
    typename Sums::Factors factors[2];
    ring.ask_for_first(ask);
    wait_for_next();
    ring.load(0, 0, a0, b0, factors);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int k = 0; k < kMmaStep; k += 8) {
        if (k + 8 < kMmaStep) {
          ring.load(step, k + 8, a0, b0, factors);
        } else {
          wait_for_next();
          ring.load(step + 1, 0, a0, b0, factors);  // after the last step, these are not used
        }
        sums->multiply(factors[k / 8 % 2]);
        if (k == 0) ring.ask_for(step + kStages - 1, ask);
      }
      sums->end_step();
    }
    __syncthreads();  // separates the last loads from what the caller stores there
  }

 private:
  /// The stages in shared memory, used in turn.
  struct Ring {
    int steps;
    float* tiles;

    __device__ float* tile_of(int step) const { return tiles + step % kStages * kFloats; }

    template <class Ask>
    __device__ void ask_for(int step, const Ask& ask) const {
      if (step < steps) ask(step, tile_of(step), tile_of(step) + A::kFloats);
      ptx::cp_async_commit_group();  // also without copies: the waits count groups
    }

    template <class Ask>
    __device__ void ask_for_first(const Ask& ask) const {
#pragma unroll 1
      for (int step = 0; step < kStages - 1; ++step) ask_for(step, ask);
    }

    template <class Factors>
    __device__ void load(int step, int k, int a0, int b0, Factors (&factors)[2]) const {
      factors[k / 8 % 2].template load<kOrderA, kLengthA, kOrderB, kLengthB>(
          tile_of(step), a0, tile_of(step) + A::kFloats, b0, k);
    }
  };

  /// All but the last kStages - 2 stages asked for are there, for all threads.
  __device__ static void wait_for_next() {
    ptx::cp_async_wait_group<kStages - 2>();
    // Makes the copies of all threads visible to all; and separates the loads of the previous step
    // from the copies that will overwrite its tiles.
    __syncthreads();
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
