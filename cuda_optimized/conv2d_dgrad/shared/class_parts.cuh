/// @file class_parts.cuh
/// @brief The layout of an input gradient's split-K parts, and how a block writes them;
/// cuda_optimized/conv2d_dgrad/implicit_gemm/split_k.cu explains them.
#pragma once

#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/packed_classes.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

/// Where the parts of a sum lie: parts [splits][channels][classes][pitch], the pixels of a class in
/// their order, with room for those of the largest class.
struct PartsLayout {
  int classes_w;       ///< classes along w
  std::int64_t pitch;  ///< floats from a class to the next, a multiple of 4
  std::int64_t row;    ///< floats of all classes of a channel
  std::int64_t part;   ///< floats of a part

  /// The layout for all classes of a problem.
  explicit PartsLayout(const Conv2dProblem& conv)
      : classes_w(std::min(conv.stride.w, conv.W)),
        pitch((std::int64_t{largest_class(conv).pixels()} + 3) / 4 * 4),
        row(pitch * std::min(conv.stride.h, conv.H) * classes_w), part(row * conv.C) {}

  /// The first pixel of a channel's part, in the class that begins at pixel (h, w) of dx.
  HOST_DEVICE std::int64_t at(int split, int channel, int h, int w) const {
    return split * part + channel * row + (h * classes_w + w) * pitch;
  }
};

/// Writes the accumulators of a block to its part, as vectors of neighbours.
struct StoreParts {
  PartsLayout layout;  ///< of the parts
  float* parts;        ///< in the workspace

  /// Stores `sums` where `place` says, as far as there are channels and pixels.
  template <class T>
  __device__ void store(const conv2d::GatheredProduct& product, const conv2d::BlockPlace& place,
                        const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                        float*) const {
    const int channel = place.group * product.filters + place.m;
    const std::int64_t to =
        layout.at(place.split, channel, product.out_first.h, product.out_first.w) + place.n;
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      if (place.m + m >= product.filters || place.n + n >= product.pixels()) return;
      reinterpret_cast<float4*>(parts)[(to + m * layout.row + n) / 4] = four;
    });
  }
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
