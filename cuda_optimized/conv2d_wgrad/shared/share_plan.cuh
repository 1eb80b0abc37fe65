/// @file share_plan.cuh
/// @brief The tiles and shares of pixels that hopper/split_k_1x1.cu chooses, and how its producer
/// warp loads a step of x and dy: by TMA, or element by element.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/cuda/device_attribute.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/pieces.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kMostConsumers = 4;   ///< Warpgroups of a block that multiply.
inline constexpr int kMostShares = 256;    ///< Of the pixels.
inline constexpr int kMaxShareStages = 8;  ///< In the ring in shared memory.
inline constexpr int kShareDepth = 16;     ///< Pixels that one `wgmma` adds up.
/// An operand of ones, before the stages.
inline constexpr int kShareOnesBytes = kShareDepth * kHalfColumns * 2;

/// A block's tile: `down` pieces of 64 filters by `across` times `pieces` of 64 channels at a tap.
/// Warpgroup (i, j) of down x across has 64 filters by `pieces` pieces.
struct ShareShape {
  int down, across, pieces;  ///< down * across <= kMostConsumers

  /// Warpgroups that multiply.
  HOST_DEVICE int consumers() const { return down * across; }
  /// Pieces of x in a stage.
  HOST_DEVICE int columns() const { return across * pieces; }
  /// Of a stage: dy's pieces, and x's after them.
  HOST_DEVICE int stage_bytes() const { return (down + columns()) * kPieceBytes; }
  /// Sums of a tile, also those that are not stored.
  HOST_DEVICE int sums() const { return down * columns() * kHalfColumns * kHalfColumns; }
};

/// A tile of a group; the last ones have fewer filters and pieces than the shape.
struct ShareTile {
  int group,    ///< of the convolution
      k,        ///< its first filter in the group
      piece,    ///< its first piece of x
      rows,     ///< pieces of dy that there are
      columns;  ///< pieces of x that are loaded; beyond the last one, the last one again
};

/// All tiles of a gradient.
struct ShareTiles {
  ShareShape shape;  ///< of each
  Pieces pieces;     ///< of x, for a group
  int group_k;       ///< filters of a group
  int groups, k, c;  ///< tiles along each axis

  /// Of a convolution's weights.
  ShareTiles(const Conv2dProblem& conv, const ShareShape& tile)
      : shape(tile), pieces(conv), group_k(conv.K / conv.groups), groups(conv.groups),
        k(ceil_div(group_k, tile.down * kHalfColumns)), c(ceil_div(pieces.count, tile.columns())) {}
  /// How many there are.
  HOST_DEVICE std::int64_t count() const { return std::int64_t{groups} * k * c; }
  /// Tile `index`; neighbours share filters, and so the pieces of dy.
  HOST_DEVICE ShareTile at(int index) const {
    ShareTile tile{};
    tile.piece = index % c * shape.columns();
    tile.k = index / c % k * shape.down * kHalfColumns;
    tile.group = index / c / k;
    const int rows = ceil_div(group_k - tile.k, kHalfColumns);
    const int columns = ceil_div(pieces.count - tile.piece, shape.pieces) * shape.pieces;
    tile.rows = rows < shape.down ? rows : shape.down;
    tile.columns = columns < shape.columns() ? columns : shape.columns();
    return tile;
  }
};

/// What is chosen. A block computes a tile of one share of the pixels.
struct SharePlan {
  ShareShape shape;  ///< of the tiles
  int shares;        ///< of the pixels: parts of each sum
};

/// Stages that fit into shared memory.
inline int share_stages(const ShareShape& shape) {
  constexpr int kDeclared = 1024;  // bytes of barriers, and more
  const int room = static_cast<int>(max_shared_bytes()) - kDeclared - gemm::kAtom - kShareOnesBytes;
  return std::min(room / shape.stage_bytes(), kMaxShareStages);
}

/// How the pixels of y are cut into steps: boxes of some rows of an image by some columns.
struct Strips {
  int N, P, Q;        ///< of y; or one image of one row, where all pixels follow one another
  int rows, columns;  ///< of a box
  int down, across;   ///< boxes of an image

  /// Pixels of a box, at most kHalfStep.
  HOST_DEVICE int pixels() const { return rows * columns; }
  /// Of all images.
  std::int64_t steps() const { return std::int64_t{N} * down * across; }
};

/// Whether x can be loaded like y, in boxes: no taps, nothing outside of x. Else TMA
/// finds each window for itself, which takes it longer.
inline bool in_boxes(const Conv2dProblem& conv) {
  const Padding& pad = conv.pad;
  return conv.R == 1 && conv.S == 1 && pad.top == 0 && pad.bottom == 0 && pad.left == 0 &&
         pad.right == 0;
}

/// Boxes of whole rows or equal parts of them. Without strides pixels follow one another in x, too.
inline Strips strips_of(const Conv2dProblem& conv) {
  const bool follow = !in_boxes(conv) || (conv.stride.h == 1 && conv.stride.w == 1);
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  if (follow && pixels > 0 && pixels < INT32_MAX) {
    const auto row = static_cast<int>(pixels);
    return {1, 1, row, 1, kHalfStep, 1, ceil_div(row, kHalfStep)};
  }
  const int across = ceil_div(conv.Q, kHalfStep), columns = ceil_div(conv.Q, across);
  const int rows = std::min(kHalfStep / columns, conv.P);
  return {conv.N, conv.P, conv.Q, rows, columns, ceil_div(conv.P, rows), across};
}

/// Cycles for which a plan is expected to keep the GPU, seen on an H200.
inline double cycles_of(const Conv2dProblem& conv, const SharePlan& plan, int multiprocessors) {
  constexpr double kFromMemory = 2200, kStored = 1320, kAdded = 2600;  // bytes a cycle, of all SMs
  constexpr double kFromL2 = 22, kLongRows = 30;  // of an SM; with 512 bytes of each pixel of dy
  constexpr double kWindows = 500;                // cycles for a piece of x that is not in boxes
  constexpr double kAddKernel = 3000, kBegin = 4000;
  const ShareShape& shape = plan.shape;
  const double tiles = static_cast<double>(ShareTiles(conv, shape).count());
  const Strips strips = strips_of(conv);
  const auto steps = static_cast<double>(ceil_div<std::int64_t>(strips.steps(), plan.shares));
  // A product of 64 x 64 takes 32 cycles of the tensor cores, and one with ones 16.
  const double products = shape.consumers() * (32 * shape.pieces + 16) * (kHalfStep / kShareDepth);
  const double windows = in_boxes(conv) ? 0 : kWindows * shape.columns();
  const double loaded = static_cast<double>(shape.stage_bytes()) * strips.pixels() / kHalfStep;
  const double step =
      std::max({loaded / (shape.down == 4 ? kLongRows : kFromL2), products, windows});
  const double bytes = 2.0 * conv.N * conv.P * conv.Q * (conv.C + conv.K);
  const double store = 4 * shape.sums() / (kStored / multiprocessors);
  const double parts = plan.shares > 1 ? 4 * tiles * plan.shares * shape.sums() : 0;
  return std::max(
             std::ceil(tiles * plan.shares / multiprocessors) * (kBegin + steps * step + store),
             bytes / kFromMemory + store) +
         kAddKernel + parts / kAdded;
}

/// The plan with the fewest cycles.
inline SharePlan share_plan(const Conv2dProblem& conv) {
  constexpr ShareShape kShapes[] = {{4, 1, 2}, {2, 2, 2}, {1, 4, 2}, {4, 1, 1},
                                    {2, 1, 2}, {2, 2, 1}, {1, 2, 2}, {1, 4, 1},
                                    {2, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 1, 1}};
  const int filters = conv.K / conv.groups, columns = Pieces(conv).count;
  const int sms = multiprocessors();
  SharePlan best{};
  double least = 0;
  for (const ShareShape& shape : kShapes) {
    if (shape.down > 1 && filters <= (shape.down / 2) * kHalfColumns) continue;
    if (shape.columns() > 1 && columns <= shape.columns() / 2) continue;
    const std::int64_t tiles = ShareTiles(conv, shape).count();
    for (int waves = 1; waves <= 2; ++waves) {
      const SharePlan plan = {
          shape, static_cast<int>(std::clamp<std::int64_t>(
                     std::int64_t{waves} * sms / tiles, 1,
                     std::clamp<std::int64_t>(strips_of(conv).steps(), 1, kMostShares)))};
      const double cycles = cycles_of(conv, plan, sms);
      if (best.shares > 0 && cycles >= least) continue;
      best = plan;
      least = cycles;
    }
  }
  return best;
}

inline constexpr int kPixelBytes = 2 * kHalfColumns;  ///< Of a pixel in a piece.

/// Pieces by TMA. Filters and channels beyond the last one of a group only reach accumulators that
/// are not stored.
struct TmaPieces {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap x,                             ///< [N][P][Q][C] of what windows of 1 x 1 see; or
                                             ///< im2col, of words
      dy;                                    ///< [N][P][Q][K]
  Windows windows;                           ///< of the forward pass, with channels in words
  Strips strips;                             ///< of both
  bool boxes;                                ///< x is loaded in boxes, see in_boxes()

  /// Pixels of a step. The copies leave those after them alone.
  __device__ int pixels() const { return strips.pixels(); }
  /// How many steps there are.
  std::int64_t steps() const { return strips.steps(); }
  /// Starts the copies of a step to dy_to [rows][64 pixels][64 filters] and x_to [columns][64
  /// pixels][64 channels], all swizzled; `full` completes once all bytes have arrived. Pixels
  /// beyond the last one are zeros in both.
  __device__ void load(const ShareTiles& tiles, const ShareTile& tile, int step, char* dy_to,
                       char* x_to, std::uint64_t* full) const {
    const int row = step / strips.across, n = row / strips.down;
    const int p = (row - n * strips.down) * strips.rows;
    const int q = (step - row * strips.across) * strips.columns;
    ptx::mbarrier_arrive_expect_tx(full, (tile.rows + tile.columns) * pixels() * kPixelBytes);
    for (int i = 0; i < tile.rows; ++i) {
      const int filter = tile.group * tiles.group_k + tile.k + i * kHalfColumns;
      ptx::tma_load<4>(dy_to + i * kPieceBytes, &dy, full, {filter, q, p, n});
    }
    if (boxes) {
      for (int i = 0; i < tile.columns; ++i) {
        const int c = tiles.pieces.at(tile.piece + i).c * 2;
        ptx::tma_load<4>(x_to + i * kPieceBytes, &x, full,
                         {tile.group * tiles.pieces.group_c + c, q, p, n});
      }
      return;
    }
    // All pixels follow one another in one row: the first one's window.
    const int line = q / windows.Q, image = line / windows.P;
    const int w = (q - line * windows.Q) * windows.stride.w + windows.first.w;
    const int h = (line - image * windows.P) * windows.stride.h + windows.first.h;
    for (int i = 0; i < tile.columns; ++i) {
      const Chunk chunk = tiles.pieces.at(tile.piece + i);
      ptx::tma_load_im2col(x_to + i * kPieceBytes, &x, full, tile.group * windows.group_c + chunk.c,
                           w, h, image, static_cast<unsigned short>(chunk.s * windows.dilation.w),
                           static_cast<unsigned short>(chunk.r * windows.dilation.h));
    }
  }
};

/// TMA's view of the arrays.
template <class T>
TmaPieces tma_pieces(const Conv2dProblem& conv, const Windows& windows, const T* x, const T* dy) {
  const Strips strips = strips_of(conv);
  // Of what y's pixels see: `across` numbers from one to the next, `down` from row to row.
  const auto map = [&](const T* data, std::int64_t channels, std::int64_t across, std::int64_t down,
                       std::int64_t image) {
    return tensor_map(TiledMap{.rank = 4,
                               .extents = {channels, strips.Q, strips.P, strips.N},
                               .strides = {1, across, down, image},
                               .box = {kHalfColumns, strips.columns, strips.rows, 1}},
                      data);
  };
  const std::int64_t C = conv.C, K = conv.K, row = std::int64_t{strips.Q} * K;
  const std::int64_t across = conv.stride.w * C, down = conv.stride.h * C * conv.W;
  const bool one_row = strips.P == 1 && strips.N == 1;
  return {.x = in_boxes(conv)
                   ? map(x, C, across, one_row ? strips.Q * across : down,
                         one_row ? strips.Q * across : C * conv.W * conv.H)
                   : tensor_map(conv2d::im2col_of(windows, kHalfStep), conv2d::words_of(x)),
          .dy = map(dy, K, K, row, row * strips.P),
          .windows = windows,
          .strips = strips,
          .boxes = in_boxes(conv)};
}

/// The same by a warp, word by word, for what TMA cannot take.
template <class T>
struct GatheredShares {
  static constexpr bool kWholeWarp = true;  ///< each lane loads one of a step's words
  conv2d::GatheredPixels<kHalfStep, T> x;   ///< with the windows
  const T* dy;                              ///< [pixels][K]

  /// Pixels of a step.
  __device__ int pixels() const { return kHalfStep; }
  /// How many steps there are.
  std::int64_t steps() const { return ceil_div(x.windows.pixels(), std::int64_t{kHalfStep}); }
  /// Copies a step, as TmaPieces's lies; then one lane arrives at `full`. Called by a whole
  /// warp.
  __device__ void load(const ShareTiles& tiles, const ShareTile& tile, int step, char* dy_to,
                       char* x_to, std::uint64_t* full) const {
    const std::int64_t first = std::int64_t{step} * kHalfStep;
    gather_dy(dy, x.windows, first, tile.group * tiles.group_k + tile.k, tile.rows, dy_to);
    for (int i = 0; i < tile.columns; ++i) {
      x.load(tiles.pieces.at(tile.piece + i), first, tile.group,
             reinterpret_cast<std::uint32_t*>(x_to + i * kPieceBytes));
    }
    conv2d::arrive_after_stores(full);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
