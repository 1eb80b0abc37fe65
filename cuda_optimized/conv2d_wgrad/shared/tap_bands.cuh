/// @file tap_bands.cuh
/// @brief The weight gradient in half precision by tiles of nine taps: which tiles there are, in
/// which bands a block goes through the pixels, and how a band of x and dy is loaded into a stage.
///
/// A *band* is some rows of an image of y by some columns, and what its windows touch of x. Both
/// lie in a stage pixel after pixel, and `wgmma` adds up 16 pixels of a *line*, along which x and
/// dy walk in step:
///
///     strips   a line is a row of the band, of 16, 32 ... columns; x has two more for the taps
///     folded   a line is the whole band, of whole rows: dy is as wide as x, with zeros behind it
///
/// Folded bands waste less where rows are no multiple of 16: of 7 columns 7/8, not 7/16. Where a
/// row's last windows look at columns that x does not have, they find the zeros before the next
/// row, and a line needs no columns for them. Small images follow one another in a line: their rows
/// of dy do, but in x each has two more, and so a step's second half may lie further on.
#pragma once

#include <algorithm>

#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kTapAxis = 3;                           ///< Taps of a tile along each axis.
inline constexpr int kTapFilters = 64;                       ///< Of a tile: the rows of `wgmma`.
inline constexpr int kManyChannels = 64, kFewChannels = 32;  ///< Of a tile.
inline constexpr int kTapDepth = 16;                         ///< Pixels that one `wgmma` adds up.
inline constexpr int kDyBytes = 2 * kTapFilters;             ///< Of a pixel of dy in a stage.
inline constexpr int kOnesBytes = kTapDepth * kDyBytes;  ///< An operand of ones, before the stages.
inline constexpr int kMaxTapStages = 8;                  ///< In the ring in shared memory.
inline constexpr int kTapConsumers = 128 * kTapAxis;     ///< Threads that multiply.
inline constexpr int kTapThreads = kTapConsumers + 128;  ///< And a warpgroup that loads.
/// Registers of a consumer thread, where all have 128 at the start: 3 * 152 + 56 = 4 * 128.
inline constexpr int kRegistersToMultiply = 152,
                     kRegistersToLoad = 56;  ///< Registers of a producer thread.

/// 64 filters by 64 or 32 channels of a group by 3 x 3 taps; the last ones may be partly empty.
struct TapTile {
  int group,  ///< of the convolution
      k,      ///< its first filter in the group
      c,      ///< its first channel in the group
      r,      ///< its first row of taps
      s,      ///< its first column of taps
      share;  ///< which of the group's tiles of channels it is
};

/// All tiles of a gradient.
struct TapTiles {
  int R, S, group_k, group_c;  ///< taps, filters and channels of a group
  int channels;                ///< of a tile
  int groups, k, c, r, s;      ///< tiles along each axis

  /// Of a convolution's weights, with so many channels in a tile.
  TapTiles(const Conv2dProblem& conv, int tile_channels)
      : R(conv.R), S(conv.S), group_k(conv.K / conv.groups), group_c(conv.C / conv.groups),
        channels(tile_channels), groups(conv.groups), k(ceil_div(group_k, kTapFilters)),
        c(ceil_div(group_c, channels)), r(ceil_div(R, kTapAxis)), s(ceil_div(S, kTapAxis)) {}
  /// How many there are.
  HOST_DEVICE std::int64_t count() const { return std::int64_t{groups} * k * c * r * s; }
  /// Tile `index`; neighbours share filters, and so the boxes of dy.
  HOST_DEVICE TapTile at(unsigned index) const {
    const auto next = [&index](int extent) {
      const unsigned i = index % static_cast<unsigned>(extent);
      index /= static_cast<unsigned>(extent);
      return static_cast<int>(i);
    };
    TapTile tile{};
    tile.s = next(s) * kTapAxis;
    tile.r = next(r) * kTapAxis;
    tile.share = next(c);
    tile.c = tile.share * channels;
    tile.k = next(k) * kTapFilters;
    tile.group = next(groups);
    return tile;
  }
};

/// A band: its image, and its first row and column.
struct Band {
  int n,  ///< the image
      p,  ///< the first row
      q;  ///< the first column
};

/// How y is cut into bands.
struct Bands {
  int N, P, Q;            ///< of y
  int images;             ///< of a band: more than one are whole ones, of eights of pixels
  int rows, columns;      ///< of a box of dy, for each image
  int x_rows, x_columns;  ///< of a box of x, likewise
  int pixel_bytes;        ///< of a pixel of x in a stage
  Step dilation;          ///< pixels of x from tap to tap
  bool folded;            ///< a band's rows are one line
  int down, across;       ///< bands of an image
  int x_bytes, bytes;     ///< of x in a stage, which dy follows, and of both
  int stages;             ///< that fit

  /// Of all images.
  HOST_DEVICE std::int64_t count() const {
    return std::int64_t{ceil_div(N, images)} * down * across;
  }
  /// Band `index`: across first, so that all parts have their share of narrow strips.
  HOST_DEVICE Band at(int index) const {
    const int row = index / across;
    return {row / down * images, row % down * rows, index % across * columns};
  }
  /// To the next band, without divisions.
  HOST_DEVICE void advance(Band& band) const {
    if ((band.q += columns) < Q) return;
    band.q = 0;
    if ((band.p += rows) < P) return;
    band.p = 0;
    band.n += images;
  }
  /// Pixels of dy in an image of a band.
  HOST_DEVICE int area() const { return rows * columns; }
  /// The same of x.
  HOST_DEVICE int x_area() const { return x_rows * x_columns; }
  /// Rows of a band that there are.
  HOST_DEVICE int rows_of(const Band& band) const { return P - band.p < rows ? P - band.p : rows; }
  /// Lines of a band.
  HOST_DEVICE int lines(const Band& band) const { return folded ? 1 : rows_of(band); }
  /// Steps of kTapDepth pixels in a line; after its last pixel, dy is zero.
  HOST_DEVICE int steps(const Band& band) const {
    const int strip = Q - band.q < columns ? Q - band.q : columns;
    return ceil_div(folded ? images * rows_of(band) * columns : strip, kTapDepth);
  }
  /// Of all lines of an image, or of those that share a band.
  std::int64_t steps_of_image() const {
    std::int64_t sum = 0;
    for (const bool last_down : {false, true}) {  // the bands that end with the image, or earlier
      for (const bool last_across : {false, true}) {
        const Band band{0, last_down ? P / rows * rows : 0,
                        last_across ? Q / columns * columns : 0};
        const int alike_down = last_down ? P % rows != 0 : P / rows;
        const int alike_across = last_across ? Q % columns != 0 : Q / columns;
        if (alike_down > 0 && alike_across > 0)
          sum += std::int64_t{alike_down} * alike_across * lines(band) * steps(band);
      }
    }
    return sum;
  }
};

/// Bands of so many rows, and so many columns or, with 0, whole rows one after the other, and then
/// perhaps of several whole images.
/// Bands::stages is less than 2 if that does not fit into shared memory, or not into a box.
/// @param room bytes of shared memory for all stages
inline Bands bands_of(const Conv2dProblem& conv, int channels, int rows, int columns,
                      std::int64_t room, int images = 1) {
  constexpr std::int64_t kMaxBox = 256;
  const std::int64_t more_rows = std::int64_t{kTapAxis - 1} * conv.dilation.h;
  const std::int64_t more_columns = std::int64_t{kTapAxis - 1} * conv.dilation.w;
  Bands bands{};
  bands.N = conv.N;
  bands.P = conv.P;
  bands.Q = conv.Q;
  bands.images = images;
  bands.rows = rows;
  bands.dilation = conv.dilation;
  bands.folded = columns == 0;
  std::int64_t wide = (bands.folded ? conv.Q : columns) + more_columns;
  if (images > 1 && conv.S <= kTapAxis) {
    const std::int64_t beyond = wide - conv.pad.left - conv.W;  // columns of zeros, on the right
    wide -=
        std::clamp<std::int64_t>(beyond, 0, std::min<std::int64_t>(conv.pad.left, more_columns));
  }
  if (wide > kMaxBox || rows + more_rows > kMaxBox) return bands;
  bands.x_rows = rows + static_cast<int>(more_rows);
  bands.x_columns = static_cast<int>(wide);
  bands.columns = bands.folded ? bands.x_columns : columns;
  bands.pixel_bytes = 2 * channels;
  bands.down = ceil_div(conv.P, rows);
  bands.across = bands.folded ? 1 : ceil_div(conv.Q, columns);
  if (images > 1 && (bands.area() % 8 != 0 || bands.area() < kTapDepth)) return bands;
  // The last step of a folded band reads on behind it, and of x the last taps do.
  const auto whole = [](std::int64_t count, int of) {
    return ceil_div<std::int64_t>(count, of) * of;
  };
  const std::int64_t dy_pixels = whole(std::int64_t{images} * bands.area(), kTapDepth);
  const std::int64_t x_pixels =
      bands.folded ? dy_pixels + images * more_rows * wide + more_columns : bands.x_rows * wide;
  bands.x_bytes = static_cast<int>(whole(x_pixels * bands.pixel_bytes, gemm::kAtom));
  bands.bytes = bands.x_bytes + static_cast<int>(whole(dy_pixels * kDyBytes, gemm::kAtom));
  bands.stages = static_cast<int>(std::min<std::int64_t>(room / bands.bytes, kMaxTapStages));
  return bands;
}

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

/// Boxes by TMA. What lies outside of an image arrives as zeros. Channels beyond the last one of a
/// group are in sums that are not stored.
struct TmaBoxes {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap x, dy;                         ///< [N][H][W][C], [N][P][Q][K]
  int bytes;                                 ///< of both boxes

  /// Starts the copies of a band to x_to and dy_to; `full` completes once all bytes have arrived.
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
TmaBoxes tma_boxes(const Conv2dProblem& conv, const Bands& bands, const T* x, const T* dy) {
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

  /// Copies a band as TmaBoxes does; then one lane arrives at `full`. Called by a whole warp.
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

/// Waits until all products but the last ones of a band of `products` are done: the previous stage
/// it may be overwritten.
__device__ inline void wait_for_band_before(int products) {
  constexpr int kInFlight = 3;  // products that a warpgroup leaves to the tensor cores meanwhile
  if (products >= kInFlight) {
    ptx::wgmma_wait_group<kInFlight>();
  } else {
    ptx::wgmma_wait_group<1>();
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
