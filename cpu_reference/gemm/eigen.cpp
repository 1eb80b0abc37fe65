/// @file eigen.cpp
/// @brief gemm, rung 2: the same product by a library, Eigen.
///
/// - Before: triple_loop.cpp
/// - On the GPU: cuda_naive/gemm/direct.cu
///
/// **The idea.** Do not write what others have solved: a library's product keeps a block of c in
/// registers, walks over packed panels of a and b that fit the caches, and multiplies four or eight
/// elements an instruction (Goto and van de Geijn, "Anatomy of high-performance matrix
/// multiplication", 2008). The rungs on the GPU rediscover these three ideas one by one: tiles,
/// register tiles, vectors.
///
///     c  =  a  *  b        Eigen::Map: our arrays as Eigen's matrices, without a copy
///
/// **Expect.** 10 to 50 times the speed of the triple loop on one core, more with AVX.
/// **Costs.** The order of summation is Eigen's own, so real data agree with the loops only within
/// rounding.
#include "cpu_reference/gemm/eigen.hpp"

#include <Eigen/Core>

#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Transposed = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

Declined supports(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f32) return "float32 only";
  return {};
}

/// a [M][K], b [K][N], c [M][N].
void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  multiply(gemm.M, gemm.N, gemm.K, {arrays.a}, {arrays.b}, arrays.c);
}

}  // namespace

void multiply(std::int64_t M, std::int64_t N, std::int64_t K, const Factor& a, const Factor& b,
              float* c, bool adds) {
  // A transposed matrix lies as its columns one after the other would.
  const auto with_a = [&](const auto& a_map) {
    const auto with_b = [&](const auto& b_map) {
      Eigen::Map<Matrix> c_map(c, M, N);
      if (!adds) c_map.setZero();
      c_map.noalias() += a_map * b_map;  // noalias: c is no factor, so no temporary is needed
    };
    if (b.transposed) {
      with_b(Eigen::Map<const Transposed>(b.data, K, N));
    } else {
      with_b(Eigen::Map<const Matrix>(b.data, K, N));
    }
  };
  if (a.transposed) {
    with_a(Eigen::Map<const Transposed>(a.data, M, K));
  } else {
    with_a(Eigen::Map<const Matrix>(a.data, M, K));
  }
}

extern const Implementation<GemmArrays> eigen = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::gemm
