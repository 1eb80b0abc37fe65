/// @file arithmetic.hpp
/// @brief Integer arithmetic for which C's operators are wrong or silent, and row-major indices.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

/// @def HOST_DEVICE
/// Marks a function that kernels and host code share.
#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

namespace convladder {

/// a / b rounded towards minus infinity, b > 0. C's `/` rounds towards zero, which in many
/// implementations of the output-size formula turns no output (-1 / 2) into one output.
HOST_DEVICE constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// a / b rounded up, a >= 0, b > 0.
template <class Integer>
HOST_DEVICE constexpr Integer ceil_div(Integer a, Integer b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// The extent of a window of `taps` taps: (taps - 1) * dilation + 1.
HOST_DEVICE constexpr std::int64_t window_extent(std::int64_t taps, std::int64_t dilation) {
  return (taps - 1) * dilation + 1;
}

/// Row-major offset in an array [..][B][C][D]; the outermost extent is not needed.
struct Index4 {
  int B, C, D;  ///< The inner extents.
  /// The offset of element [a][b][c][d].
  HOST_DEVICE constexpr std::int64_t operator()(int a, int b, int c, int d) const {
    return ((static_cast<std::int64_t>(a) * B + b) * C + c) * D + d;
  }
};

/// The product of the factors. @throws BadInput that names `what` if it exceeds 2^63 - 1.
std::int64_t checked_product(std::initializer_list<std::int64_t> factors, const std::string& what);

}  // namespace convladder
