/// @file gathered_tiles.cuh
/// @brief A tile of gathered rows, for a block whose threads both copy and multiply: the list of
/// its taps, the copies of a step's rows, and the store of the result. implicit_gemm_mma.cu has the
/// loop that calls them.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/fast_division.hpp"
#include "core/half.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// An entry of the list: the tap in the lower kWarpBits bits, and above them a bit for each part of
/// kWarpRows rows that have it.
constexpr int kWarpBits = 16;

/// A block iterates over the entries, Shape::kTaps at a time, and for each over all channels,
/// Shape::kDepth at a time: that is a step.
template <class Shape>
class TapList {
 public:
  /// The type of the elements.
  using T = typename Shape::Number;

  /// A list of the tile that begins at row m0 of the order.
  /// @param by_chunks division by the steps of an entry
  /// @param rows shared memory, bytes() of it
  __device__ TapList(const GatheredRows<T>& conv, FastDivision by_chunks, std::int64_t m0,
                     std::int32_t* rows)
      : conv_(conv), by_chunks_(by_chunks), m0_(m0), rows_(rows), taps_(rows + Shape::M) {}

  /// Shared memory for so many taps.
  static std::size_t bytes(int taps) {
    return sizeof(std::int32_t) * static_cast<std::size_t>(Shape::M + taps);
  }

  /// Finds the tile's rows and their taps.
  /// @param met shared memory for the masks of all parts, free again when it returns
  __device__ void find(std::uint32_t* met) {
    __shared__ int count;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    for (int i = thread; i < Shape::M; i += Shape::kThreads) {
      // Beyond the last row: the last one again; its accumulators are not stored.
      rows_[i] = conv_.order[m0_ + i < conv_.rows ? m0_ + i : conv_.rows - 1];
    }
    __syncthreads();  // separates these stores from the loads of all
    const int words = mask_words(conv_.taps);
    for (int i = warp; i < kParts * words; i += Shape::kThreads / 32) {
      const int part = i / words, word = i % words, row = part * kWarpRows + lane;
      std::uint32_t bits = 0;
      if (has_row(row)) {
        bits = static_cast<std::uint32_t>(conv_.mask[std::int64_t{rows_[row]} * words + word]);
      }
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        bits |= __shfl_xor_sync(0xFFFFFFFF, bits, distance);
      }
      if (lane == 0) met[i] = bits;
    }
    __syncthreads();  // separates these stores from the first warp's loads
    if (warp == 0) {
      int found = 0;
      for (int word = 0; word < words; ++word) {
        std::uint32_t parts = 0;
        for (int part = 0; part < kParts; ++part) {
          parts |= (met[part * words + word] >> lane & 1u) << (kWarpBits + part);
        }
        const unsigned all = __ballot_sync(0xFFFFFFFF, parts != 0);
        if (parts != 0) {
          taps_[found + __popc(all & ((1u << lane) - 1))] =
              static_cast<std::int32_t>(parts | static_cast<std::uint32_t>(32 * word + lane));
        }
        found += __popc(all);
      }
      if (lane == 0) count = found;
    }
    __syncthreads();  // separates the list from its use, and the loads of `met` from the copies
    listed_ = count;
    steps_ = ceil_div(listed_, Shape::kTaps) * ceil_div(conv_.summed, Shape::kTapDepth);
  }

  /// All steps of the tile.
  __device__ int steps() const { return steps_; }
  /// Whether the tile has a row i: the last tile may have fewer than others.
  __device__ bool has_row(int i) const { return m0_ + i < conv_.rows; }
  /// The number of the tile's row i among all rows.
  __device__ std::int32_t row(int i) const { return rows_[i]; }

  /// The first entry of a step.
  __device__ int entry(int step) const { return by_chunks_.quotient(step) * Shape::kTaps; }
  /// The first channel of a step.
  __device__ int channel(int step) const {
    return by_chunks_.remainder(step, by_chunks_.quotient(step)) * Shape::kDepth;
  }
  /// Bytes of a row from a step on: those beyond Shape::kTapBytes belong to the next steps.
  __device__ int bytes_left(int step) const {
    return (conv_.summed - channel(step)) * Shape::kSize;
  }

  /// The last step may have fewer taps than the others.
  __device__ bool exists(int entry) const { return Shape::kTaps == 1 || entry < listed_; }
  /// The tap of an entry.
  __device__ int tap(int entry) const { return taps_[entry] & ((1 << kWarpBits) - 1); }
  /// Whether any rows of a part of the tile, kWarpRows of them, have tap t of a step.
  __device__ bool meets(int step, int t, int part) const {
    const int at = entry(step) + t;
    return exists(at) && (taps_[at] >> (kWarpBits + part) & 1) != 0;
  }

 private:
  static constexpr int kParts = Shape::M / kWarpRows;

  const GatheredRows<T>& conv_;
  FastDivision by_chunks_;
  std::int64_t m0_;
  std::int32_t *rows_, *taps_;
  int listed_ = 0, steps_ = 0;
};

/// Starts the copies of the indices of the tile's input rows at a step's taps.
/// @param to shared memory [Shape::kTaps][Shape::M]
template <class Shape>
__device__ void ask_for_indices(const GatheredRows<typename Shape::Number>& conv,
                                const TapList<Shape>& list, int step, std::int32_t* to) {
#pragma unroll
  for (int t = 0; t < Shape::kTaps; ++t, to += Shape::M) {
    const int entry = list.entry(step) + t;
    const std::int32_t* const table =
        conv.table + (list.exists(entry) ? std::int64_t{list.tap(entry)} * conv.rows : 0);
    for (int i = static_cast<int>(threadIdx.x); i < Shape::M; i += Shape::kThreads) {
      if (list.exists(entry)) {
        ptx::cp_async<4>(to + i, table + list.row(i));
      } else {
        to[i] = -1;
      }
    }
  }
}

/// Starts the copies of a step's rows; zeros for rows without an input, and past the last channel.
/// @param indices as ask_for_indices() has copied them
/// @param stage shared memory [Shape::M], rows of Shape::kRowBytes
template <class Shape>
__device__ void ask_for_rows(const GatheredRows<typename Shape::Number>& conv,
                             const TapList<Shape>& list, int step, const std::int32_t* indices,
                             char* stage) {
  constexpr int kPieces = Shape::kRowBytes / kPiece, kRows = Shape::kThreads / kPieces;
  static_assert(Shape::M % kRows == 0 && kRows % 8 == 0, "the permutation must repeat");
  constexpr int kTapPieces = kPieces / Shape::kTaps;
  const int thread = static_cast<int>(threadIdx.x);
  const int piece = thread % kPieces, row = thread / kPieces, t = piece / kTapPieces;
  const int s = list.channel(step) + piece % kTapPieces * (kPiece / Shape::kSize);
  const auto* const from = conv.from + s;
  const int left = conv.summed - s;
  const std::int32_t* const met = indices + t * Shape::M + row;
  char* const a = stage + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;
#pragma unroll
  for (int i = 0; i < Shape::M; i += kRows) {
    const int index = met[i];
    const std::int64_t at = std::int64_t{index < 0 ? 0 : index} * conv.summed;
    copy_piece<Shape::kPieces>(a + i * Shape::kRowBytes, from + at, index < 0 ? 0 : left);
  }
}

/// Stores the accumulators of the tile's rows.
/// @param sums accumulators of this warp, in the layout of WarpSums or WarpgroupSums
/// @param n0 the tile's first channel
/// @param first_row of the accumulators, in the tile @param first_channel of the accumulators, in
/// the tile
template <class Shape, class Sums>
__device__ void store_rows(const GatheredRows<typename Shape::Number>& conv,
                           const TapList<Shape>& list, const Sums& sums, int n0, int first_row,
                           int first_channel) {
  using T = typename Shape::Number;
  const bool whole = Shape::kPieces && n0 + Shape::N <= conv.channels;
  sums.for_each([&](int row, int channel, const auto& values) {
    constexpr int kCount = Sums::kTogether;
    row += first_row;
    if (!list.has_row(row)) return;
    channel += n0 + first_channel;
    T results[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool exists = whole || channel + i < conv.channels;
      const float bias = conv.bias != nullptr && exists ? conv.bias[channel + i] : 0.0f;
      results[i] = rounded_to<T>(activated(conv.activation, values[i] + bias));
    }
    T* const to = conv.to + std::int64_t{list.row(row)} * conv.channels + channel;
    if (whole) {
      using Together =
          std::conditional_t<sizeof results == 16, float4,
                             std::conditional_t<sizeof results == 8, float2, std::uint32_t>>;
      Together together;
      std::memcpy(&together, results, sizeof together);
      *reinterpret_cast<Together*>(to) = together;
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (channel + i < conv.channels) to[i] = results[i];
      }
    }
  });
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
