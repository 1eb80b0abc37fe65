/// @file half_halo_tile.cuh
/// @brief What a block of direct/mma.cu keeps in shared memory: patches of x, and weights in
/// the order of mma's fragments.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/direct_mma/half_tiling.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Where a tile of y begins.
struct HalfPatchPlace {
  int n, p, q;  ///< image, row and column of y
};

/// Where tile `tile` lies.
__device__ inline HalfPatchPlace place_of(const HalfPatchTiling& tiling, int tile) {
  const int rest = tiling.by_tiles_across.quotient(tile);
  const int across = tiling.by_tiles_across.remainder(tile, rest);
  const int n = tiling.by_tiles_down.quotient(rest);
  const int down = tiling.by_tiles_down.remainder(rest, n);
  return {n, down * tiling.rows, across * tiling.across * tiling.piece()};
}

/// A pixel of a tile.
struct HalfPatchPixel {
  int row, column;  ///< from the tile's first one on
};

/// The tile's pixel i: they are counted piece by piece.
__device__ inline HalfPatchPixel pixel_at(const HalfPatchTiling& tiling, int i) {
  const int piece = i >> (4 + tiling.odd), row = tiling.by_across.quotient(piece);
  return {row,
          tiling.by_across.remainder(piece, row) * tiling.piece() + (i & (tiling.piece() - 1))};
}

/// Asks for the patch that a tile needs, tiling.width numbers at a time: zeros for the padding.
/// @param x the group's first channel of the first image
template <class T>
__device__ void ask_for_patch(const Conv2dProblem& conv, const HalfPatchTiling& tiling,
                              HalfPatchPlace at, const T* x, std::uint32_t* patch) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int width = tiling.width;
  const int h0 = at.p * tiling.stride.h - conv.pad.top;
  const int w0 = at.q * tiling.stride.w - conv.pad.left - tiling.shift;
  const T* const image = x + std::int64_t{at.n} * conv.C * conv.H * conv.W;
  for (int line = warp; line < tiling.channels * tiling.in_rows; line += tiling.warps) {
    const int c = tiling.by_in_rows.quotient(line), i = tiling.by_in_rows.remainder(line, c);
    // Negative coordinates become huge unsigned ones.
    const bool row_inside = static_cast<unsigned>(h0 + i) < static_cast<unsigned>(conv.H);
    const T* const row = image + (std::int64_t{c} * conv.H + (row_inside ? h0 + i : 0)) * conv.W;
    T* const to = reinterpret_cast<T*>(patch + c * tiling.plane + i * tiling.pitch);
#pragma unroll 1  // most lines are one or two steps
    for (int j = lane * width; j < tiling.in_columns; j += 32 * width) {
      const bool inside =
          row_inside && static_cast<unsigned>(w0 + j) < static_cast<unsigned>(conv.W);
      const T* const from = row + (inside ? w0 + j : 0);
      switch (width) {
        case 8: ptx::cp_async<16>(to + j, from, inside ? 16 : 0); break;
        case 4: ptx::cp_async<8>(to + j, from, inside ? 8 : 0); break;
        case 2: ptx::cp_async<4>(to + j, from, inside ? 4 : 0); break;
        default: to[j] = inside ? *from : T{0};  // no TMA takes two bytes
      }
    }
  }
}

/// Filters f0 ... of a group of the convolution: what a block computes at a time.
struct HalfPatchFilters {
  int count;           ///< at most 8 * kTiles
  std::int64_t first;  ///< among all K
};

/// Two neighbours of a window's row, where either may be no tap.
struct TapPair {
  int row;        ///< of the filter's: c * R + r
  int word;       ///< of the row, from the window's first one on
  int low, high;  ///< their taps s; -1: none
};

/// Pair k of a filter whose windows begin at number `lead`, 0 or 1, of a word. Of a pair without
/// taps, the word is that of one with taps which is near.
__device__ inline TapPair pair_at(const Conv2dProblem& conv, const HalfPatchTiling& tiling, int k,
                                  int lead) {
  const bool none = k >= tiling.pairs;
  k = min(k, tiling.pairs - 1);
  const int row = tiling.by_row_pairs.quotient(k);
  const int i = tiling.by_row_pairs.remainder(k, row);
  if (conv.dilation.w > 1) {
    const int column = lead + i * conv.dilation.w, even = column % 2 == 0;
    return {row, column / 2, even && !none ? i : -1, even || none ? -1 : i};
  }
  const int low = 2 * i - lead, high = low + 1, last = (lead + conv.S - 1) / 2;
  return {row, min(i, last), low < conv.S && !none ? low : -1, high < conv.S && !none ? high : -1};
}

/// Words of weights that a lane loads at once: two of a tile.
template <class S>
inline constexpr int kWordsAtOnce = S::kTiles == 1 ? 2 : 4;

/// Writes the weights in the order of mma's b, and what else stays in shared memory: for each four
/// lanes' pairs of a step their places in the patch, in bytes, and masks; and the biases.
template <class S, class T>
__device__ void stage_filters(const Conv2dProblem& conv, const HalfPatchTiling& tiling,
                              const HalfPatchFilters& filters, const T* weights, const float* bias,
                              std::uint32_t* shared) {
  constexpr int kWords = kWordsAtOnce<S>, kTilesAtOnce = kWords / 2;
  constexpr int kAtATime = S::kTiles == 1 ? 4 : 1;  // so that eight loads or more are in flight
  const int thread = static_cast<int>(threadIdx.x), threads = tiling.warps * 32;
  const int filter_size = tiling.channels * conv.R * conv.S;
  for (int set = 0; set <= tiling.odd; ++set) {
    const int lead = tiling.first_column(set) % 2;
#pragma unroll kAtATime
    for (int i = thread; i < tiling.steps * 64; i += threads) {
      const int step = i / 64, lane = i / 2 % 32, half = i % 2;
      const TapPair pair = pair_at(conv, tiling, step * 8 + half * 4 + lane % 4, lead);
      const T* const row = weights + filters.first * filter_size + std::int64_t{pair.row} * conv.S;
      std::uint32_t* const to =
          shared + (set * tiling.steps + step) * S::kTiles * 64 + lane * kWords + half;
#pragma unroll
      for (int m = 0; m < S::kTiles; ++m) {
        const int f = 8 * m + lane / 4;
        const std::int64_t from = std::int64_t{f} * filter_size;
        const bool inside = f < filters.count;
        const std::uint32_t low = inside && pair.low >= 0 ? row[from + pair.low].bits : 0;
        const std::uint32_t high = inside && pair.high >= 0 ? row[from + pair.high].bits : 0;
        to[m / kTilesAtOnce * 32 * kWords + m % kTilesAtOnce * 2] = low | high << 16;
      }
    }
    auto* const taps = reinterpret_cast<int2*>(shared + tiling.taps_at()) + set * tiling.steps * 8;
    for (int k = thread; k < tiling.steps * 8; k += threads) {
      const TapPair pair = pair_at(conv, tiling, k, lead);
      const int c = tiling.by_filter_rows.quotient(pair.row);
      const int r = tiling.by_filter_rows.remainder(pair.row, c);
      const int place = c * tiling.plane + r * conv.dilation.h * tiling.pitch + pair.word;
      const std::uint32_t mask =
          (pair.low >= 0 ? 0x0000ffffu : 0) | (pair.high >= 0 ? 0xffff0000u : 0);
      taps[k / 8 * 8 + k % 4 * 2 + k % 8 / 4] = {4 * place, static_cast<int>(mask)};
    }
  }
  for (int f = thread; f < 8 * S::kTiles; f += threads) {
    reinterpret_cast<float*>(shared + tiling.biases_at())[f] =
        bias != nullptr && f < filters.count ? bias[filters.first + f] : 0.0f;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
