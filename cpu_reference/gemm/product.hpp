/// @file product.hpp
/// @brief The product of eigen.cpp for the rungs of other ladders that are made of one: with
/// transposed factors, and added to what is there.
#pragma once

#include <cstdint>

namespace convladder::cpu_reference::gemm {

/// A factor of a product: a matrix in row-major order, or the transpose of one.
struct Factor {
  const float* data;        ///< its first element
  bool transposed = false;  ///< whether what lies there is the factor's transpose
};

/// The transpose of a matrix that lies there.
inline Factor transpose(const float* data) { return {data, true}; }

/// c [M][N] = a [M][K] * b [K][N]. A transposed a lies as [K][M], a transposed b as [N][K]; at most
/// one of them is transposed.
/// @param adds whether the product is added to what c holds
void multiply(std::int64_t M, std::int64_t N, std::int64_t K, const Factor& a, const Factor& b,
              float* c, bool adds = false);

}  // namespace convladder::cpu_reference::gemm
