#include "core/matrix_copy.hpp"

#include <cstring>

void convladder::copy_matrix(const MatrixCopy& copy) {
  const std::int64_t rows = copy.rows, columns = copy.columns;
  if (!copy.transposed) {
    const std::size_t bytes = static_cast<std::size_t>(rows * columns) * copy.element_bytes;
    if (bytes != 0) std::memcpy(copy.to, copy.from, bytes);
    return;
  }
  with_bits(copy.element_bytes, [&]<class T>(T) {
    const T* from = static_cast<const T*>(copy.from);
    T* to = static_cast<T*>(copy.to);
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t row = 0; row < rows; ++row)
        to[column * rows + row] = from[row * columns + column];
    }
  });
}
