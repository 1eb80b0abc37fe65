/// @file share_pieces.cuh
/// @brief Loads of a step of x and dy into a stage of hopper/split_k_1x1.cu: by TMA, or by a warp.
#pragma once

#include "cuda_optimized/conv2d_wgrad/shared/share_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kPixelBytes = 2 * kHalfColumns;  ///< Of a pixel in a piece.

/// Pieces by TMA. Filters and channels behind the last one of a group are in sums that
/// nobody stores.
struct CopiedPieces {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap x,                             ///< [N][P][Q][C] of what windows of 1 x 1 see; or
                                             ///< im2col, of words
      dy;                                    ///< [N][P][Q][K]
  Windows windows;                           ///< of the forward pass, with channels in words
  Strips strips;                             ///< of both
  bool boxes;                                ///< x is loaded in boxes, see in_boxes()

  /// Pixels of a step. The copies leave those behind them alone.
  __device__ int pixels() const { return strips.pixels(); }
  /// How many steps there are.
  std::int64_t steps() const { return strips.steps(); }
  /// Starts the copies of a step to dy_to [rows][64 pixels][64 filters] and x_to [columns][64
  /// pixels][64 channels], all swizzled; `full` completes once all bytes are there. Pixels behind
  /// the last one are zeros in both.
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
CopiedPieces copied_pieces(const Conv2dProblem& conv, const Windows& windows, const T* x,
                           const T* dy) {
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
struct FetchedPieces {
  static constexpr bool kWholeWarp = true;  ///< each lane loads one of a step's words
  conv2d::GatheredPixels<kHalfStep, T> x;   ///< with the windows
  const T* dy;                              ///< [pixels][K]

  /// Pixels of a step.
  __device__ int pixels() const { return kHalfStep; }
  /// How many steps there are.
  std::int64_t steps() const { return ceil_div(x.windows.pixels(), std::int64_t{kHalfStep}); }
  /// Copies a step, as CopiedPieces's lies; then one lane arrives at `full`. Called by a whole
  /// warp.
  __device__ void load(const ShareTiles& tiles, const ShareTile& tile, int step, char* dy_to,
                       char* x_to, std::uint64_t* full) const {
    const std::int64_t first = std::int64_t{step} * kHalfStep;
    const Windows& windows = x.windows;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < tile.rows * kHalfStep; ++i) {  // a row of a piece of dy
      const std::int64_t pixel = first + i % kHalfStep;
      const int k = tile.group * tiles.group_k + tile.k + i / kHalfStep * kHalfColumns + 2 * lane;
      auto* const piece = reinterpret_cast<std::uint32_t*>(dy_to + i / kHalfStep * kPieceBytes);
      piece[gemm::swizzled(i % kHalfStep, lane)] =
          pixel < windows.pixels() ? conv2d::word_at(dy, pixel * windows.K + k, windows.K - k) : 0;
    }
    for (int i = 0; i < tile.columns; ++i) {
      x.load(tiles.pieces.at(tile.piece + i), first, tile.group,
             reinterpret_cast<std::uint32_t*>(x_to + i * kPieceBytes));
    }
    conv2d::arrive_after_stores(full);
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
