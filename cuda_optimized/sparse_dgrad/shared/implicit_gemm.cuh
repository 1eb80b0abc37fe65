/// @file implicit_gemm.cuh
/// @brief The input gradient as an implicit GEMM whose operand A is gathered row by row:
/// implicit_gemm.cu explains it; mirrored_table.cu calls it with other tables.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {

/// dx[row] = sum over the taps k with out = table[k][row] >= 0 of dy[out] x W^T, where W is the
/// matrix of tap k, or of tap KV - 1 - k.
struct ImplicitGemm {
  int KV;                      ///< taps
  int rows;                    ///< of dx
  int Cin, Cout;               ///< channels of dx, of dy
  bool opposite;               ///< whether row k of the table is used with the matrix of tap KV - 1
                               ///< - k
  const std::int32_t* table;   ///< [KV][rows]: rows of dy, or -1
  const std::int32_t* mask;    ///< [rows][mask_words(KV)]: bit k is set where table[k][row] >= 0
  const std::int32_t* orders;  ///< [2][rows]: rows in the order of each half of their masks
  const float* dy;             ///< [...][Cout]
  const float* weights;        ///< [KV][Cin][Cout]
  float* dx;                   ///< [rows][Cin], wholly written
};

/// Computes all of dx in two launches, one per half of the taps; the order of all additions is
/// fixed.
void launch_implicit_gemm(const ImplicitGemm& gemm);

/// A short description of its choice for this number of rows of dx.
std::string implicit_gemm_in_words(const SparseConvProblem& conv, int rows);

/// The reason why a problem is not supported, or none.
inline Declined declined_by_implicit_gemm(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.Cin > kMaxGridYZ * 32) return "more than 2097120 input channels";
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
