/// @file tap_bands.cuh
/// @brief The weight gradient in 16 bits by tiles of nine taps: which tiles there are, and in which
/// bands a block goes through the pixels.
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
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kTapAxis = 3;                           ///< Taps of a tile along each axis.
inline constexpr int kTapFilters = 64;                       ///< Of a tile: the rows of `wgmma`.
inline constexpr int kManyChannels = 64, kFewChannels = 32;  ///< Of a tile.
inline constexpr int kTapDepth = 16;                         ///< Pixels that one `wgmma` adds up.
inline constexpr int kDyBytes = 2 * kTapFilters;             ///< Of a pixel of dy in a stage.
inline constexpr int kOnesBytes = kTapDepth * kDyBytes;  ///< A factor of ones, before the stages.
inline constexpr int kMaxTapStages = 8;                  ///< In the ring in shared memory.

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
  /// Steps of kTapDepth pixels in a line; behind its last pixel, dy is zero.
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

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
