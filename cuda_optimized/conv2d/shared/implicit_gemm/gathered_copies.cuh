/// @file gathered_copies.cuh
/// @brief How a block copies its tiles of an NHWC convolution's product into shared memory: four
/// channels at a time, or one.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The address that lane 0 has. All lanes have it; but the compiler does not know what it is made
/// of, so that it adds an int to it in one instruction, and not in four to its parts.
__device__ inline const float* kept_whole(const float* address) {
  return reinterpret_cast<const float*>(
      __shfl_sync(0xFFFFFFFF, reinterpret_cast<std::uintptr_t>(address), 0));
}

/// Where a block's tile lies.
struct GatheredTile {
  std::int64_t m0, pixels;  ///< its first pixel; the end of all
  int n0, group;            ///< its first filter, in this group
  int end;                  ///< of the steps of k
};

/// Copies tiles 16 bytes at a time: channels come in fours, and product.fits_ints().
///
/// A thread copies the same 4 steps of k of every kRows-th pixel and filter. All that depends on
/// the pixel is found once, before the first stage, and kept in two registers a pixel: where its
/// window begins, from the tile's first image on, and a bit for each row and each column of taps
/// that lies inside of the source. In each stage, a thread decodes its k once; then a copy is a
/// test of two bits, an addition, and cp.async itself.
template <GatheredShape S>
class FourAtATime {
 public:
  /// All threads of the block take part, and meet at a barrier.
  /// @param table [S.M] rows of kRowBytes in shared memory
  __device__ FourAtATime(const GatheredGemm& product, const GatheredTile& tile, const float* source,
                         const float* weights, void* table)
      : product_(product), end_(tile.end) {
    auto* const rows = static_cast<Row*>(table);
    const std::int64_t image = place_of(product, tile.m0).n;
    for (int i = static_cast<int>(threadIdx.x); i < S.M; i += S.threads()) {
      Row row{0, 0};  // past the last pixel, every tap is outside
      if (tile.m0 + i < tile.pixels) {
        const Pixel pixel = pixel_at(product, tile.m0 + i);
        row.source =
            ((static_cast<int>(pixel.n - image) * product.H + pixel.h) * product.W + pixel.w) *
            product.source_channels;
        for (int r = 0; r < product.R; ++r) {
          const auto h = static_cast<unsigned>(pixel.h + r * product.tap.h);
          row.inside |= static_cast<unsigned>(h < static_cast<unsigned>(product.H)) << r;
        }
        for (int s = 0; s < product.S; ++s) {
          const auto w = static_cast<unsigned>(pixel.w + s * product.tap.w);
          row.inside |= static_cast<unsigned>(w < static_cast<unsigned>(product.W))
                        << (product.R + s);
        }
      }
      rows[i] = row;
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int j = 0; j < kRowsA; ++j) rows_[j] = rows[first_row() + j * kRows];
    source_ = kept_whole(source + image * product.H * product.W * product.source_channels +
                         std::int64_t{tile.group} * product.channels);
    weights_ = kept_whole(weights + tile.group * product.weights_group + product.weights_first);
    filter_ = static_cast<int>((tile.n0 + first_row()) * product.weights_f);
    filters_ = product.filters - tile.n0 - first_row();
  }

  /// Asks for steps k0 ... of the tile's pixels and filters; zeros for the padding and past the
  /// edges.
  __device__ void operator()(int k0, float* a_tile, float* b_tile) const {
    const int k = static_cast<int>(threadIdx.x) % kPieces * 4;
    const bool any = k0 + k < end_;
    const Tap tap = tap_at(product_, any ? k0 + k : 0);
    const int shift =
        (tap.r * product_.tap.h * product_.W + tap.s * product_.tap.w) * product_.source_channels +
        tap.c;
    // Without steps, a bit that no row has.
    const unsigned needed = any ? 1u << tap.r | 1u << (product_.R + tap.s) : 1u << 31;
    float* const a = a_tile + gemm::MmaTile<TileOrder::along_k, S.M>::at(first_row(), k);
#pragma unroll
    for (int j = 0; j < kRowsA; ++j) {
      const bool inside = (needed & ~rows_[j].inside) == 0;
      ptx::cp_async<16>(a + j * kRows * kMmaStep, source_ + (inside ? rows_[j].source + shift : 0),
                        inside ? 16 : 0);
    }
    const int filters = any ? filters_ : 0;
    const int weight =
        filter_ + static_cast<int>(tap.r * product_.weights_r + tap.s * product_.weights_s + tap.c);
    const int next = kRows * static_cast<int>(product_.weights_f);
    float* const b = b_tile + gemm::MmaTile<TileOrder::along_k, S.N>::at(first_row(), k);
#pragma unroll
    for (int j = 0; j < kRowsB; ++j) {
      const bool inside = j * kRows < filters;
      ptx::cp_async<16>(b + j * kRows * kMmaStep, weights_ + (inside ? weight + j * next : 0),
                        inside ? 16 : 0);
    }
  }

 private:
  struct Row {
    int source;       ///< offset where its window begins
    unsigned inside;  ///< bit r: row r of taps lies in the source; bit R + s: column s
  };
  static constexpr int kPieces = kMmaStep / 4;                      ///< copies of a row
  static constexpr int kRows = S.threads() / kPieces;               ///< rows at a time
  static constexpr int kRowsA = S.M / kRows, kRowsB = S.N / kRows;  ///< rows of a thread
  static_assert(kRows % 8 == 0, "the permutation of MmaTile must repeat from row to row");

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kPieces; }

  const GatheredGemm& product_;
  int end_, filter_, filters_;
  const float *source_, *weights_;
  Row rows_[kRowsA];
};

/// Copies tiles a float at a time: takes every problem, and finds most things anew in each stage.
template <GatheredShape S>
class OneAtATime {
 public:
  /// All threads of the block take part, and meet at a barrier.
  /// @param table [S.M] rows of kRowBytes in shared memory
  __device__ OneAtATime(const GatheredGemm& product, const GatheredTile& tile, const float* source,
                        const float* weights, void* table)
      : product_(product), tile_(tile), rows_(static_cast<Row*>(table)), source_(source),
        weights_(weights + tile.group * product.weights_group + product.weights_first) {
    for (int i = static_cast<int>(threadIdx.x); i < S.M; i += S.threads()) {
      // Past the last pixel: outside of the source, on the side to which the taps lead.
      Row row{0, product.tap.h < 0 ? -1 : product.H, product.tap.w < 0 ? -1 : product.W};
      if (tile.m0 + i < tile.pixels) {
        const Pixel pixel = pixel_at(product, tile.m0 + i);
        row = {((pixel.n * product.H + pixel.h) * product.W + pixel.w) * product.source_channels +
                   std::int64_t{tile.group} * product.channels,
               pixel.h, pixel.w};
      }
      rows_[i] = row;
    }
    __syncthreads();  // separates these stores from the loads of other threads
  }

  /// Asks for steps k0 ... of the tile's pixels and filters; zeros for the padding and past the
  /// edges.
  __device__ void operator()(int k0, float* a_tile, float* b_tile) const {
    const int k = gemm::lane_of_warp(), warp = static_cast<int>(threadIdx.x) / 32;
    const bool any = k0 + k < tile_.end;
    const Tap tap = tap_at(product_, any ? k0 + k : 0);
    const int h = tap.r * product_.tap.h, w = tap.s * product_.tap.w;
    const std::int64_t shift =
        (std::int64_t{h} * product_.W + w) * product_.source_channels + tap.c;
#pragma unroll 2
    for (int i = warp; i < S.M; i += S.threads() / 32) {
      const Row row = rows_[i];
      // Negative coordinates become huge unsigned ones, so that one comparison checks both ends.
      const bool inside = any &&
                          static_cast<unsigned>(row.h + h) < static_cast<unsigned>(product_.H) &&
                          static_cast<unsigned>(row.w + w) < static_cast<unsigned>(product_.W);
      ptx::cp_async<4>(a_tile + gemm::MmaTile<TileOrder::along_k, S.M>::at(i, k),
                       source_ + (inside ? row.source + shift : 0), inside ? 4 : 0);
    }
    const std::int64_t weight = tap.r * product_.weights_r + tap.s * product_.weights_s + tap.c;
#pragma unroll 2
    for (int n = warp; n < S.N; n += S.threads() / 32) {
      const bool inside = any && tile_.n0 + n < product_.filters;
      ptx::cp_async<4>(b_tile + gemm::MmaTile<TileOrder::along_k, S.N>::at(n, k),
                       weights_ + (inside ? weight + (tile_.n0 + n) * product_.weights_f : 0),
                       inside ? 4 : 0);
    }
  }

 private:
  /// The first pixel of a window, which may lie in the padding.
  struct alignas(16) Row {
    std::int64_t source;  ///< Its offset.
    int h, w;             ///< Its coordinates.
  };

  const GatheredGemm& product_;
  GatheredTile tile_;
  Row* rows_;
  const float *source_, *weights_;
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
