/// @file row_tile.cuh
/// @brief Row tiles: the pixels and weights of each thread, and the stores of its accumulators to
/// y.
///
/// A thread has kRowPixels neighbours of a row, in kRows rows, for some filters:
///
///     lane  0 0 0 0 1 1 1 1 2 2 2 2 ...       lanes_x lanes side by side, the others below;
///           0 0 0 0 1 1 1 1 2 2 2 2 ...       warps_y warps of them below one another;
///                                             warps_f warps for other filters of the same pixels
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

inline constexpr int kRowPixels = 4;  ///< Neighbouring outputs of a row of a thread: a float4.
inline constexpr int kRows = 2;       ///< Of pixels, one below the other, of a thread.
/// Floats between the places of a thread's pixels on their way out: so that 32 threads meet no bank
/// twice, neither where they write (adjacent) nor where they read (4 pixels of 8 threads).
inline constexpr int kPassPitch = 40;

/// How a block is made of threads.
struct RowTile {
  int filters;           ///< Of a thread.
  int lanes_x;           ///< Threads of a warp along a row.
  int warps_y, warps_f;  ///< Warps with other rows, and with other filters.
  int stages;            ///< Channels that a block has room for.
  int min_blocks;        ///< Of an SM, at least.
};

/// What follows from it, for a filter of R x S.
template <int kR, int kS, RowTile kTile>
struct RowTileSizes {
  static constexpr int R = kR, S = kS;                                    ///< The filter's.
  static constexpr int kFilters = kTile.filters, kStages = kTile.stages;  ///< As in RowTile.
  static constexpr int kLanesX = kTile.lanes_x, kLanesY = 32 / kLanesX;  ///< A warp is X x Y lanes.
  static constexpr int kWarpsY = kTile.warps_y, kWarpsF = kTile.warps_f;    ///< As in RowTile.
  static constexpr int kWarps = kWarpsY * kWarpsF, kThreads = 32 * kWarps;  ///< Of a block.
  static constexpr int kMinBlocks = kTile.min_blocks;                       ///< As in RowTile.
  static constexpr int kBlockFilters = kFilters * kWarpsF;                  ///< Filters of a block.
  static constexpr int kColumns = kRowPixels * kLanesX,  ///< Pixels of a block: columns
      kBlockRows = kRows * kLanesY * kWarpsY;            ///< and rows.

  /// A channel's weights lie as [kWarpsF][r][s][kPadded]: an even number of filters.
  static constexpr int kPadded = kFilters % 2 == 0 ? kFilters : kFilters + 1;
  static constexpr int kWeightFloats = (R * S * kPadded + 3) / 4 * 4;  ///< For a warp.

  static constexpr int kPassFloats = kWarps * kRows * kRowPixels * kPassPitch;  ///< For the stores.
};

/// The block begins to copy the weights of its filters for one channel. `weights` points to the
/// first filter's, `filter_size` floats before the next one's; there are `filters` of them.
template <class T>
__device__ void load_filters(const float* weights, std::int64_t filter_size, int filters,
                             float* to) {
  // Each thread keeps its filter, and goes on by kAtOnce taps.
  constexpr int kTaps = T::R * T::S, kAtOnce = T::kThreads / T::kBlockFilters;
  const int f = static_cast<int>(threadIdx.x) % T::kBlockFilters;
  const int first = static_cast<int>(threadIdx.x) / T::kBlockFilters;
  const bool there = f < filters;
  const float* from = weights + (there ? f * filter_size : 0);
  to += f / T::kFilters * T::kWeightFloats + f % T::kFilters;
#pragma unroll 2
  for (int tap = first < kAtOnce ? first : kTaps; tap < kTaps; tap += kAtOnce) {
    ptx::cp_async<4>(to + tap * T::kPadded, from + tap, there ? 4 : 0);
  }
}

/// Starts to copy the rows h0 ... and columns w0 ... of a channel into the tile, with zeros in the
/// padding: T::kInRows rows of T::kInColumns, T::kPitch floats apart.
/// @param aligned the channel lies at a multiple of 16 bytes, and W and w0 are multiples of 4
template <class T>
__device__ void load_tile(const Conv2dProblem& conv, const float* channel, int h0, int w0,
                          bool aligned, float* tile) {
  const int thread = static_cast<int>(threadIdx.x);
  if (aligned) {
    // Each thread keeps its column and goes down the rows. A vector is in x as a whole, or not.
    constexpr int kRowVectors = T::kPitch / 4, kAtOnce = T::kThreads / kRowVectors;
    const int row = thread / kRowVectors, w = w0 + thread % kRowVectors * 4;
    const bool column_inside = static_cast<unsigned>(w) < static_cast<unsigned>(conv.W);
    std::int64_t offset = std::int64_t{h0 + row} * conv.W + w;
    tile += row * T::kPitch + thread % kRowVectors * 4;
#pragma unroll
    for (int i = 0; i < T::kInRows; i += kAtOnce) {
      if (row < min(kAtOnce, T::kInRows - i)) {
        const bool inside =
            column_inside && static_cast<unsigned>(h0 + row + i) < static_cast<unsigned>(conv.H);
        ptx::cp_async<16>(tile + i * T::kPitch, channel + (inside ? offset : 0), inside ? 16 : 0);
      }
      offset += std::int64_t{kAtOnce} * conv.W;
    }
  } else {
    const int lane = thread % 32, warp = thread / 32;
#pragma unroll 1
    for (int u0 = 0; u0 < T::kInColumns; u0 += 32) {
      const int u = u0 + lane, w = w0 + u;
      const bool column_inside = static_cast<unsigned>(w) < static_cast<unsigned>(conv.W);
      std::int64_t offset = std::int64_t{h0 + warp} * conv.W + w;
      float* place = tile + warp * T::kPitch + u;
#pragma unroll 2
      for (int row = u < T::kInColumns ? warp : T::kInRows; row < T::kInRows; row += T::kWarps) {
        const bool inside =
            column_inside && static_cast<unsigned>(h0 + row) < static_cast<unsigned>(conv.H);
        ptx::cp_async<4>(place, channel + (inside ? offset : 0), inside ? 4 : 0);
        place += T::kWarps * T::kPitch;
        offset += std::int64_t{T::kWarps} * conv.W;
      }
    }
  }
}

/// How a warp stores its sums. A thread has 4 neighbouring pixels, and rows of y begin anywhere. So
/// the warp passes a filter's sums on through shared memory, its pass
/// [kRows][kRowPixels][kPassPitch], and stores contiguous floats of adjacent threads.
template <class T>
class RowStores {
 public:
  /// @param p0 first row and column of the block's pixels
  __device__ RowStores(const Conv2dProblem& conv, int p0, int q0) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      // The pass is [kRows][kLanesY][kColumns].
      const int place = i * 32 + lane, q = q0 + place % T::kColumns;
      const int p = p0 +
                    (warp % T::kWarpsY * T::kLanesY + place / T::kColumns % T::kLanesY) * kRows +
                    place / (T::kColumns * T::kLanesY);
      offsets_[i] = std::int64_t{p} * conv.Q + q;
      inside_[i] = p < conv.P && q >= 0 && q < conv.Q;
    }
  }

  /// Writes this thread's accumulators to the warp's pass.
  __device__ static void pass_on(const Conv2dProblem& conv, const float (&sums)[kRows][kRowPixels],
                                 float* pass) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
#pragma unroll
      for (int e = 0; e < kRowPixels; ++e)
        pass[(j * kRowPixels + e) * kPassPitch + lane] = activated(conv.activation, sums[j][e]);
    }
  }

  /// Stores what the warp's threads have passed on to a filter's plane of y.
  __device__ void store(const float* pass, float* y) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int from = lane % kRowPixels * kPassPitch + lane / kRowPixels;  // the first float to read
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      if (inside_[i])
        y[offsets_[i]] = pass[from + (i / kRowPixels * (kRowPixels * kPassPitch) +
                                      i % kRowPixels * (32 / kRowPixels))];
    }
  }

 private:
  static constexpr int kParts = kRows * kRowPixels;  ///< Of 32 floats.
  std::int64_t offsets_[kParts];
  bool inside_[kParts];
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
