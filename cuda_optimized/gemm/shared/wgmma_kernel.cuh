/// @file wgmma_kernel.cuh
/// @brief Around the main loop of the half-precision `wgmma` kernels: choice of the tile, registers
/// of producers and consumers, epilogue, and stores of c.
///
/// - The host side: which shape, which work items, and the choice in words (tma.cu and on).
/// - BoxedResult stores c by TMA (tma_store.cu), PlainResult by the threads.
/// - Registers by role, and operand descriptors in one register (setmaxnreg.cu).
/// - Epilogue adds the bias and applies ReLU (fused_epilogue.cu).
/// - Tiles for one or two consumers (hopper/small_tiles.cu).
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "core/activation.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The work of a GEMM with this shape. @param step of k, in a stage
/// @param below tiles of an item, below each other
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm, int step, int below = 1) {
  return {.tiles_m = ceil_div(gemm.M, below * Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, step),
          .map = gemm.map};
}

/// Calls body(Shape) for the first shape that has a tile for nine of ten SMs, or for the last one.
template <class Shape, class... Smaller, class Body>
auto with_shape_of(const GemmProblem& gemm, const Body& body) {
  if constexpr (sizeof...(Smaller) == 0) {
    return body(Shape{});
  } else {
    const std::int64_t tiles =
        std::int64_t{ceil_div(gemm.M, Shape::M)} * ceil_div(gemm.N, Shape::N);
    if (tiles >= ceil_div(9 * multiprocessors(), 10)) return body(Shape{});
    return with_shape_of<Smaller...>(gemm, body);
  }
}

/// The reason not to support the problem's map with tiles of this shape.
template <class Shape>
Declined why_no_order(const GemmProblem& gemm) {
  if (gemm.map == TileMap::row_major) return {};  // the order of item_at(), without a grid
  return tile_map::why_no_whole_tiles({.map = gemm.map,
                                       .tiles_m = ceil_div(gemm.M, Shape::M),
                                       .tiles_n = ceil_div(gemm.N, Shape::N)});
}

/// Whether pairs of columns of c begin at multiples of two elements, if its first row does.
inline bool columns_in_pairs(const GemmProblem& gemm) { return gemm.N % 2 == 0; }

/// The choice for a half-precision GEMM in words. @param also what else there is to say
template <class Shape>
std::string in_words(const GemmProblem& gemm, const char* also = "") {
  return text(dtype_name(gemm.dtype, gemm.precision), ", ", Shape::M, " x ", Shape::N, also,
              rows_in_eights(gemm) ? ", by TMA" : ", by a warp",
              columns_in_pairs(gemm) ? ", columns in pairs" : "");
}

/// c [M][N] stored by the threads, where TMA cannot write it.
template <class Shape, class T>
struct PlainResult {
  T* c;               ///< [M][N]
  std::int64_t M, N;  ///< its sizes
  bool pairs;         ///< Two neighbours can be stored at once.

  /// Stores a consumer's accumulators of a tile. 128 threads call it.
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&sums)[Shape::kRowTiles][Shape::N / 2], char*, int&) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const std::int64_t n = std::int64_t{item.n} * Shape::N;
    T* const first = c + n;
    const int columns = static_cast<int>(N - n);
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      const std::int64_t row =
          item.m * Shape::M + (consumer * Shape::kRowTiles + i) * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < Shape::N / 8; ++j) {
        const int column = j * 8 + lane % 4 * 2, left = columns - column;
        store_pair(row_at(first, row), column, left, sums[i][4 * j], sums[i][4 * j + 1]);
        store_pair(row_at(first, row + 8), column, left, sums[i][4 * j + 2], sums[i][4 * j + 3]);
      }
    }
  }
  /// A row, from the column `first` of row 0 on; null below the last row.
  __device__ T* row_at(T* first, std::int64_t row) const {
    return row < M ? first + row * N : nullptr;
  }
  /// Stores two neighbours, as far as they lie in c. @param left columns from there to the last one
  __device__ void store_pair(T* row, int column, int left, float v0, float v1) const {
    if (row == nullptr || left <= 0) return;
    if (pairs) {
      store_two(row + column, v0, v1);
    } else {
      row[column] = rounded_to<T>(v0);
      if (left > 1) row[column + 1] = rounded_to<T>(v1);
    }
  }
  /// No copy is in flight.
  __device__ void finish() const {}
};

/// Bytes of a staging buffer of 64 x 64 elements.
inline constexpr int kBoxBytes = 64 * 64 * 2,
                     kStagingBytes = kConsumers * 2 * kBoxBytes;  ///< Two per consumer.

/// c [M][N] stored by TMA, from staging buffers in shared memory.
template <class Shape, class T>
struct BoxedResult {
  CUtensorMap c;  ///< in boxes of 64 x 64

  /// Stores a consumer's accumulators of a tile. 128 threads call it. @param box the buffer, 0 or 1
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&sums)[Shape::kRowTiles][Shape::N / 2], char* staging,
                        int& box) const {
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int piece = 0; piece < Shape::N / 64; ++piece) {
        store_piece(item, consumer, i, piece, staging, box, [&](T* to, int j, int half) {
          const int first = 4 * (8 * piece + j) + 2 * half;
          store_two(to, sums[i][first], sums[i][first + 1]);
        });
      }
    }
  }
  /// Stores 64 columns of 64 rows of a consumer. 128 threads call it. @param i which rows
  /// @param piece which columns @param put put(to, j, half) stores this thread's two accumulators
  /// of columns 8 j to 8 j + 7: half 0 of its first row, half 1 of the row 8 below
  template <class Put>
  __device__ void store_piece(const WgmmaItem& item, int consumer, int i, int piece, char* staging,
                              int& box, const Put& put) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
    char* const buffer = staging + (2 * consumer + box) * kBoxBytes;
    if (thread == 0) ptx::cp_async_bulk_wait_group_read<1>();
    // Separates TMA's reads of this buffer, two stores ago, from the stores that overwrite it.
    ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int column = 8 * j + lane % 4 * 2;
      T* const to = reinterpret_cast<T*>(buffer);
      put(to + swizzled_half(row, column), j, 0);
      put(to + swizzled_half(row + 8, column), j, 1);
    }
    ptx::fence_proxy_async();  // orders the generic stores before TMA's reads (async proxy)
    ptx::named_barrier_sync(1 + consumer, 128);  // separates all threads' stores from the copy
    if (thread == 0) {
      const int m = static_cast<int>(item.m) * Shape::M + (consumer * Shape::kRowTiles + i) * 64;
      ptx::tma_store<2>(&c, buffer, {item.n * Shape::N + piece * 64, m});
      ptx::cp_async_bulk_commit_group();
    }
    box ^= 1;
  }
  /// Waits until TMA has read all buffers, before the block ends and its shared memory is freed.
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// The same by the threads, 64 columns at a time.
template <class Shape, class T>
struct PlainPieces : PlainResult<Shape, T> {
  /// As BoxedResult::store_piece().
  template <class Put>
  __device__ void store_piece(const WgmmaItem& item, int consumer, int i, int piece, char*, int&,
                              const Put& put) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const std::int64_t n = std::int64_t{item.n} * Shape::N;
    T* const first = this->c + n;
    const int columns = static_cast<int>(this->N - n);
    const std::int64_t row =
        item.m * Shape::M + (consumer * Shape::kRowTiles + i) * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int column = piece * 64 + j * 8 + lane % 4 * 2, left = columns - column;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t both;
        put(reinterpret_cast<T*>(&both), j, half);
        this->store_pair(this->row_at(first, row + 8 * half), column, left,
                         to_float(T{static_cast<std::uint16_t>(both)}),
                         to_float(T{static_cast<std::uint16_t>(both >> 16)}));
      }
    }
  }
};

/// Whether TMA can read a and b and write c.
inline bool tma_takes(const GemmProblem& gemm, const void* a, const void* b, const void* c) {
  return rows_in_eights(gemm) && begin_at_16_bytes(a, b) && begin_at_16_bytes(c, c);
}

/// c by the threads.
template <class Shape, class T>
PlainResult<Shape, T> plain_result(const GemmProblem& gemm, T* c) {
  return {c, gemm.M, gemm.N,
          reinterpret_cast<std::uintptr_t>(c) % 4 == 0 && columns_in_pairs(gemm)};
}

/// c by TMA.
template <class Shape, class T>
BoxedResult<Shape, T> boxed_result(const GemmProblem& gemm, T* c) {
  return {tensor_map(TiledMap{2, {gemm.N, gemm.M}, {1, gemm.N}, {64, 64}}, c)};
}

/// Calls body(source, result) for a problem's arrays: by TMA, or, where TMA cannot read or write
/// one of them, by a warp and the consumers. @tparam Stored the shape that is stored
template <class Shape, class Stored, class T, template <class, class> class Plain = PlainResult,
          class Body>
void with_halves(const GemmProblem& gemm, const T* a, const T* b, T* c, const Body& body) {
  if (!tma_takes(gemm, a, b, c)) {
    body(GatheredHalves<Shape, T>{a, b, gemm}, Plain<Stored, T>{plain_result<Stored>(gemm, c)});
    return;
  }
  const TiledHalves<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
  body(source, boxed_result<Stored>(gemm, c));
}

/// Threads of a block: the consumers, and a producer warpgroup, of which one warp loads.
inline constexpr int kBlockThreads = kConsumerThreads + 128;
inline constexpr int kRegisters =
                         168,    ///< Of a thread at launch: 65536 / kBlockThreads, in eights.
    kRegistersToLoad = 40,       ///< Of a producer thread.
    kRegistersToMultiply = 232;  ///< Of a consumer thread.
static_assert(kRegistersToLoad + kConsumers * kRegistersToMultiply <=
              (1 + kConsumers) * kRegisters);

/// An operand of `wgmma` in shared memory. All of its parts lie in the same 256 KB, so that their
/// descriptors differ in the low word alone: no carry, and half of the registers.
struct OperandDescriptor {
  std::uint32_t low,  ///< the descriptor of its beginning, lower half
      high;           ///< upper half

  /// From the descriptor of its beginning.
  __device__ explicit OperandDescriptor(std::uint64_t all)
      : low(static_cast<std::uint32_t>(all)), high(static_cast<std::uint32_t>(all >> 32)) {}
  /// The descriptor of the part that begins so many bytes further.
  __device__ std::uint64_t at(int bytes) const {
    return std::uint64_t{high} << 32 | (low + static_cast<std::uint32_t>(bytes / 16));
  }
};

/// The bias and the activation, applied to accumulators before they are rounded and stored.
template <class Shape>
struct Epilogue {
  const float* bias;      ///< [N], or null
  std::int64_t N;         ///< columns of c
  Activation activation;  ///< applied after the bias

  /// Whether the problem has an epilogue.
  __device__ bool asked() const { return bias != nullptr || activation != Activation::none; }
  /// Loads the bias of a tile's columns: lane l of each warp has those of columns 32 i + l.
  __device__ void load(const WgmmaItem& item, float (&of_lane)[Shape::N / 32]) const {
#pragma unroll
    for (int i = 0; i < Shape::N / 32; ++i) {
      const std::int64_t n =
          std::int64_t{item.n} * Shape::N + 32 * i + static_cast<int>(threadIdx.x) % 32;
      of_lane[i] = bias != nullptr && n < N ? bias[n] : 0.0f;
    }
  }
  /// Applies the epilogue to a consumer's accumulators of a tile. Whole warps call it.
  __device__ void finish(const float (&of_lane)[Shape::N / 32],
                         float (&sums)[Shape::kRowTiles][Shape::N / 2]) const {
    const int pair = static_cast<int>(threadIdx.x) % 4 * 2;  // of 8 columns, a lane's own two
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float bias_n = __shfl_sync(~0u, of_lane[j / 4], j % 4 * 8 + pair + e);
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          float& above = sums[i][4 * j + e];
          float& below = sums[i][4 * j + 2 + e];  // 8 rows further down
          above = activated(activation, above + bias_n);
          below = activated(activation, below + bias_n);
        }
      }
    }
  }
};

/// A tile for two consumers with 64 rows each.
template <int kN, int kStages>
struct TallShape : WgmmaShape<128, kN, kStages, 1> {
  static constexpr int kWarpgroups = 2;             ///< Consumers.
  static constexpr int kRegistersToMultiply = 232;  ///< Of their threads.
};
/// A tile for one consumer.
template <int kN, int kStages_>
struct LowShape : WgmmaShape<128, kN, kStages_, 1> {
  static constexpr int M = 64,                       ///< Rows.
      kWarpgroups = 1;                               ///< Consumers.
  static constexpr int kRegistersToMultiply = 240;   ///< Of their threads.
  static constexpr int kBytesA = M * kHalfStep * 2,  ///< Of a stage's a.
      kStageBytes = kBytesA + kN * kHalfStep * 2;    ///< a, then b.
  static constexpr std::size_t kSharedBytes = kStages_ * kStageBytes + kAtom;  ///< Of a block.
};
/// Consumer threads of a block.
template <class Shape>
inline constexpr int kMultiply = 128 * Shape::kWarpgroups;
/// All threads of a block: the consumers, and a producer warpgroup.
template <class Shape>
inline constexpr int kThreads = kMultiply<Shape> + 128;

/// item_at() for whole tiles, in 32-bit arithmetic.
__device__ inline bool whole_item_at(const WgmmaWork& work, const WgmmaPlaces& places,
                                     unsigned index, WgmmaItem* item) {
  if (work.map != TileMap::row_major) return item_at(work, places, index, item);
  const auto tiles_m = static_cast<unsigned>(work.tiles_m);
  const unsigned group = index / (tiles_m * kColumnGroup);
  const unsigned n0 = group * kColumnGroup;
  const unsigned columns = min(unsigned{kColumnGroup}, work.tiles_n - n0);
  const unsigned inside = index - n0 * tiles_m;
  *item = {inside / columns, static_cast<int>(n0 + inside % columns), 0, 0, work.steps};
  return true;
}

/// Calls body(piece) for each piece of a tile, with its number as a type: arrays indexed by it stay
/// in registers.
template <int kPieces, class Body>
__device__ void for_each_piece(const Body& body) {
  [&]<int... kPiece>(std::integer_sequence<int, kPiece...>) {
    (body(std::integral_constant<int, kPiece>()), ...);
  }(std::make_integer_sequence<int, kPieces>());
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
