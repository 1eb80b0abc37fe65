/// @file matrix_copy.cu
/// @brief The kernel of matrix_copy.hpp: a transposition through shared memory.
#include "core/cuda/launch.hpp"
#include "core/matrix_copy.hpp"

namespace convladder::BACKEND {
namespace {

constexpr int kTile = 32;  ///< Rows and columns of a block's tile: a warp reads and writes one row.
constexpr int kRows = 8;   ///< Rows of threads.

/// from [rows][columns], to [columns][rows]. Launch with grid (ceil(columns/32), <= ceil(rows/32)),
/// block (32, 8).
template <class T>
__global__ void transpose(std::int64_t rows, std::int64_t columns, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];  // the elements of a column are in different banks
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  for (std::int64_t first_row = std::int64_t{blockIdx.y} * kTile; first_row < rows;
       first_row += std::int64_t{gridDim.y} * kTile) {
    for (int i = ty; i < kTile; i += kRows) {
      const std::int64_t row = first_row + i, column = first_column + tx;
      if (row < rows && column < columns) tile[i][tx] = from[row * columns + column];
    }
    __syncthreads();  // separates these writes from the reads below
    for (int i = ty; i < kTile; i += kRows) {
      const std::int64_t column = first_column + i, row = first_row + tx;
      if (row < rows && column < columns) to[column * rows + row] = tile[tx][i];
    }
    __syncthreads();  // separates these reads from the next tile's writes
  }
}

}  // namespace

void copy_matrix(const MatrixCopy& copy) {
  if (!copy.transposed) {
    check(cudaMemcpyAsync(copy.to, copy.from,
                          static_cast<std::size_t>(copy.rows * copy.columns) * copy.element_bytes,
                          cudaMemcpyDeviceToDevice, current_stream()));
    return;
  }
  const dim3 grid(blocks_for(copy.columns, kTile), blocks_for(copy.rows, kTile, kMaxGridYZ));
  with_bits(copy.element_bytes, [&]<class T>(T) {
    launch(transpose<T>, {grid, dim3(kTile, kRows)}, copy.rows, copy.columns,
           static_cast<const T*>(copy.from), static_cast<T*>(copy.to));
  });
}

}  // namespace convladder::BACKEND
