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
  T* data;
  std::int64_t row_stride, column_stride;
  std::int64_t image_stride = 0, group_stride = 0;

  __device__ T& at(int image, int group, int row, int column) const {
    return data[image * image_stride + group * group_stride + row * row_stride +
                column * column_stride];
  }
};

/// c[m,n] = bias[group * M + m] + sum over k of a[m,k] * b[k,n] for each image and group; with
/// `accumulate`, that is added to c's old value instead. Without `accumulate` c is not read.
struct BatchedGemm {
  int M, N, K;
  int images = 1, groups = 1;
  BatchedMatrix<const float> a, b;
  BatchedMatrix<float> c;
  const float* bias = nullptr;  ///< [groups * M] or null
  bool accumulate = false;
};

}  // namespace convladder::BACKEND
