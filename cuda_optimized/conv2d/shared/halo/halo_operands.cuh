/// @file halo_operands.cuh
/// @brief Operands of the rungs with halo-tile reuse: how the producer warp loads patches of pixels
/// and the taps' weights, by TMA or element by element, and how a warpgroup multiplies a tap.
///
/// Weights of a tap and a chunk of channels are operand A of `wgmma`: [64 filters][channels]; or
/// *transposed*, [64 channels][64 filters], as the weights of an input gradient lie. Pixels are the
/// columns, operand B.
#pragma once

#include <type_traits>

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/halo/halo_plan.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"

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
struct TmaPatches {
  CUtensorMap source;  ///< of words, or of floats, in boxes of a patch
  int group_c;         ///< words of a group
  int bytes;           ///< of a box

  /// Starts the copy to `patch`; `full` completes once all bytes have arrived.
  __device__ void load(const PatchOrigin& from, char* patch, std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load<4>(patch, &source, full,
                     {from.group * group_c + from.chunk * kTensorMapRow, from.w, from.n, from.h});
  }
};

/// TMA's view of a source that is aligned to 16 bytes: of words, or of floats, which it rounds to
/// TF32. Every second pixel, or every third, is an array, too.
template <class Word>
TmaPatches tma_patches(const PatchWork& work, const Word* source) {
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
    arrive_after_stores(full);
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

/// Weights through TMA: 64 filters of a tap by 32 words of channels; transposed, 64 channels by 64
/// filters.
template <bool kTransposed_ = false>
struct TmaTaps {
  static constexpr bool kWholeWarp = false;          ///< one thread starts the copies
  static constexpr bool kTransposed = kTransposed_;  ///< operand A has filters along its rows
  CUtensorMap weights;                               ///< see weights_map()
  int S;                                             ///< taps in a row of the windows
  int group_k;                                       ///< filters of a group
  WindowTaps taps;                                   ///< of transposed weights

  /// Starts the copy of a tap's chunk to a slot; `full` completes once all bytes have arrived.
  __device__ void load(const PatchFilters& filters, const Tap& tap, int chunk, char* slot,
                       std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, kTapBytes);
    if constexpr (kTransposed) {
      ptx::tma_load<4>(
          slot, &weights, full,
          {(group_k - filters.count) / 2, taps.at(tap.r, tap.s), chunk * kHalfStep, filters.group});
    } else {
      ptx::tma_load<3>(slot, &weights, full,
                       {chunk * kTensorMapRow, tap.r * S + tap.s, filters.first});
    }
  }
};

/// The same by a warp.
template <class T, bool kTransposed_ = false>
struct GatheredTaps {
  static constexpr bool kWholeWarp = true;           ///< each lane loads one word of a row
  static constexpr bool kTransposed = kTransposed_;  ///< as of TmaTaps
  const T* weights;                                  ///< [K][R][S][group_c]; or transposed
  int R,                                             ///< taps of the windows, down
      S,                                             ///< and across
      group_c,                                       ///< channels of a group
      group_k,                                       ///< filters of a group
      filter_taps;                                   ///< of transposed weights
  WindowTaps taps = {};                              ///< of transposed weights

  /// Copies a tap's chunk; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const PatchFilters& filters, const Tap& tap, int chunk, char* slot,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto* const words = reinterpret_cast<std::uint32_t*>(slot);
    if constexpr (kTransposed) {
      const Index4 at{group_c, filter_taps, group_k};
      const int k = group_k - filters.count + 2 * lane, first = chunk * kHalfStep;
      for (int i = 0; i < kHalfStep; ++i) {
        words[gemm::swizzled(i, lane)] =
            first + i < group_c
                ? word_at(weights, at(filters.group, first + i, taps.at(tap.r, tap.s), k),
                          group_k - k)
                : 0;
      }
    } else {
      const int first = (chunk * kTensorMapRow + lane) * kWordChannels<T>;
      for (int j = 0; j < kPatchFilters; ++j) {
        const std::int64_t row = ((filters.first + std::int64_t{j}) * R + tap.r) * S + tap.s;
        words[gemm::swizzled(j, lane)] =
            j < filters.count ? word_at(weights, row * group_c + first, group_c - first) : 0;
      }
    }
    arrive_after_stores(full);
  }
};

/// Writes zeros after the boxes of all patches, where the last taps of a tile of rows end: no box
/// overwrites them. By all kThreads of a block.
template <int kThreads>
__device__ void zero_behind_boxes(const PatchPlan& plan, char* patch_slots) {
  const int zeros = (plan.patch_bytes - plan.tiles.bytes()) / 16;
  for (int i = static_cast<int>(threadIdx.x); i < plan.patches * zeros; i += kThreads) {
    char* const patch = patch_slots + i / zeros * plan.patch_bytes;
    *reinterpret_cast<uint4*>(patch + plan.tiles.bytes() + i % zeros * 16) = {};
  }
  ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
}

/// From a descriptor of the first tap's columns to that of tap (r, s): a tap is an address.
/// Descriptors count in units of 16 bytes.
__device__ inline std::uint64_t tap_offset(const Windows& windows, const PatchTiles& tiles, int r,
                                           int s) {
  return static_cast<std::uint64_t>(r * windows.dilation.h * tiles.line() +
                                    s * windows.dilation.w) *
         (kPixelBytes / 16);
}

/// Adds a tap's products in half precision: accumulators[filter][column] += sum over 64 channels c
/// of weights[filter][c] * patch[column][c].
/// @param columns descriptor of the tap's pixels
template <bool kTransposed, int kColumns, class T>
__device__ void multiply_tap(float (&accumulators)[kColumns / 2], const char* weights,
                             std::uint64_t columns) {
#pragma unroll
  for (int k = 0; k < kHalfStep; k += 16) {
    // Descriptors count in units of 16 bytes: 16 channels are 32 bytes of a row, or 16 rows.
    if constexpr (kTransposed) {
      wgmma_half<kColumns, T, false, true>(
          accumulators, ptx::wgmma_row_major_descriptor(weights, 0) + k * kPixelBytes / 16,
          columns + k / 8);
    } else {
      wgmma_half<kColumns, T>(accumulators, ptx::wgmma_descriptor(weights) + k / 8,
                              columns + k / 8);
    }
  }
}

/// Calls body(patches_of, taps) with the operands of a product: for a PatchWork, patches_of(work)
/// says how its patches are loaded.
template <class T, class Body>
void with_halo_operands(const HalfProduct& product, const HalfArrays& arrays, const PatchWork& work,
                        const Body& body) {
  const T *source = arrays.source, *weights = arrays.weights;
  const Windows& windows = product.windows;
  const int group_k = windows.group_k();
  const bool by_tma =
      product.rows_for_tma() && work.has_pixels() && gemm::begin_at_16_bytes(source, weights);
  const auto with = [&]<bool kTransposed>(std::bool_constant<kTransposed>) {
    if (by_tma) {
      const TiledMap map =
          kTransposed ? transposed_weights_map(product) : weights_map(windows, kPatchFilters);
      body([&](const PatchWork& of) { return tma_patches(of, words_of(source)); },
           TmaTaps<kTransposed>{tensor_map(map, words_of(weights)), windows.S, group_k,
                                product.taps});
    } else {
      body([&](const PatchWork& of) { return gathered_patches(of, source, product.group_c); },
           GatheredTaps<T, kTransposed>{weights, windows.R, windows.S, product.group_c, group_k,
                                        product.filter_taps, product.taps});
    }
  };
  product.transposed ? with(std::true_type()) : with(std::false_type());
}

/// For a rung's choice: how operands are loaded, and results stored.
inline std::string operands_in_words(const HalfProduct& product) {
  const char* const eights = product.transposed ? ", channels in eights" : ", filters in eights";
  return text(product.rows_for_tma() ? ", by TMA" : ", by a warp",
              product.windows.group_k() % 8 == 0 ? eights : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
