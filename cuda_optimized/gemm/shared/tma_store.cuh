/// @file tma_store.cuh
/// @brief c by TMA, from boxes in shared memory; tma_store.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/gemm_problem.hpp"
#include "cuda_optimized/gemm/shared/half_operands.cuh"
#include "cuda_optimized/gemm/shared/half_types.cuh"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/gemm/shared/tma_operands.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Bytes of the boxes in which sums leave: two a consumer, in turns.
inline constexpr int kBoxBytes = 64 * 64 * 2, kDraftBytes = kConsumers * 2 * kBoxBytes;

/// c [M][N] by TMA.
template <class Shape, class T>
struct BoxedResult {
  CUtensorMap c;  ///< in boxes of 64 x 64

  /// Stores a consumer's sums of a tile. 128 threads call it. @param box which of the two is next
  __device__ void store(const WgmmaItem& item, int consumer,
                        const float (&sums)[Shape::kRowTiles][Shape::N / 2], char* drafts,
                        int& box) const {
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int piece = 0; piece < Shape::N / 64; ++piece) {
        store_piece(item, consumer, i, piece, drafts, box, [&](T* to, int j, int half) {
          const int first = 4 * (8 * piece + j) + 2 * half;
          store_two(to, sums[i][first], sums[i][first + 1]);
        });
      }
    }
  }
  /// Stores 64 columns of 64 rows of a consumer. 128 threads call it. @param i which rows
  /// @param piece which columns @param put stores what this thread has of columns 8 j to 8 j + 7,
  /// put(to, j, half): two numbers of its upper row, or of the one 8 further down
  template <class Put>
  __device__ void store_piece(const WgmmaItem& item, int consumer, int i, int piece, char* drafts,
                              int& box, const Put& put) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
    char* const draft = drafts + (2 * consumer + box) * kBoxBytes;
    if (thread == 0) ptx::cp_async_bulk_wait_group_read<1>();
    // TMA has read what the box held: all may overwrite it.
    ptx::named_barrier_sync(1 + consumer, 128);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int column = 8 * j + lane % 4 * 2;
      T* const to = reinterpret_cast<T*>(draft);
      put(to + swizzled_half(row, column), j, 0);
      put(to + swizzled_half(row + 8, column), j, 1);
    }
    ptx::fence_proxy_async();                    // ordinary stores, which TMA will read
    ptx::named_barrier_sync(1 + consumer, 128);  // separates all stores from the copy
    if (thread == 0) {
      const int m = static_cast<int>(item.m) * Shape::M + (consumer * Shape::kRowTiles + i) * 64;
      ptx::tma_store<2>(&c, draft, {item.n * Shape::N + piece * 64, m});
      ptx::cp_async_bulk_commit_group();
    }
    box ^= 1;
  }
  /// Before the block ends, and its shared memory with it.
  __device__ void finish() const {
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
  }
};

/// c [M][N] by the threads, 64 columns at a time.
template <class Shape, class T>
struct PlainPieces : PlainResult<Shape, T> {
  /// As BoxedResult::store_piece().
  template <class Put>
  __device__ void store_piece(const WgmmaItem& item, int consumer, int i, int piece, char*, int&,
                              const Put& put) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const auto place = this->matrix.place(item);
    const std::int64_t row =
        item.m * Shape::M + (consumer * Shape::kRowTiles + i) * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const auto pair = this->matrix.columns(place, piece * 64 + j * 8 + lane % 4 * 2);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t both;
        put(reinterpret_cast<T*>(&both), j, half);
        this->matrix.store(pair, this->matrix.row(place, row + 8 * half),
                           to_float(T{static_cast<std::uint16_t>(both)}),
                           to_float(T{static_cast<std::uint16_t>(both >> 16)}));
      }
    }
  }
};

/// The same c, to be stored piece by piece.
template <class Shape, class T>
PlainPieces<Shape, T> in_pieces(const PlainResult<Shape, T>& result) {
  return {result};
}
/// Likewise.
template <class Shape, class T>
const BoxedResult<Shape, T>& in_pieces(const BoxedResult<Shape, T>& result) {
  return result;
}

/// Whether TMA can take a, b and c.
inline bool copy_engine_takes(const GemmProblem& gemm, const void* a, const void* b,
                              const void* c) {
  return rows_in_eights(gemm) && begin_at_16_bytes(a, b) && begin_at_16_bytes(c, c);
}

/// c by the threads.
template <class Shape, class T>
PlainResult<Shape, T> plain_result(const GemmProblem& gemm, T* c) {
  return {
      {c, gemm.M, gemm.N, reinterpret_cast<std::uintptr_t>(c) % 4 == 0 && columns_in_pairs(gemm)}};
}

/// c by TMA.
template <class Shape, class T>
BoxedResult<Shape, T> boxed_result(const GemmProblem& gemm, T* c) {
  return {tensor_map(TiledMap{2, {gemm.N, gemm.M}, {1, gemm.N}, {64, 64}}, c)};
}

/// Calls body(source, result) for a problem's arrays: by TMA, or, where that cannot
/// take one of them, by a warp and the consumers. @tparam Stored the shape that is stored
template <class Shape, class Stored, class T, class Body>
void with_halves(const GemmProblem& gemm, const T* a, const T* b, T* c, const Body& body) {
  if (!copy_engine_takes(gemm, a, b, c)) {
    body(GatheredHalves<Shape, T>{a, b, gemm}, plain_result<Stored>(gemm, c));
    return;
  }
  const TiledHalves<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kHalfStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.N, gemm.K}, {1, gemm.N}, {kHalfColumns, kHalfStep}}, b)};
  body(source, boxed_result<Stored>(gemm, c));
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
