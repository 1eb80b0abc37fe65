/// @file batched_gemm.hpp
/// @brief The matrix products inside of a convolution: one for each image and group.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// A matrix of each image and group. Strides count elements; a transposed matrix swaps row_stride
/// and column_stride, one that all images share has image_stride 0.
template <class T>
struct BatchedMatrix {
  T* data;                                 ///< First element of the first image's first group.
  std::int64_t row_stride, column_stride;  ///< From a row, or column, to the next.
  std::int64_t image_stride = 0, group_stride = 0;  ///< From an image, or group, to the next.

  /// An element.
  __device__ T& at(int image, int group, int row, int column) const {
    return data[image * image_stride + group * group_stride + row * row_stride +
                column * column_stride];
  }
};

/// c[m,n] = bias[group * M + m] + sum over k of a[m,k] * b[k,n] for each image and group; with
/// `accumulate`, that is added to c's old value instead. Without `accumulate` c is not read.
struct BatchedGemm {
  int M, N, K;                      ///< Of one product: c is M x N, the sums are K long.
  int images = 1, groups = 1;       ///< There are images * groups products.
  BatchedMatrix<const float> a, b;  ///< The factors.
  BatchedMatrix<float> c;           ///< The results.
  const float* bias = nullptr;      ///< [groups * M] or null
  bool accumulate = false;          ///< Add to c instead of overwriting it.
};

}  // namespace convladder::BACKEND
