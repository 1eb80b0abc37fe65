/// @file pipeline_tile.cuh
/// @brief Tiles of the implicit GEMMs in NCHW with a `cp.async` pipeline, and the asynchronous
/// gather of operand B, tap by tap or by a table; implicit_gemm/cp_async.cu explains them.
///
/// A gather stands for: tile[k][j] = x[window corner of pixel j + offset of tap k], or 0 in
/// padding.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The reason not to support a product: 32-bit offsets do not reach all elements a block gathers.
inline Declined why_no_gather(const WindowProduct& product) {
  constexpr int kMostPixels = 512;  // of a tile
  const std::int64_t images = kMostPixels / std::max(1, product.image_pixels()) + 2;
  const std::int64_t plane = std::int64_t{product.H} * product.W;
  const std::int64_t image = plane * product.groups * product.channels;
  if (image > 0x3fffffff / images) {
    return text("a block may gather from ", images, " images of ", image,
                " elements, together 2^30 or more");
  }
  return why_no_padded_product(product.filters, product.channels,
                               std::int64_t{product.R} * product.S);
}

/// Whether a coordinate lies inside of its extent.
__device__ inline bool is_inside(int at, int extent) {
  return static_cast<unsigned>(at) < static_cast<unsigned>(extent);
}

/// The windows of the pixels that a thread gathers for, T::kPixels of a tile. Offsets are 32 bits
/// as far as they go (see why_no_gather()).
template <class T>
struct GatheredWindows {
  static constexpr int kBytes = sizeof(float);  ///< of an element
  static constexpr int kNowhere = -0x40000000;  ///< The row of a pixel that does not exist.

  const char* group;                 ///< the group's first channel in the image of the first pixel
  unsigned plane;                    ///< bytes of a channel of an image
  int pixel, row;                    ///< this thread's first element of a tile
  unsigned corner[T::kPixels];       ///< bytes from `group` to the window's corner, modulo 2^32
  int h[T::kPixels], w[T::kPixels];  ///< that corner

  /// The windows of this thread, in a block that begins at `place`.
  __device__ GatheredWindows(const GatheredProduct& product, const BlockPlace& place,
                             const float* in)
      : plane(static_cast<unsigned>(product.H) * static_cast<unsigned>(product.W) * kBytes) {
    const int first_image = product.by_image.quotient(place.n);
    const std::int64_t first_channel =
        (std::int64_t{first_image} * product.groups + place.group) * product.channels;
    group = reinterpret_cast<const char*>(in + first_channel * product.H * product.W);
    const int thread = static_cast<int>(threadIdx.x);
    pixel = T::kPixels > 1 ? thread : thread % T::kBlockN;
    row = T::kPixels > 1 ? 0 : thread / T::kBlockN;
    const unsigned image_bytes = static_cast<unsigned>(product.groups * product.channels) * plane;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const int j = place.n + pixel + i * T::kThreads;
      const bool exists = j < product.pixels();
      const int image = exists ? product.by_image.quotient(j) : first_image;
      const int in_image = exists ? product.by_image.remainder(j, image) : 0;
      const int line = product.by_row.quotient(in_image);
      const int down = line * product.stride.h + product.first.h;
      h[i] = exists ? down : kNowhere;
      w[i] = product.by_row.remainder(in_image, line) * product.stride.w + product.first.w;
      corner[i] = static_cast<unsigned>(image - first_image) * image_bytes +
                  static_cast<unsigned>(down * product.W + w[i]) * kBytes;
    }
  }

  /// This thread's first element in a tile [kBlockK][kBlockN].
  __device__ float* first(float* tile) const { return tile + row * T::kBlockN + pixel; }
  /// How far behind it element j of pixel i lies.
  HOST_DEVICE static constexpr int at(int j, int i) {
    return j * T::kRowStep * T::kBlockN + i * T::kThreads;
  }
};

/// The copies of a thread, tap by tap: a step along k = (r, s, c) is some channels of one tap, and
/// from a row to the next, an address moves on by a channel.
template <class T>
class GatherTapByTap {
 public:
  static constexpr bool kTable = false;  ///< takes none

  /// @param in [images][groups][channels][H][W]
  /// @param first_step where the block begins along k; there must be one
  __device__ GatherTapByTap(const GatheredProduct& product, const BlockPlace& place,
                            const float* in, int first_step, const TapOffset*)
      : windows_(product, place, in) {
    const int tiles_c = product.padded_c / T::kBlockK, tap = first_step / tiles_c;
    c_ = first_step % tiles_c * T::kBlockK;
    r_ = tap / product.S;
    s_ = tap % product.S;
    find_tap(product);
  }

  /// Starts the copies of the next tile [kBlockK][kBlockN].
  __device__ void copy(const GatheredProduct& product, int, float* tile) {
    float* const to = windows_.first(tile);
    if (c_ + T::kBlockK <= product.channels) {
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          ptx::cp_async<kBytes>(to + windows_.at(j, i), reinterpret_cast<const char*>(from_[i]),
                                inside_[i] ? kBytes : 0);
          from_[i] += T::kRowStep * std::uint64_t{windows_.plane};
        }
      }
    } else {  // Channels beyond the last one are multiplied by zeros, but must be finite.
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          const bool exists = c_ + windows_.row + j * T::kRowStep < product.channels;
          const std::uint64_t down = static_cast<std::uint64_t>(j * T::kRowStep) * windows_.plane;
          ptx::cp_async<kBytes>(
              to + windows_.at(j, i),
              exists ? reinterpret_cast<const char*>(from_[i] + down) : windows_.group,
              exists && inside_[i] ? kBytes : 0);
        }
      }
    }
    c_ += T::kBlockK;
    if (c_ >= product.channels) {  // on to the next tap
      c_ = 0;
      if (++s_ == product.S) {
        s_ = 0;
        ++r_;
      }
      find_tap(product);
    }
  }

 private:
  static constexpr int kBytes = GatheredWindows<T>::kBytes;

  /// Finds where tap (r_, s_) of the pixels lies.
  __device__ void find_tap(const GatheredProduct& product) {
    const int down = r_ * product.tap.h, across = s_ * product.tap.w;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const bool inside = is_inside(windows_.h[i] + down, product.H) &&
                          is_inside(windows_.w[i] + across, product.W);
      inside_[i] = inside;
      // Where the tap lies in the padding, nothing is read.
      const unsigned tap = static_cast<unsigned>(down * product.W + across) * kBytes;
      from_[i] = reinterpret_cast<std::uintptr_t>(windows_.group) +
                 static_cast<std::uint64_t>(c_ + windows_.row) * windows_.plane +
                 (inside ? windows_.corner[i] + tap : 0);
    }
  }

  GatheredWindows<T> windows_;
  int c_, r_, s_;  ///< the next tile's first channel, and its tap
  /// Address of the thread's first element of that tile. An integer, not a pointer: beyond the last
  /// channel the address lies outside of the array, and is not used.
  std::uintptr_t from_[T::kPixels];
  bool inside_[T::kPixels];  ///< whether the tap is not in the padding
};

/// The copies of a thread, by a table of taps: each element along k = (c, r, s) has a tap of its
/// own. For products with too few channels for whole steps of one tap.
template <class T>
class GatherByTable {
 public:
  static constexpr bool kTable = true;  ///< takes one, which fill() has filled

  /// Fills the table [k_rows]. A barrier must separate it from the first copy().
  __device__ static void fill(const GatheredProduct& product, TapOffset* table) {
    const int taps = product.R * product.S;
    for (int row = static_cast<int>(threadIdx.x); row < product.k_rows; row += T::kThreads) {
      const int c = row / taps, r = row % taps / product.S, s = row % product.S;
      const int offset = (c * product.H + r * product.tap.h) * product.W + s * product.tap.w;
      // Rows beyond the last channel: no pixel has that tap.
      table[row] = c < product.channels ? TapOffset{static_cast<unsigned>(offset) * kBytes,
                                                    1u << r | 1u << (product.R + s)}
                                        : TapOffset{0, ~0u};
    }
  }

  /// @param in [images][groups][channels][H][W]
  __device__ GatherByTable(const GatheredProduct& product, const BlockPlace& place, const float* in,
                           int, const TapOffset* table)
      : windows_(product, place, in), table_(table) {
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      missing_[i] = missing_taps(product, windows_.h[i], windows_.w[i]);
    }
  }

  /// Starts the copies of that step's tile [kBlockK][kBlockN].
  __device__ void copy(const GatheredProduct&, int step, float* tile) {
    float* const to = windows_.first(tile);
    const TapOffset* const taps = table_ + step * T::kBlockK;
    // Entries are read several at a time: a copy does not begin before its entry is there.
    constexpr int kAtOnce = T::kRows < 8 ? T::kRows : 8;
    static_assert(T::kRows % kAtOnce == 0);
#pragma unroll
    for (int j0 = 0; j0 < T::kRows; j0 += kAtOnce) {
      TapOffset tap[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) tap[j] = taps[windows_.row + (j0 + j) * T::kRowStep];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
        for (int i = 0; i < T::kPixels; ++i) {
          const bool inside = (tap[j].bits & missing_[i]) == 0;
          const unsigned offset = inside ? windows_.corner[i] + tap[j].offset : 0;
          ptx::cp_async<kBytes>(to + windows_.at(j0 + j, i), windows_.group + offset,
                                inside ? kBytes : 0);
        }
      }
    }
  }

 private:
  static constexpr int kBytes = GatheredWindows<T>::kBytes;

  __device__ static unsigned missing_taps(const GatheredProduct& product, int h, int w) {
    unsigned missing = ~0u;
    for (int r = 0; r < product.R; ++r) {
      if (is_inside(h + r * product.tap.h, product.H)) missing &= ~(1u << r);
    }
    for (int s = 0; s < product.S; ++s) {
      if (is_inside(w + s * product.tap.w, product.W)) {
        missing &= ~(1u << (product.R + s));
      }
    }
    return missing;
  }

  GatheredWindows<T> windows_;
  const TapOffset* table_;
  unsigned missing_[T::kPixels];  ///< bit r: row r of taps is not inside; bit R + s
};

/// The sizes of a PipelineTile.
struct PipelineShape {
  int block_m, block_n;    ///< tile of a block: channels x pixels
  int block_k;             ///< of k in a step
  int thread_m, thread_n;  ///< tile of a thread
  int lanes_m;             ///< threads of a warp along the channels
  int stages;              ///< tiles of each operand in shared memory
  int blocks;              ///< resident on an SM
};

/// A block's tile, and how its threads copy it.
template <PipelineShape S>
struct PipelineTile
    : gemm::ThreadTile<S.block_m, S.block_n, S.block_k, S.thread_m, S.thread_n, S.lanes_m> {
  /// The tile without the copies.
  using Base = gemm::ThreadTile<S.block_m, S.block_n, S.block_k, S.thread_m, S.thread_n, S.lanes_m>;
  using Base::Base, Base::kThreads, Base::kBlockM, Base::kBlockN, Base::kBlockK;
  static constexpr int kStages = S.stages,  ///< tiles of each operand in shared memory
      kBlocks = S.blocks;                   ///< resident on an SM

  /// A thread gathers for kPixels pixels, kThreads apart, every kRowStep-th row of a tile.
  static constexpr int kPixels = kBlockN > kThreads ? kBlockN / kThreads : 1;
  /// From a row that a thread gathers to its next one.
  static constexpr int kRowStep = kBlockN > kThreads ? 1 : kThreads / kBlockN;
  static constexpr int kRows = kBlockK / kRowStep;  ///< of a tile, for which a thread gathers
  static_assert(kBlockN > kThreads ? kBlockN % kThreads == 0 : kThreads % kBlockN == 0);
  static_assert(kBlockK % kRowStep == 0);

  static constexpr int kFloatsA = kBlockK * kBlockM, kFloatsB = kBlockK * kBlockN;  ///< of a stage
  static constexpr int kFloats = kStages * (kFloatsA + kFloatsB);  ///< of all stages
  static_assert(kThreads * Base::kThreadN <= kFloats, "for_each_in_order() has room");
};

/// For many channels. Sizes are in the order of PipelineShape.
using Tile128 = PipelineTile<PipelineShape{128, 64, 16, 8, 8, 4, 3, 4}>;
/// Where Tile128 would be half empty.
using Tile64 = PipelineTile<PipelineShape{64, 128, 16, 8, 8, 4, 3, 4}>;
/// For 17 to 32 channels of a group.
using Tile32 = PipelineTile<PipelineShape{32, 256, 8, 8, 8, 4, 4, 4}>;
/// Where larger ones would leave SMs idle.
using TileSmall = PipelineTile<PipelineShape{32, 32, 8, 4, 4, 4, 3, 8}>;

/// A type as a value.
template <class T>
struct TileTag {
  using Tile = T;  ///< the type
};

/// Calls body(TileTag<T>) for the tile T chosen for the product.
template <class Body>
auto with_tile(const WindowProduct& product, const Body& body) {
  if (product.filters <= 16 || product.pixels() < 1024) return body(TileTag<TileSmall>{});
  if (product.filters <= 32) return body(TileTag<Tile32>{});
  // The last tile of 128 channels would be half empty.
  const int rest = product.filters % 128;
  if (rest > 0 && rest <= 64) return body(TileTag<Tile64>{});
  return body(TileTag<Tile128>{});
}

/// For a rung's choice: the tile, and the order of the steps.
template <class T>
std::string in_words(TileTag<T>, bool table) {
  return text(T::kBlockM, " x ", T::kBlockN, table ? ", a table of taps" : ", tap by tap");
}

/// The product planned for T, with a table where one is due.
template <class T>
GatheredProduct planned_for(TileTag<T>, const WindowProduct& product) {
  return planned<T>(product, takes_table(product, T::kBlockK));
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
