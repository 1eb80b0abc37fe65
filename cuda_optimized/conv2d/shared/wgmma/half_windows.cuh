/// @file half_windows.cuh
/// @brief Sums over windows of 16-bit numbers in NHWC for wgmma: sources, as in window_sources.cuh.
///
/// **Two neighbouring channels are a word.** A word is as long as a float, so that steps, tiles,
/// and what TMA's fields hold are those of wgmma_windows.cuh, with Windows::group_c in
/// words: see in_words(). TMA copies words; which half is what, wgmma alone knows.
#pragma once

#include <algorithm>

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kHalfStep;

/// Why a rung of 16-bit numbers whose channels are innermost declines a problem of others.
inline Declined why_no_half_windows(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f16 && conv.dtype != DType::bf16) {
    return text("multiplies numbers of 16 bits, and the problem asks for ",
                dtype_name(conv.dtype, conv.precision));
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (const Declined why = why_no_windows(conv)) return why;
  return gemm::why_no_wgmma();
}

/// The same windows with channels counted in words; the last word of a group may be half empty.
inline Windows in_words(Windows windows) {
  windows.group_c = ceil_div(windows.group_c, 2);
  return windows;
}

/// The words of an array.
template <class T>
const std::uint32_t* words_of(const T* numbers) {
  return reinterpret_cast<const std::uint32_t*>(numbers);
}

/// Whether a group's channels are whole pieces of 16 bytes, as TMA needs them.
inline bool in_eights(int group_channels) { return group_channels % 8 == 0; }

/// `wgmma` m64nNk16 of this type, with rows of both factors along k.
template <int kN, class T>
__device__ inline void wgmma_along_k(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::wgmma_m64k16_f16<kN>(d, a, b, true);
  } else {
    ptx::wgmma_m64k16_bf16<kN>(d, a, b, true);
  }
}

/// The numbers at `offset` and behind it as a word, the first one in its low half; zeros for those
/// of the two that are not among `count`.
template <class T>
__device__ std::uint32_t word_at(const T* numbers, std::int64_t offset, int count) {
  std::uint32_t word = 0;
  if (count > 0) word = numbers[offset].bits;
  if (count > 1) word |= std::uint32_t{numbers[offset + 1].bits} << 16;
  return word;
}

/// A tile's pixels by a warp, word by word, for what TMA cannot take.
template <class Shape, class T>
struct GatheredPixels {
  const T* source;  ///< [N][H][W][groups * group_c]
  Windows windows;  ///< with channels in words
  int group_c;      ///< channels of a group

  /// Brings the chunk of a group's channels at the tile's pixels from `pixel` on to
  /// tile [Shape::M][32 words], swizzled.
  __device__ void load(const Chunk& chunk, std::int64_t pixel, int group,
                       std::uint32_t* tile) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, c = 2 * (chunk.c + lane);
    const Index4 at{windows.H, windows.W, windows.groups * group_c};
    for (int i = 0; i < Shape::M; ++i, ++pixel) {
      const std::int64_t row = pixel / windows.Q;
      const int n = static_cast<int>(row / windows.P);
      const int h = static_cast<int>(row % windows.P) * windows.stride.h + windows.first.h +
                    chunk.r * windows.dilation.h;
      const int w = static_cast<int>(pixel % windows.Q) * windows.stride.w + windows.first.w +
                    chunk.s * windows.dilation.w;
      const bool inside = n < windows.N && h >= 0 && h < windows.H && w >= 0 && w < windows.W;
      tile[gemm::swizzled(i, lane)] =
          inside ? word_at(source, at(n, h, w, group * group_c + c), group_c - c) : 0;
    }
  }
};

/// Pixels and filters [K][R][S][group_c] by a warp; see window_sources.cuh for what a source is.
template <class Shape, class T>
struct GatheredHalves {
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a step's words
  GatheredPixels<Shape, T> pixels;          ///< with the windows
  const T* weights;                         ///< [K][R][S][group_c]
  FilterTiles<Shape> filters;               ///< of the tiles' columns

  /// A step of a tile.
  struct Cursor {
    Chunk chunk;         ///< of the next step
    std::int64_t pixel;  ///< the tile's first one
    int group, filter;   ///< the tile's group, and its first filter
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {.chunk = chunk_at(pixels.windows, item.first),
            .pixel = item.m * Shape::M,
            .group = filters.group(item.n),
            .filter = filters.first(item.n)};
  }
  /// Copies a step: its pixels to a_tile [Shape::M][32 words], its filters to b_tile [Shape::N][32
  /// words], both swizzled; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const Chunk chunk = cursor.chunk;
    pixels.load(chunk, cursor.pixel, cursor.group, reinterpret_cast<std::uint32_t*>(a_tile));
    const Windows& windows = pixels.windows;
    const int lane = static_cast<int>(threadIdx.x) % 32, c = 2 * (chunk.c + lane);
    const Index4 at{windows.R, windows.S, pixels.group_c};
    for (int j = 0; j < Shape::N; ++j) {
      const int filter = cursor.filter + j;
      reinterpret_cast<std::uint32_t*>(b_tile)[gemm::swizzled(j, lane)] =
          filter < windows.K ? word_at(weights, at(filter, chunk.r, chunk.s, c), pixels.group_c - c)
                             : 0;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { conv2d::advance(pixels.windows, cursor.chunk); }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
