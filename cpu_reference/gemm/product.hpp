/// @file product.hpp
/// @brief The GEMM of eigen.cpp for rungs of other ladders that contain one: with transposed
/// operands and optional accumulation.
#pragma once

#include <cstdint>

namespace convladder::cpu_reference::gemm {

/// An operand of a GEMM: a row-major matrix, or the transpose of one.
struct Factor {
  const float* data;        ///< its first element
  bool transposed = false;  ///< whether the memory holds the operand's transpose
};

/// The transpose of a matrix in memory.
inline Factor transpose(const float* data) { return {data, true}; }

/// c [M][N] = a [M][K] * b [K][N]. A transposed a is stored as [K][M], a transposed b as [N][K]; at
/// most one of them is transposed.
/// @param adds whether the result is added to the content of c
void multiply(std::int64_t M, std::int64_t N, std::int64_t K, const Factor& a, const Factor& b,
              float* c, bool adds = false);

}  // namespace convladder::cpu_reference::gemm
