/// @file stage_preparation.cuh
/// @brief What is made in the workspace before producer warps gather: weights as wgmma takes
/// them, and rows, if they need it.
#pragma once

#include <cstring>

#include "cuda_optimized/sparse_conv/permuted_pieces.cuh"
#include "cuda_optimized/sparse_conv/stage_ring.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// Where things lie in the workspace, in bytes; each begins at a multiple of 256.
struct Layout {
  std::int64_t blocks,  ///< Of weights.
      copy,             ///< Of rows.
      end;              ///< Of all.

  /// @param sources rows of `from`
  template <class Shape>
  static Layout of(Shape, int taps, std::int64_t sources, int summed, int channels) {
    const std::int64_t weights = std::int64_t{ceil_div(channels, Shape::N)} * taps *
                                 ceil_div(summed, Shape::kDepth) * Shape::N * Shape::kTapBytes;
    const std::int64_t rows = sources * ceil_div(summed, Shape::kCount) * kPiece;
    const auto rounded = [](std::int64_t bytes) {
      return ceil_div(bytes, std::int64_t{256}) * 256;
    };
    Layout layout{};
    layout.blocks = 256;  // behind the counter
    layout.copy = layout.blocks + rounded(weights);
    layout.end = layout.copy + rounded(rows);
    return layout;
  }
};

/// Bytes of workspace for a product.
/// @param rows of `to` @param sources rows of `from`
template <class T>
std::size_t producers_workspace_bytes(int taps, std::int64_t rows, std::int64_t sources, int summed,
                                      int channels) {
  std::int64_t bytes = 0;
  with_shape<T>(rows, summed, channels, [&](auto shape) {
    bytes = Layout::of(shape, taps, sources, summed, channels).end;
  });
  return static_cast<std::size_t>(bytes);
}

/// What prepare() makes before the product.
template <class T>
struct Preparation {
  int taps,                 ///< As GatheredRows::taps.
      summed,               ///< As GatheredRows::summed.
      channels,             ///< As GatheredRows::channels.
      chunks,               ///< As Pass::chunks.
      tiles_n;              ///< As Pass::tiles_n.
  const T *weights, *rows;  ///< as GatheredRows::weights and GatheredRows::from
  T* blocks;                ///< [tiles_n][taps][chunks]: weights [N][kDepth], permuted
  int pitch;                ///< of a row of `copy`, in numbers; whole pieces
  std::int64_t pieces;      ///< of `copy`; 0: there is none
  bool by_pieces;           ///< whether `rows` consist of pieces, as well
  T* copy;                  ///< [...][pitch]: rows as factors, zeros behind the last channel
  unsigned* handed_out;     ///< zeroed

  /// Of the blocks of weights.
  template <class Shape>
  HOST_DEVICE std::int64_t weight_pieces() const {
    return std::int64_t{tiles_n} * taps * chunks * Shape::N * Shape::kPieces;
  }
};

/// What there is to prepare for a product.
/// @param sources rows of conv.from
template <class Shape>
Preparation<typename Shape::Number> preparation_of(const GatheredRows<typename Shape::Number>& conv,
                                                   std::int64_t sources, char* workspace) {
  using T = typename Shape::Number;
  const Layout layout = Layout::of(Shape{}, conv.taps, sources, conv.summed, conv.channels);
  Preparation<T> preparation = {
      .taps = conv.taps,
      .summed = conv.summed,
      .channels = conv.channels,
      .chunks = ceil_div(conv.summed, Shape::kDepth),
      .tiles_n = ceil_div(conv.channels, Shape::N),
      .weights = conv.weights,
      .rows = conv.from,
      .blocks = reinterpret_cast<T*>(workspace + layout.blocks),
      .pitch = ceil_div(conv.summed, Shape::kCount) * Shape::kCount,
      .pieces = 0,
      .by_pieces = rows_are_pieces<Shape>(conv.summed) && begins_at_piece(conv.from),
      .copy = reinterpret_cast<T*>(workspace + layout.copy),
      .handed_out = reinterpret_cast<unsigned*>(workspace)};
  if (std::is_same_v<T, float> || !preparation.by_pieces) {
    preparation.pieces = sources * (preparation.pitch / Shape::kCount);
  }
  return preparation;
}

/// The product behind it.
template <class Shape>
Pass<typename Shape::Number> pass_after(const Preparation<typename Shape::Number>& preparation,
                                        const GatheredRows<typename Shape::Number>& conv) {
  const auto tiles_m = static_cast<int>(ceil_div<std::int64_t>(conv.rows, kTileRows));
  Pass<typename Shape::Number> pass = {.conv = conv,
                                       .pitch = preparation.pitch,
                                       .chunks = preparation.chunks,
                                       .tiles_m = tiles_m,
                                       .tiles_n = preparation.tiles_n,
                                       .tiles = tiles_m * preparation.tiles_n,
                                       .handed_out = preparation.handed_out};
  pass.conv.weights = preparation.blocks;
  // Also where there is no row at all: a copy of nothing begins at a piece, too.
  if (preparation.pieces != 0 || !begins_at_piece(conv.from)) pass.conv.from = preparation.copy;
  return pass;
}

/// Stores piece i of those at `to`.
template <class T, int kCount>
__device__ void store_piece(T* to, std::int64_t i, const T (&numbers)[kCount]) {
  uint4 whole;
  std::memcpy(&whole, numbers, sizeof whole);
  reinterpret_cast<uint4*>(to)[i] = whole;
}

/// Copies the rows as factors, if they need it.
/// @param first this thread's number @param threads of the grid
template <class Shape>
__device__ void copy_rows(const Preparation<typename Shape::Number>& p, std::int64_t first,
                          std::int64_t threads) {
  using T = typename Shape::Number;
  T numbers[Shape::kCount];
  const int pieces_of_row = p.pitch / Shape::kCount;
  for (std::int64_t i = first; i < p.pieces; i += threads) {
    if (p.by_pieces) {
      const uint4 whole = reinterpret_cast<const uint4*>(p.rows)[i];
      std::memcpy(numbers, &whole, sizeof whole);
    }
    const std::int64_t row = p.by_pieces ? 0 : i / pieces_of_row;
#pragma unroll
    for (int j = 0; j < Shape::kCount; ++j) {
      if (!p.by_pieces) {
        const std::int64_t s = (i - row * pieces_of_row) * Shape::kCount + j;
        numbers[j] = s < p.summed ? p.rows[row * p.summed + s] : T{};
      }
      numbers[j] = as_factor(numbers[j]);
    }
    store_piece(p.copy, i, numbers);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers
