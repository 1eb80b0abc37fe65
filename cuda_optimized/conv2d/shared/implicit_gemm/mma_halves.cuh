/// @file mma_halves.cuh
/// @brief The windows of an NHWC convolution in half precision for mma.sync: their tile in shared
/// memory, the copies that fill it, and the fragments that are loaded from it.
/// cuda_optimized/conv2d/implicit_gemm/mma.cu explains them.
#pragma once

#include <type_traits>

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

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

/// Whether both arrays are aligned to 16 bytes.
inline bool begin_at_16_bytes(const void* a, const void* b) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
}

inline constexpr int kHalfDepth = 64;   ///< Elements along k in a stage: window rows of 128 bytes.
inline constexpr int kVector = 8;       ///< Elements in 16 bytes.
inline constexpr int kLargeFilter = 8;  ///< Rows of taps from which on some may be left out.

/// The sizes of a kernel: the tile of a block and the tile of a warp (pixels x filters), stages in
/// shared memory, and blocks that an SM must be able to hold.
template <int kM, int kN, int kWarpM, int kWarpN, int kStageCount, int kBlockCount>
struct HalfShape {
  static constexpr int M = kM, N = kN;                               ///< the tile of a block
  static constexpr int WarpM = kWarpM, WarpN = kWarpN;               ///< the tile of a warp
  static constexpr int kStages = kStageCount;                        ///< in shared memory
  static constexpr int kBlocks = kBlockCount;                        ///< of an SM, at least
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;  ///< of a block
  static constexpr int kWindows = kM * kHalfDepth, kFilters = kN * kHalfDepth;  ///< of a stage
  static constexpr int kStage = kWindows + kFilters;                            ///< elements
  static constexpr int kPitch = kN + 8;  ///< floats of a row of staged accumulators
  /// of a block
  static constexpr std::size_t kSharedBytes = kStages * kStage * std::size_t{2};
  static_assert(std::size_t{kM} * kPitch * 4 <= kSharedBytes, "the epilogue reuses the stages");
};

/// The tiles of a grid: tiles of filters are the fastest, then groups, then tiles of pixels. Blocks
/// that run at the same time then share windows, which the L2 cache holds.
struct HalfTiles {
  FastDivision by_filters, by_groups;  ///< by the tiles of a group's filters, by the groups

  /// @param filters, filters_of_tile of a group, of a tile
  HalfTiles(int filters, int filters_of_tile, int groups)
      : by_filters(ceil_div(filters, filters_of_tile)), by_groups(groups) {}
};

/// What a block computes: the accumulators of a tile, or of one split of its steps along k.
template <class S>
struct HalfBlock {
  int m0, rows;        ///< the first pixel, and pixels; the tile may end past the last one
  int n0, group;       ///< the first filter, in this group
  int begin, end;      ///< elements along k
  int warp_m, warp_n;  ///< where the tile of this thread's warp begins

  /// Of a grid (tiles, splits).
  __device__ HalfBlock(const GatheredGemm& product, const HalfTiles& tiles) {
    const int index = static_cast<int>(blockIdx.x), above = tiles.by_filters.quotient(index);
    n0 = tiles.by_filters.remainder(index, above) * S::N;
    const int tile_m = tiles.by_groups.quotient(above);
    group = tiles.by_groups.remainder(above, tile_m);
    m0 = tile_m * S::M;
    rows = min(product.N * product.rows * product.columns - m0, S::M);
    // Rows of taps that lie in the padding for all pixels are left out. Large filters have many;
    // for the others, the divisions cost more than they save.
    const Depth all = product.R < kLargeFilter ? Depth{0, product.R * product.S * product.channels}
                                               : depth_of(product, m0, max(rows, 1));
    const int splits = static_cast<int>(gridDim.y), split = static_cast<int>(blockIdx.y);
    const int share = ceil_div(ceil_div(all.end - all.begin, kHalfDepth), splits) * kHalfDepth;
    begin = min(all.begin + split * share, all.end);
    end = min(begin + share, all.end);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    warp_m = warp / (S::N / S::WarpN) * S::WarpM;
    warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  }
  /// Stages that its steps fill; the last one may be filled partly.
  __device__ int stages() const { return ceil_div(end - begin, kHalfDepth); }
};

/// Where element (row, k) of a tile with rows along k lies. The eight vectors of a row are permuted
/// by exclusive or with the row's number, so that the eight rows that ldmatrix reads at a time lie
/// in different banks.
HOST_DEVICE inline int place_along_k(int row, int k) {
  return row * kHalfDepth + ((k / kVector ^ row % 8) * kVector | k % kVector);
}

/// Loads the fragments of a warp's windows: rows m ..., elements k ... k + 15.
template <int kCount, class T>
__device__ inline void load_windows(const T* tile, int m, int k,
                                    std::uint32_t (&fragments)[kCount][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // The permutation repeats every 8 rows, so fragments differ by constants alone.
  const T* const from = tile + m * kHalfDepth + place_along_k(lane % 16, k + lane / 16 * kVector);
#pragma unroll
  for (int i = 0; i < kCount; ++i) ptx::ldmatrix_x4(fragments[i], from + 16 * i * kHalfDepth);
}

/// The tap and the channel of a thread's next vector.
struct TapWalk {
  int r, s, c;  ///< row and column of the tap, channel of the group

  /// Those of element k.
  __device__ TapWalk(const GatheredGemm& product, int k) {
    const Tap tap = tap_at(product, k);
    r = tap.r, s = tap.s, c = tap.c;
  }
  /// Those of element k + kHalfDepth. With at least kHalfDepth channels, the loop runs at most
  /// once.
  __device__ void advance(const GatheredGemm& product) {
    for (c += kHalfDepth; c >= product.channels; c -= product.channels) {
      if (++s < product.S) continue;
      s = 0;
      ++r;
    }
  }
};

/// Copies the windows of a block's pixels into shared memory, stage after stage, 16 bytes at a
/// time. It takes channels in multiples of 8, an aligned source, and product.fits_ints().
///
/// A thread copies the same vector of every kRows-th pixel. What depends on the pixel alone is
/// computed once: the offset of its window, and a bit for each row and each column of taps that
/// lies inside the source. A copy is then a test of two bits, an addition, and cp.async.
template <class S, class T>
class WindowVectors {
 public:
  static constexpr int kRows = S::kThreads / 8;  ///< rows that a block copies at a time

  /// This thread's first row.
  __device__ static int row() { return static_cast<int>(threadIdx.x) / 8; }
  /// The first element of its vector in a row of the stage.
  __device__ static int element() { return static_cast<int>(threadIdx.x) % 8 * kVector; }

  /// @param source x, or dy of a gradient @param block whose windows these are
  __device__ WindowVectors(const GatheredGemm& product, const HalfBlock<S>& block, const T* source)
      : product_(product), next_(block.begin + element()), end_(block.end),
        at_(product, next_ < end_ ? next_ : 0) {
    const std::int64_t image = place_of(product, block.m0).n;
    source_ = source + image * product.H * product.W * product.source_channels +
              static_cast<std::int64_t>(block.group) * product.channels;
#pragma unroll
    for (int j = 0; j < S::M / kRows; ++j) {
      starts_[j] = 0;
      inside_[j] = 0;  // past the last pixel, every tap is outside
      if (row() + j * kRows >= block.rows) continue;
      const Pixel pixel = pixel_at(product, block.m0 + row() + j * kRows);
      starts_[j] =
          ((static_cast<int>(pixel.n - image) * product.H + pixel.h) * product.W + pixel.w) *
          product.source_channels;
#pragma unroll 1
      for (int r = 0; r < product.R; ++r) {
        const auto h = static_cast<unsigned>(pixel.h + r * product.tap.h);
        inside_[j] |= static_cast<unsigned>(h < static_cast<unsigned>(product.H)) << r;
      }
#pragma unroll 1
      for (int s = 0; s < product.S; ++s) {
        const auto w = static_cast<unsigned>(pixel.w + s * product.tap.w);
        inside_[j] |= static_cast<unsigned>(w < static_cast<unsigned>(product.W))
                      << (product.R + s);
      }
    }
  }

  /// Where along k the vectors of the next stage begin that this thread copies.
  __device__ int next() const { return next_; }
  /// Whether they are part of the sums.
  __device__ bool left() const { return next_ < end_; }

  /// Starts the copies of the next stage. In the padding, past the last pixel and where no vector
  /// is left, cp.async fills with zeros.
  __device__ void operator()(T* tile) {
    int offset = 0;
    unsigned needed = 1u << 31;  // a bit that no pixel has
    if (left()) {
      offset = (at_.r * product_.tap.h * product_.W + at_.s * product_.tap.w) *
                   product_.source_channels +
               at_.c;
      needed = 1u << at_.r | 1u << (product_.R + at_.s);
    }
    T* const to = tile + place_along_k(row(), element());
#pragma unroll
    for (int j = 0; j < S::M / kRows; ++j) {
      const bool inside = (needed & ~inside_[j]) == 0;
      ptx::cp_async<16>(to + j * kRows * kHalfDepth, source_ + (inside ? starts_[j] + offset : 0),
                        inside ? 16 : 0);
    }
    next_ += kHalfDepth;
    at_.advance(product_);
  }

 private:
  static_assert(kRows % 8 == 0, "the permutation of place_along_k() must repeat from row to row");
  const GatheredGemm& product_;
  int next_, end_;
  TapWalk at_;
  const T* source_;
  int starts_[S::M / kRows];
  unsigned inside_[S::M / kRows];
};

/// The same element by element, through registers: any channels, sizes and alignment.
template <class S, class T>
class WindowElements {
 public:
  /// @param source x, or dy of a gradient @param block whose windows these are
  __device__ WindowElements(const GatheredGemm& product, const HalfBlock<S>& block, const T* source)
      : product_(product), block_(block), next_(block.begin), source_(source) {}

  /// Where along k the next stage begins.
  __device__ int next() const { return next_; }

  /// Copies the next stage.
  __device__ void operator()(T* tile) {
    const int thread = static_cast<int>(threadIdx.x), k = thread % kHalfDepth;
    const bool left = next_ + k < block_.end;
    const Tap tap = tap_at(product_, left ? next_ + k : 0);
#pragma unroll 1
    for (int row = thread / kHalfDepth; row < S::M; row += S::kThreads / kHalfDepth) {
      tile[place_along_k(row, k)] = left && row < block_.rows ? value(row, tap) : T{};
    }
    next_ += kHalfDepth;
  }

 private:
  __device__ T value(int row, const Tap& tap) const {
    const Pixel pixel = pixel_at(product_, block_.m0 + row);
    const int h = pixel.h + tap.r * product_.tap.h, w = pixel.w + tap.s * product_.tap.w;
    if (h < 0 || h >= product_.H || w < 0 || w >= product_.W) return {};
    return source_[((pixel.n * product_.H + h) * product_.W + w) * product_.source_channels +
                   static_cast<std::int64_t>(block_.group) * product_.channels + tap.c];
  }

  const GatheredGemm& product_;
  const HalfBlock<S>& block_;
  int next_;
  const T* source_;
};

/// One of the two.
template <bool kVectors, class S, class T>
using CopyWindows = std::conditional_t<kVectors, WindowVectors<S, T>, WindowElements<S, T>>;

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
