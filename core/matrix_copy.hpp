/// @file matrix_copy.hpp
/// @brief Copies a matrix, optionally transposed: for rungs that do not support transposed
/// operands.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convladder {

/// A row-major matrix, and the destination of its copy.
struct MatrixCopy {
  const void* from;            ///< [rows][columns]
  void* to;                    ///< The same, or [columns][rows]
  std::int64_t rows, columns;  ///< of `from`
  std::size_t element_bytes;   ///< 1, 2 or 4
  bool transposed;             ///< whether rows become columns
};

/// Calls body(T{}) with an integer type of this many bytes: 1, 2 or 4.
template <class Body>
void with_bits(std::size_t bytes, const Body& body) {
  if (bytes == 1) return body(std::uint8_t{});
  if (bytes == 2) return body(std::uint16_t{});
  body(std::uint32_t{});
}

/// In host memory.
void copy_matrix(const MatrixCopy& copy);

// core/cuda/matrix_copy.cu is compiled once for each; the kernels run in the run's stream.
namespace emulated {
/// In cuda_on_cpu's memory.
void copy_matrix(const MatrixCopy& copy);
}  // namespace emulated

namespace gpu {
/// In the GPU's memory.
void copy_matrix(const MatrixCopy& copy);
}  // namespace gpu

}  // namespace convladder
