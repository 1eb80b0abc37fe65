/// @file stage_preparation.cuh
/// @brief What is made in the workspace before producer warps gather: weights as wgmma takes
/// them, and rows, if they need it.
#pragma once

#include <cstring>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "cuda_optimized/sparse_conv/shared/permuted_pieces.cuh"
#include "cuda_optimized/sparse_conv/shared/stage_ring.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv::producers {

/// The workspace, front to back.
template <class T>
struct Workspace {
  unsigned* handed_out;  ///< See Pass.
  T* blocks;             ///< Of weights.
  T* copy;               ///< Of rows.
  std::size_t bytes;     ///< Of all.
};

/// @param sources rows of `from` @param begin the workspace, or null to learn its size
template <class Shape>
Workspace<typename Shape::Number> workspace_at(int taps, std::int64_t sources, int summed,
                                               int channels, std::byte* begin) {
  using T = typename Shape::Number;
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  work.handed_out = cutter.take<unsigned>(1);
  work.blocks = cutter.take<T>(std::int64_t{ceil_div(channels, Shape::N)} * taps *
                               ceil_div(summed, Shape::kDepth) * Shape::N * Shape::kDepth);
  work.copy = cutter.take<T>(sources * ceil_div(summed, Shape::kCount) * Shape::kCount);
  work.bytes = cutter.bytes();
  return work;
}

/// Bytes of workspace for a product.
/// @param rows of `to` @param sources rows of `from`
template <class T>
std::size_t producers_workspace_bytes(int taps, std::int64_t rows, std::int64_t sources, int summed,
                                      int channels) {
  std::size_t bytes = 0;
  with_shape<T>(rows, summed, channels, [&]<class Shape>(Shape) {
    bytes = workspace_at<Shape>(taps, sources, summed, channels, nullptr).bytes;
  });
  return bytes;
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
                                                   std::int64_t sources, std::byte* workspace) {
  using T = typename Shape::Number;
  const Workspace<T> work =
      workspace_at<Shape>(conv.taps, sources, conv.summed, conv.channels, workspace);
  Preparation<T> preparation = {
      .taps = conv.taps,
      .summed = conv.summed,
      .channels = conv.channels,
      .chunks = ceil_div(conv.summed, Shape::kDepth),
      .tiles_n = ceil_div(conv.channels, Shape::N),
      .weights = conv.weights,
      .rows = conv.from,
      .blocks = work.blocks,
      .pitch = ceil_div(conv.summed, Shape::kCount) * Shape::kCount,
      .pieces = 0,
      .by_pieces = rows_are_pieces<Shape>(conv.summed) && begins_at_piece(conv.from),
      .copy = work.copy,
      .handed_out = work.handed_out};
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

/// Copies the rows as factors, if they need it. Any one-dimensional grid.
template <class Shape>
__device__ void copy_rows(const Preparation<typename Shape::Number>& p) {
  using T = typename Shape::Number;
  T numbers[Shape::kCount];
  const int pieces_of_row = p.pitch / Shape::kCount;
  for (const std::int64_t i : grid_stride(p.pieces)) {
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
