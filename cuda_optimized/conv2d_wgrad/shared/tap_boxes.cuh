/// @file tap_boxes.cuh
/// @brief Loads of a band of x and dy into a stage of hopper/halo_tile.cu: by TMA, or by a warp.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/tap_bands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// Where the boxes of a tile begin.
struct BoxOrigin {
  int x_channel, h, w;  ///< of x, for the band at (0, 0); h and w may be negative
  int dy_channel;       ///< of dy

  /// Of a tile's filters, channels and taps.
  HOST_DEVICE BoxOrigin(const TapTiles& tiles, const TapTile& tile, const Padding& pad,
                        const Step& dilation)
      : x_channel(tile.group * tiles.group_c + tile.c), h(tile.r * dilation.h - pad.top),
        w(tile.s * dilation.w - pad.left), dy_channel(tile.group * tiles.group_k + tile.k) {}
};

/// Boxes by TMA. What lies outside of an image arrives as zeros. Channels behind the
/// last one of a group are in sums that are not stored.
struct CopiedBoxes {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap x, dy;                         ///< [N][H][W][C], [N][P][Q][K]
  int bytes;                                 ///< of both boxes

  /// Starts the copies of a band to x_to and dy_to; `full` completes once all bytes are there.
  __device__ void load(const BoxOrigin& origin, const Band& band, char* x_to, char* dy_to,
                       std::uint64_t* full) const {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load<4>(x_to, &x, full,
                     {origin.x_channel, origin.w + band.q, origin.h + band.p, band.n});
    ptx::tma_load<4>(dy_to, &dy, full, {origin.dy_channel, band.q, band.p, band.n});
  }
};

/// TMA's view of the arrays.
template <class T>
CopiedBoxes copied_boxes(const Conv2dProblem& conv, const Bands& bands, const T* x, const T* dy) {
  const auto map = [&](const T* data, std::int64_t C, std::int64_t H, std::int64_t W, int rows,
                       int columns, int pixel_bytes) {
    return tensor_map(TiledMap{.rank = 4,
                               .extents = {C, W, H, conv.N},
                               .strides = {1, C, W * C, H * W * C},
                               .box = {pixel_bytes / 2, columns, rows, bands.images},
                               .swizzle = pixel_bytes},
                      data);
  };
  return {
      .x = map(x, conv.C, conv.H, conv.W, bands.x_rows, bands.x_columns, bands.pixel_bytes),
      .dy = map(dy, conv.K, conv.P, conv.Q, bands.rows, bands.columns, kDyBytes),
      .bytes = bands.images * (bands.x_area() * bands.pixel_bytes + bands.area() * kDyBytes),
  };
}

/// A box of an image array [N][H][W][C] by a warp.
template <class T>
struct GatheredBox {
  const T* data;      ///< the array
  int H, W, C;        ///< of the array
  int rows, columns;  ///< of the box

  /// Loads the box that begins at (h, w) and `channel` of image n, 64 channels wide, as
  /// TMA would.
  __device__ void load(int n, int h, int w, int channel, char* to) const {
    auto* const words = reinterpret_cast<std::uint32_t*>(to);
    const int lane = static_cast<int>(threadIdx.x) % 32, c = channel + 2 * lane;
    const Index4 at{H, W, C};
    for (int i = 0; i < rows * columns; ++i) {
      const int row = h + i / columns, column = w + i % columns;
      const bool inside = row >= 0 && row < H && column >= 0 && column < W;
      words[gemm::swizzled(i, lane)] =
          inside ? conv2d::word_at(data, at(n, row, column, c), C - c) : 0;
    }
  }
};

/// Boxes by a warp, two channels at a time, for arrays that TMA cannot read.
template <class T>
struct GatheredBoxes {
  static constexpr bool kWholeWarp = true;  ///< each lane loads one of a pixel's words
  GatheredBox<T> x, dy;                     ///< of a band

  /// Copies a band as CopiedBoxes does; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const BoxOrigin& origin, const Band& band, char* x_to, char* dy_to,
                       std::uint64_t* full) const {
    x.load(band.n, origin.h + band.p, origin.w + band.q, origin.x_channel, x_to);
    dy.load(band.n, band.p, band.q, origin.dy_channel, dy_to);
    conv2d::arrive_after_stores(full);
  }
};

/// Of arrays that may begin anywhere.
template <class T>
GatheredBoxes<T> gathered_boxes(const Conv2dProblem& conv, const Bands& bands, const T* x,
                                const T* dy) {
  return {.x = {x, conv.H, conv.W, conv.C, bands.x_rows, bands.x_columns},
          .dy = {dy, conv.P, conv.Q, conv.K, bands.rows, bands.columns}};
}

/// Zeros behind the boxes of all stages, where the last step of a band reads: of dy, and of x at
/// least no NaN. By the consumers, with a barrier at the end.
__device__ inline void zero_behind_boxes(const Bands& bands, char* stages) {
  const int x_end = bands.images * bands.x_area() * bands.pixel_bytes;
  const int dy_end = bands.x_bytes + bands.images * bands.area() * kDyBytes;
  const int behind_x = (bands.x_bytes - x_end) / 16,
            behind = behind_x + (bands.bytes - dy_end) / 16;
  for (int i = static_cast<int>(threadIdx.x); i < bands.stages * behind; i += kTapConsumers) {
    const int at = i % behind;
    char* const to = stages + i / behind * bands.bytes +
                     (at < behind_x ? x_end + 16 * at : dy_end + 16 * (at - behind_x));
    *reinterpret_cast<uint4*>(to) = {};
  }
  ptx::fence_proxy_async();                   // ordinary stores, which wgmma will read
  ptx::named_barrier_sync(1, kTapConsumers);  // separates them from all products
}

/// The descriptor of what begins 16 * `units` bytes further. All operands lie in the same 256 KB:
/// descriptors differ in the low word.
__device__ inline std::uint64_t further(std::uint64_t descriptor, int units) {
  const auto low = static_cast<std::uint32_t>(descriptor) + static_cast<std::uint32_t>(units);
  return (descriptor >> 32 << 32) | low;
}

/// Waits until all products but the last ones of a band of `products` are done: the stage before it
/// may be overwritten.
__device__ inline void wait_for_band_before(int products) {
  constexpr int kInFlight = 3;  // products that a warpgroup leaves to the tensor cores meanwhile
  if (products >= kInFlight) {
    ptx::wgmma_wait_group<kInFlight>();
  } else {
    ptx::wgmma_wait_group<1>();
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
