/// @file halo_operands.cuh
/// @brief Loads of the operands of implicit_gemm/halo_tile.cu, halo tiles of pixels and the taps'
/// weights: by TMA, or by a warp.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/halo/halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/half_windows.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Where a patch begins in the source, of which it has every stride-th pixel.
struct PatchOrigin {
  int group,  ///< of channels
      chunk,  ///< which 32 words of the group's channels
      w,      ///< its first column, in strides; negative in the padding
      h,      ///< its first row; likewise
      n;      ///< its image, or the first one
};

/// Patches of source [N][H][W][C] by TMA. What lies outside of an image arrives as
/// zeros.
struct CopiedPatches {
  CUtensorMap source;  ///< of words, or of floats, in boxes of a patch
  int group_c;         ///< words of a group
  int bytes;           ///< of a box

  /// Starts the copy to `patch`; `full` completes once all bytes are there.
  __device__ void load(const PatchOrigin& from, char* patch, std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load<4>(patch, &source, full,
                     {from.group * group_c + from.chunk * kTensorMapRow, from.w, from.n, from.h});
  }
};

/// TMA's view of a source that begins at a multiple of 16 bytes: of words, or of
/// floats, which it rounds to TF32. Every second pixel, or every third, is an array, too.
template <class Word>
CopiedPatches copied_patches(const PatchWork& work, const Word* source) {
  const Windows& windows = work.windows;
  const PatchTiles& tiles = work.plan.tiles;
  const std::int64_t words = std::int64_t{windows.groups} * windows.group_c;
  const std::int64_t row = windows.W * words;
  const Step &stride = windows.stride, &skipped = work.skipped;
  const TiledMap map = {.rank = 4,
                        .extents = {words, ceil_div(windows.W - skipped.w, stride.w), windows.N,
                                    ceil_div(windows.H - skipped.h, stride.h)},
                        .strides = {1, stride.w * words, windows.H * row, stride.h * row},
                        .box = {kTensorMapRow, tiles.row, tiles.images, tiles.patch_rows}};
  return {.source = tensor_map(map, source + skipped.h * row + skipped.w * words),
          .group_c = windows.group_c,
          .bytes = tiles.bytes()};
}

/// Channels in a word.
template <class T>
inline constexpr int kWordChannels = 4 / static_cast<int>(sizeof(T));

/// A float as a word, rounded to TF32; as word_at() of numbers of 16 bits.
__device__ inline std::uint32_t word_at(const float* numbers, std::int64_t offset, int count) {
  return count > 0 ? ptx::to_tf32(numbers[offset]) : 0;
}

/// The same by a warp, word by word, for what TMA cannot take.
template <class T>
struct GatheredPatches {
  const T* source;        ///< [N][H][W][C]
  int N, H, W, C;         ///< of the source
  int group_c;            ///< channels of a group
  Step stride,            ///< pixels of the source from one of the patch to the next
      skipped;            ///< pixels before the first that is in a patch
  int images, rows, row;  ///< of a patch: images, rows of each, and pixels of a row

  /// Copies a patch; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const PatchOrigin& from, char* patch, std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int c = (from.chunk * kTensorMapRow + lane) * kWordChannels<T>;
    const Index4 at{H, W, C};
    int i = 0;  // a pixel of the patch
    for (int line = 0; line < images * rows; ++line) {
      const int image = line % images;
      const int h = (from.h + line / images) * stride.h + skipped.h;
      const bool has_row = image < N - from.n && h >= 0 && h < H;
      for (int column = 0; column < row; ++column, ++i) {
        const int w = (from.w + column) * stride.w + skipped.w;
        const bool inside = has_row && w >= 0 && w < W;
        reinterpret_cast<std::uint32_t*>(patch)[gemm::swizzled(i, lane)] =
            inside
                ? word_at(source, at(from.n + image, h, w, from.group * group_c + c), group_c - c)
                : 0;
      }
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
};

/// Of a source that may begin anywhere. @param group_c channels of a group
template <class T>
GatheredPatches<T> gathered_patches(const PatchWork& work, const T* source, int group_c) {
  const Windows& windows = work.windows;
  const PatchTiles& tiles = work.plan.tiles;
  return {.source = source,
          .N = windows.N,
          .H = windows.H,
          .W = windows.W,
          .C = windows.groups * group_c,
          .group_c = group_c,
          .stride = windows.stride,
          .skipped = work.skipped,
          .images = tiles.images,
          .rows = tiles.patch_rows,
          .row = tiles.row};
}

/// Products with weights whose slots hold [64 filters][64 channels].
struct WeightsAlong {
  /// Adds the products of a tap's weights and the columns that a descriptor names to the sums.
  template <int kColumns, class T>
  __device__ static void multiply(float (&sums)[kColumns / 2], const char* weights,
                                  std::uint64_t columns) {
    const std::uint64_t rows = ptx::wgmma_descriptor(weights);
#pragma unroll
    for (int k = 0; k < kHalfStep; k += 16)  // descriptors count in units of 16 bytes
      wgmma_along_k<kColumns, T>(sums, rows + k / 8, columns + k / 8);
  }
};

/// Weights [K][R*S][group_c] by TMA: 64 filters of a tap, by 32 words of channels.
struct CopiedTaps {
  using Product = WeightsAlong;              ///< how they are multiplied
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap weights;                       ///< of words, or of floats
  int S;                                     ///< taps in a row

  /// Starts the copy of a tap's chunk to a slot; `full` completes once all bytes are there.
  __device__ void load(const PatchFilters& filters, const Tap& tap, int chunk, char* slot,
                       std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, kTapBytes);
    ptx::tma_load<3>(slot, &weights, full,
                     {chunk * kTensorMapRow, tap.r * S + tap.s, filters.first});
  }
};

/// TMA's view of weights that begin at a multiple of 16 bytes.
template <class Word>
CopiedTaps copied_taps(const Windows& windows, const Word* weights) {
  const std::int64_t taps = std::int64_t{windows.R} * windows.S, words = windows.group_c;
  return {.weights = tensor_map(TiledMap{.rank = 3,
                                         .extents = {words, taps, windows.K},
                                         .strides = {1, words, taps * words},
                                         .box = {kTensorMapRow, 1, kPatchFilters}},
                                weights),
          .S = windows.S};
}

/// The same by a warp.
template <class T>
struct GatheredTaps {
  using Product = WeightsAlong;             ///< how they are multiplied
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a filter's words
  const T* weights;                         ///< [K][R][S][group_c]
  int R,                                    ///< taps of a filter, down
      S,                                    ///< and across
      group_c;                              ///< channels of a group

  /// Copies a tap's chunk; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const PatchFilters& filters, const Tap& tap, int chunk, char* slot,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first = (chunk * kTensorMapRow + lane) * kWordChannels<T>;
    for (int j = 0; j < kPatchFilters; ++j) {
      const std::int64_t row = ((filters.first + std::int64_t{j}) * R + tap.r) * S + tap.s;
      reinterpret_cast<std::uint32_t*>(slot)[gemm::swizzled(j, lane)] =
          j < filters.count ? word_at(weights, row * group_c + first, group_c - first) : 0;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
