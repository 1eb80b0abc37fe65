/// @file eigen.cpp
/// @brief Library GEMM: Eigen's register blocks, packed panels and vector instructions.
///
/// - Before: triple_loop.cpp
/// - After: blocked.cpp
/// - On the GPU: cuda_naive/gemm/direct.cu
///
/// **The idea.** A library's GEMM keeps a block of c in registers, traverses packed panels of a and
/// b that fit the caches, and multiplies four or eight elements per instruction (Goto and van de
/// Geijn, "Anatomy of high-performance matrix multiplication", 2008). The GPU rungs introduce these
/// three techniques one by one: tiles, register tiles, vectors.
///
///     c  =  a  *  b        Eigen::Map: our arrays as Eigen's matrices, without a copy
///
/// **Expect.** 10 to 50 times the speed of the triple loop on one core, more with AVX.
/// **Costs.** The order of summation is Eigen's own, so real data agree with the loops only within
/// rounding. Bias and activation are separate passes over c, because the library's GEMM supports
/// neither.
#include <Eigen/Core>

#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Declined supports(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f32) return "float32 only";
  return {};
}

/// a [M][K], b [K][N], bias [N] or null, c [M][N].
void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context&) {
  const Eigen::Map<const Matrix> a(arrays.a, gemm.M, gemm.K), b(arrays.b, gemm.K, gemm.N);
  Eigen::Map<Matrix> c(arrays.c, gemm.M, gemm.N);
  c.noalias() = a * b;  // c is not an operand: no temporary
  if (gemm.bias) c.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(arrays.bias, gemm.N);
  if (gemm.activation != Activation::none)
    c = c.unaryExpr([&](float sum) { return activated(gemm.activation, sum); });
}

}  // namespace

extern const Implementation<GemmArrays> eigen = {
    .supports = supports,
    .run = run,
};

}  // namespace convladder::cpu_reference::gemm
