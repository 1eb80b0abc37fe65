/// @file direct_plan.cuh
/// @brief The host side of the direct rungs: output tiles whose inputs fit into shared memory, and
/// the rungs that run a problem for which another one has no kernel.
#pragma once

#include <algorithm>
#include <optional>

#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The part of one channel of x that a tile of outputs reads, halo included.
struct InputTile {
  std::int64_t rows, columns;  ///< In elements of x.

  /// Bytes with `pitch` floats a row. Each factor is cut off where it alone is too large for shared
  /// memory, so that the product cannot overflow.
  static std::int64_t bytes(std::int64_t rows, std::int64_t pitch) {
    constexpr std::int64_t kTooLarge = kMaxSharedBytes;
    return std::min(rows, kTooLarge) * std::min(pitch, kTooLarge) * std::int64_t{sizeof(float)};
  }
};

/// The same problem with stride 1 along an axis that has a single output: nothing steps there, and
/// a tile that holds more outputs than there are needs fewer inputs.
inline Conv2dProblem without_idle_strides(Conv2dProblem conv) {
  if (conv.P == 1) conv.stride.h = 1;
  if (conv.Q == 1) conv.stride.w = 1;
  return conv;
}

/// For a rung's choice: whether without_idle_strides() has changed something.
inline const char* idle_strides_in_words(const Conv2dProblem& conv) {
  const Step stride = without_idle_strides(conv).stride;
  return stride.h == conv.stride.h && stride.w == conv.stride.w ? "" : ", without an idle stride";
}

/// The inputs of a tile of outputs.
inline InputTile input_of(const Conv2dProblem& conv, OutputTile tile) {
  const auto inputs = [](std::int64_t outputs, int taps, int stride, int dilation) {
    return (outputs - 1) * stride + window_extent(taps, dilation);
  };
  const Step stride = without_idle_strides(conv).stride;
  return {inputs(tile.rows, conv.R, stride.h, conv.dilation.h),
          inputs(tile.columns, conv.S, stride.w, conv.dilation.w)};
}

/// `tile`, halved until it is not twice as large as the output, and until shared_bytes(conv, tile)
/// fits. It keeps `min_rows` rows. Nothing if not even the smallest tile fits.
template <class SharedBytes>
std::optional<OutputTile> fitting_tile(const Conv2dProblem& conv, OutputTile tile, int min_rows,
                                       const SharedBytes& shared_bytes) {
  while (tile.rows > min_rows && tile.rows / 2 >= conv.P) tile.rows /= 2;
  while (tile.columns > 1 && tile.columns / 2 >= conv.Q) tile.columns /= 2;
  while (shared_bytes(conv, tile) > std::int64_t{kMaxSharedBytes}) {
    if (tile.rows > min_rows && (tile.rows >= tile.columns || tile.columns == 1)) {
      tile.rows /= 2;
    } else if (tile.columns > 1) {
      tile.columns /= 2;
    } else {
      return {};
    }
  }
  return tile;
}

/// Why a problem is declined for which fitting_tile() found nothing.
/// @param bytes what the smallest tile takes, or less where InputTile::bytes() cut it off
inline Declined too_large_for_shared_memory(const Conv2dProblem& conv, OutputTile smallest,
                                            std::int64_t bytes) {
  const InputTile in = input_of(conv, smallest);
  return text("the inputs of ", smallest.rows, " x ", smallest.columns, " outputs, ", in.rows,
              " x ", in.columns, " floats a channel, take at least ", bytes,
              " bytes of shared memory, more than ", kMaxSharedBytes);
}

extern const Implementation<Conv2dArrays> direct_tiled;     ///< direct/tiled.cu
extern const Implementation<Conv2dArrays> direct_cp_async;  ///< direct/cp_async.cu
extern const Implementation<Conv2dArrays> direct_row_tile;  ///< direct/row_tile.cu

/// A rung for any filter, stride and dilation: direct/cp_async, or direct/tiled, which needs less
/// shared memory.
inline const Implementation<Conv2dArrays>& any_filter(const Conv2dProblem& conv) {
  return direct_cp_async.supports(conv) ? direct_tiled : direct_cp_async;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
