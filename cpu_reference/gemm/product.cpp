/// @file product.cpp
/// @brief The GEMM of eigen.cpp with transposed operands and optional accumulation.
#include "cpu_reference/gemm/product.hpp"

#include <Eigen/Core>

namespace convladder::cpu_reference::gemm {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A transposed matrix is stored column by column.
using Transposed = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

}  // namespace

void multiply(std::int64_t M, std::int64_t N, std::int64_t K, const Factor& a, const Factor& b,
              float* c, bool adds) {
  Eigen::Map<Matrix> c_map(c, M, N);
  if (!adds) c_map.setZero();
  const Eigen::Map<const Matrix> a_map(a.data, M, K), b_map(b.data, K, N);
  if (a.transposed) {
    c_map.noalias() += Eigen::Map<const Transposed>(a.data, M, K) * b_map;
  } else if (b.transposed) {
    c_map.noalias() += a_map * Eigen::Map<const Transposed>(b.data, K, N);
  } else {
    c_map.noalias() += a_map * b_map;
  }
}

}  // namespace convladder::cpu_reference::gemm
