/// @file half_tiles.cuh
/// @brief Half precision (fp16, bf16): instructions, tiles in shared memory and how they are
/// filled, and the stores of accumulators to c.
///
/// - The types' `mma.sync` and `wgmma`, and rounding.
/// - Tiles: the 128-byte swizzle, pieces of 16 bytes by `cp.async`, boxes by TMA (TiledHalves), and
///   element by element where TMA cannot read a matrix (GatheredHalves).
/// - RowsOfC stores accumulators of `mma.sync` and `wgmma` (mma.cu to persistent.cu).
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/tile_map_problem.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The reason not to support a problem whose elements are not in half precision.
inline Declined why_no_halves(const GemmProblem& gemm) {
  if (gemm.dtype == DType::f16 || gemm.dtype == DType::bf16) return {};
  return text("multiplies numbers of 16 bits, and the problem asks for ",
              dtype_name(gemm.dtype, gemm.precision));
}

/// The reason not to support a GPU without half-precision `mma.sync` with fp32 accumulators.
inline Declined why_no_mma() { return why_not("sm_80"); }

/// Whether all rows of a and b are aligned to 16 bytes, if the matrices do.
inline bool rows_in_eights(const GemmProblem& gemm) { return gemm.K % 8 == 0 && gemm.N % 8 == 0; }

/// Whether both matrices are aligned to 16 bytes.
inline bool begin_at_16_bytes(const void* a, const void* b) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
}

/// `mma.sync` m16n8k16 of this type.
template <class T>
__device__ inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::mma_m16n8k16_f16(d, a, b);
  } else {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
}

/// `wgmma` m64nNk16 of this type. By default a is row-major ([M][K], K-major) and b row-major
/// ([K][N], transposed while it is read). @param add false: the accumulators start at zero
template <int kN, class T, bool kRowMajorB = true, bool kColumnMajorA = false>
__device__ inline void wgmma_m64k16(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                    bool add = true) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN, kRowMajorB, kColumnMajorA>(d, a, b, add);
  } else {
    ptx::wgmma_m64k16_bf16<kN, kRowMajorB, kColumnMajorA>(d, a, b, add);
  }
}
/// The same with a column-major a and a row-major b: rows of both stages belong to one k.
template <int kN, class T>
__device__ inline void wgmma_across(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  wgmma_m64k16<kN, T, true, true>(d, a, b);
}
/// The same with a column-major a and a column-major b.
template <int kN, class T>
__device__ inline void wgmma_down_a(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  wgmma_m64k16<kN, T, false, true>(d, a, b);
}

/// Stores two neighbouring floats; `to` is a multiple of 8 bytes.
__device__ inline void store_two(float* to, float first, float second) {
  *reinterpret_cast<float2*>(to) = {first, second};
}
/// Two floats rounded to half precision, the first one in the low 16 bits.
template <class T>
__device__ inline std::uint32_t two_rounded(float first, float second) {
  return rounded_to<T>(first).bits | static_cast<std::uint32_t>(rounded_to<T>(second).bits) << 16;
}
/// Stores two neighbours rounded to half precision; `to` is a multiple of 4 bytes.
template <class T>
__device__ inline void store_two(T* to, float first, float second) {
  *reinterpret_cast<std::uint32_t*>(to) = two_rounded<T>(first, second);
}

inline constexpr int kHalfStep = kTensorMapHalves;  ///< Of k in a stage: rows of 128 bytes.
/// Columns of a panel of b in a stage: its rows are 128 bytes, too.
inline constexpr int kHalfColumns = kTensorMapHalves;
/// Bytes of a panel of b, [kHalfStep][kHalfColumns].
inline constexpr int kPieceBytes = kHalfStep * kHalfColumns * 2;

/// The index of an element in a tile with rows of 64: the eight 16-byte pieces of a row are
/// permuted by exclusive or with the row's number modulo 8, as in the 128-byte swizzle of TMA.
/// Eight rows' pieces of one column then lie in different banks.
HOST_DEVICE constexpr int swizzled_half(int row, int column) {
  return row * kHalfColumns + ((column / 8 ^ row % 8) * 8 | column % 8);
}

/// Copies eight neighbours of a row of a matrix, from matrix[at] on, to 16 bytes of shared memory.
/// Of these, `left` exist; the others become zeros, and with left <= 0 nothing is read. kAligned:
/// rows are aligned to 16 bytes, and the copy is asynchronous; otherwise the elements pass through
/// registers one by one.
template <bool kAligned, class T>
__device__ inline void copy_eight(T* to, const T* matrix, std::int64_t at, int left) {
  const T* const from = matrix + (left > 0 ? at : 0);
  if constexpr (kAligned) {
    ptx::cp_async<16>(to, from, left > 0 ? 16 : 0);
  } else {
#pragma unroll 1
    for (int i = 0; i < 8; ++i) to[i] = i < left ? from[i] : T{};
  }
}

/// c [M][N], where the lanes of a warp store accumulators.
template <class T>
struct RowsOfC {
  T* c;            ///< row-major
  int M, N;        ///< rows, columns
  bool in_eights,  ///< eights of columns are aligned to 16 bytes
      in_pairs;    ///< pairs of columns begin at multiples of 4 bytes

  /// Row m, or null if there is none.
  __device__ T* row(std::int64_t m) const { return m < M ? c + m * N : nullptr; }

  /// Stores columns n ... n + 31 of a row for each quad of lanes, those that lie in c. A lane has a
  /// pair of accumulators of each eight columns, as mma.sync and wgmma leave them.
  __device__ void store(T* row, std::int64_t n, float2 p0, float2 p1, float2 p2, float2 p3) const {
    if (row == nullptr) return;  // the whole quad, whose lanes have the same row
    const int lane = static_cast<int>(threadIdx.x % 4);
    std::uint32_t pair[4] = {two_rounded<T>(p0.x, p0.y), two_rounded<T>(p1.x, p1.y),
                             two_rounded<T>(p2.x, p2.y), two_rounded<T>(p3.x, p3.y)};
    if (in_eights) {
      // Single pairs would fill half a sector with each store. The quad transposes its 4 x 4 pairs,
      // in two exchanges, so that each lane has eight columns: 16 bytes.
      exchange<1>(pair[0], pair[1]);
      exchange<1>(pair[2], pair[3]);
      exchange<2>(pair[0], pair[2]);
      exchange<2>(pair[1], pair[3]);
      n += 8 * lane;
      if (n < N) {
        reinterpret_cast<uint4*>(row)[n / 8] = {pair[0], pair[1], pair[2], pair[3]};
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t column = n + 8 * i + 2 * lane;
      if (column >= N) return;
      if (in_pairs) {
        reinterpret_cast<std::uint32_t*>(row)[column / 2] = pair[i];
      } else {
        row[column].bits = static_cast<std::uint16_t>(pair[i]);
        if (column + 1 < N) row[column + 1].bits = static_cast<std::uint16_t>(pair[i] >> 16);
      }
    }
  }

 private:
  /// Lanes whose number has the bit kBit give `low` and get the other's `high` in its place; lanes
  /// without it give `high` and get the other's `low`.
  template <int kBit>
  __device__ static void exchange(std::uint32_t& low, std::uint32_t& high) {
    const bool upper = (threadIdx.x & kBit) != 0;
    const unsigned quad = 0xFu << threadIdx.x % 32 / 4 * 4;
    const std::uint32_t got = __shfl_xor_sync(quad, upper ? low : high, kBit);
    low = upper ? got : low;
    high = upper ? high : got;
  }
};

/// The tiles of a problem. row_major is replaced by groups of 8 rows of tiles, each walked column
/// by column. Blocks that run at the same time then read few rows of a and columns of b, most of
/// them from the L2 cache.
inline TileMapProblem tiles_in_groups(const GemmProblem& gemm, OutputTile tile) {
  return {.map = gemm.map == TileMap::row_major ? TileMap::grouped : gemm.map,
          .tiles_m = ceil_div(gemm.M, tile.rows),
          .tiles_n = ceil_div(gemm.N, tile.columns),
          .k_steps = ceil_div(gemm.K, kHalfStep)};
}

/// Calls body(Shape) for the shape with which an SM computes fewer elements of c; a partial wave
/// counts as a whole one. A small tile loads more for each product: an eighth is added.
template <class Large, class Small, class Body>
auto with_less_work(const GemmProblem& gemm, const Body& body) {
  const auto work = [&](std::int64_t m, std::int64_t n) {
    return ceil_div(ceil_div<std::int64_t>(gemm.M, m) * ceil_div<std::int64_t>(gemm.N, n),
                    std::int64_t{multiprocessors()}) *
           m * n;
  };
  if (Large::kSharedBytes > max_shared_bytes() ||
      work(Small::M, Small::N) * 9 / 8 < work(Large::M, Large::N)) {
    return body(Small{});
  }
  return body(Large{});
}

/// A problem's c.
template <class T>
RowsOfC<T> rows_of_c(const GemmProblem& gemm, T* c) {
  const auto begins_at = [=](std::uintptr_t bytes) {
    return reinterpret_cast<std::uintptr_t>(c) % bytes == 0;
  };
  return {c, gemm.M, gemm.N, gemm.N % 8 == 0 && begins_at(16), gemm.N % 2 == 0 && begins_at(4)};
}

/// A source of stages for `wgmma` (wgmma.cu): a [M][K] and b [K][N] by TMA. A source has
///   Cursor at(item)             the first step of a tile
///   load(cursor, a, b, barrier) loads a stage and arrives at the barrier
///   advance(cursor)             on to the next step
template <class Shape>
struct TiledHalves {
  static constexpr bool kWholeWarp = false;  ///< One thread calls load().
  CUtensorMap a, b;                          ///< of both operands

  /// A step of a tile.
  struct Cursor {
    int m, n, k;  ///< its first row of a, column of b, and step
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {static_cast<int>(item.m) * Shape::M, item.n * Shape::N, item.first * kHalfStep};
  }
  /// Loads the stage at the cursor.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    // The bytes of whole boxes, including the zeros that TMA writes past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load<2>(a_tile, &a, full, {cursor.k, cursor.m});
#pragma unroll
    for (int i = 0; i < Shape::N / kHalfColumns; ++i) {
      ptx::tma_load<2>(b_tile + i * kPieceBytes, &b, full, {cursor.n + i * kHalfColumns, cursor.k});
    }
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kHalfStep; }
};

/// The same by a warp, element by element, for arrays whose rows TMA cannot read.
template <class Shape, class T>
struct GatheredHalves {
  static constexpr bool kWholeWarp = true;  ///< All 32 call load().
  const T *a, *b;                           ///< [M][K]; [K][N]
  GemmProblem gemm;                         ///< their sizes

  /// A step of a tile.
  struct Cursor {
    std::int64_t m, n, k;  ///< its first row of a, column of b, and step
  };
  /// Where the first step of a tile begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {item.m * Shape::M, std::int64_t{item.n} * Shape::N,
            std::int64_t{item.first} * kHalfStep};
  }
  /// Loads the stage at the cursor.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < Shape::M; ++i) {
      for (int k = lane; k < kHalfStep; k += 32) {
        const bool inside = cursor.m + i < gemm.M && cursor.k + k < gemm.K;
        reinterpret_cast<T*>(a_tile)[swizzled_half(i, k)] =
            inside ? a[(cursor.m + i) * gemm.K + cursor.k + k] : T{};
      }
    }
    for (int k = 0; k < kHalfStep; ++k) {
      for (int j = lane; j < Shape::N; j += 32) {
        const bool inside = cursor.k + k < gemm.K && cursor.n + j < gemm.N;
        T* const piece = reinterpret_cast<T*>(b_tile + j / kHalfColumns * kPieceBytes);
        piece[swizzled_half(k, j % kHalfColumns)] =
            inside ? b[(cursor.k + k) * gemm.N + cursor.n + j] : T{};
      }
    }
    ptx::fence_proxy_async();  // orders these generic stores before wgmma's reads (async proxy)
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// On to the next step.
  __device__ void advance(Cursor& cursor) const { cursor.k += kHalfStep; }
};

}  // namespace convladder::BACKEND::cuda_optimized::gemm
