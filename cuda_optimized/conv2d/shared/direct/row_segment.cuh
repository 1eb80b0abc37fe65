/// @file row_segment.cuh
/// @brief A piece of a row, loads to and stores from a thread's registers.
#pragma once

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Which neighbours of a row are loaded together, as one float2.
enum class Pairs {
  none,  ///< Rows do not begin at multiples of 8 bytes.
  even,  ///< They do, and so does the segment.
  odd,   ///< They do; the segment begins one float after such a multiple.
};

/// For a rung's choice.
inline const char* in_words(Pairs pairs) {
  return pairs == Pairs::none ? "single floats" : pairs == Pairs::even ? "even pairs" : "odd pairs";
}

/// The columns w0 ... w0 + kCount - 1 of a row of W floats; zeros for those that are not in it.
/// With pairs, W is even and `row` a multiple of 8 bytes: a pair is in the row as a whole, or not.
template <Pairs kPairs, int kCount>
__device__ void load_segment(const float* row, int W, int w0, float (&values)[kCount]) {
  constexpr int kFirst = kPairs == Pairs::none ? kCount : kPairs == Pairs::odd ? 1 : 0;
  constexpr int kEnd = kFirst + (kCount - kFirst) / 2 * 2;  // of the pairs
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const bool inside = static_cast<unsigned>(w0 + i) < static_cast<unsigned>(W);
    if (i < kFirst || i >= kEnd) {
      values[i] = inside ? row[w0 + i] : 0.0f;
    } else if ((i - kFirst) % 2 == 0) {
      const float2 pair =
          inside ? *reinterpret_cast<const float2*>(row + w0 + i) : float2{0.0f, 0.0f};
      values[i] = pair.x;
      values[i + 1] = pair.y;
    }
  }
}

/// Neighbouring columns of x, from the address `at` on, which may lie outside of x; zeros for those
/// whose bit is not set. What is loaded together is in x as a whole, or not.
template <Pairs kPairs, int kCount>
__device__ void load_columns(std::uintptr_t at, unsigned inside, float (&values)[kCount]) {
  constexpr int kFirst = kPairs == Pairs::none ? kCount : kPairs == Pairs::odd ? 1 : 0;
  constexpr int kEnd = kFirst + (kCount - kFirst) / 2 * 2;  // of the pairs
#pragma unroll
  for (int e = 0; e < kCount; ++e) {
    const bool here = (inside & 1u << e) != 0;
    if (e < kFirst || e >= kEnd) {
      values[e] = here ? *reinterpret_cast<const float*>(at + sizeof(float) * e) : 0.0f;
    } else if ((e - kFirst) % 2 == 0) {
      const float2 pair =
          here ? *reinterpret_cast<const float2*>(at + sizeof(float) * e) : float2{0.0f, 0.0f};
      values[e] = pair.x;
      values[e + 1] = pair.y;
    }
  }
}

/// Writes two neighbours, or as many of them as `columns` says: together, if that is 2 or not above
/// 0 and `to` a multiple of 8 bytes.
template <bool kTogether>
__device__ void store_pair(float* to, int columns, float first, float second) {
  if constexpr (kTogether) {
    if (columns > 0) *reinterpret_cast<float2*>(to) = {first, second};
  } else {
    if (columns > 0) to[0] = first;
    if (columns > 1) to[1] = second;
  }
}

/// Writes values to the columns w0 ... of a row of W floats, as far as there are such columns. With
/// pairs, w0 is even, W is even and `row` a multiple of 8 bytes.
template <bool kPairs, int kCount>
__device__ void store_segment(float* row, int W, int w0, const float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += kPairs ? 2 : 1) {
    if (w0 + i < W) {
      if constexpr (kPairs) {
        *reinterpret_cast<float2*>(row + w0 + i) = {values[i], values[i + 1]};
      } else {
        row[w0 + i] = values[i];
      }
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
