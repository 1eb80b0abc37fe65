/// @file batched_gemm.hpp
/// @brief The GEMMs inside of a convolution: one per image and group.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// A matrix per image and group. Strides count elements; a transposed matrix exchanges row_stride
/// and column_stride, and a matrix shared by all images has image_stride 0.
template <class T>
struct BatchedMatrix {
  T* data;                                 ///< First element of the first image's first group.
  std::int64_t row_stride, column_stride;  ///< Distance between rows, or columns.
  std::int64_t image_stride = 0, group_stride = 0;  ///< Distance between images, or groups.

  /// An element.
  __device__ T& at(int image, int group, int row, int column) const {
    return data[image * image_stride + group * group_stride + row * row_stride +
                column * column_stride];
  }
};

/// c[m,n] = bias[group * M + m] + sum over k of a[m,k] * b[k,n] for each image and group; with
/// `accumulate`, that is added to c's old value instead. Without `accumulate` c is not read.
struct BatchedGemm {
  int M, N, K;                      ///< Extents of one GEMM: c is M x N, sums have K terms.
  int images = 1, groups = 1;       ///< There are images * groups GEMMs.
  BatchedMatrix<const float> a, b;  ///< The operands.
  BatchedMatrix<float> c;           ///< The results.
  const float* bias = nullptr;      ///< [groups * M] or null
  bool accumulate = false;          ///< Add to c instead of overwriting it.
};

}  // namespace convladder::BACKEND
