/// @file plain_sums.cuh
/// @brief What the products decline that have no epilogue.
#pragma once

#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Why a rung that stores its sums as they are declines a problem that wants more.
inline Declined why_no_plain_sums(const GemmProblem& gemm) {
  if (!gemm.bias && gemm.activation == Activation::none) return {};
  return "stores sums as they are, and the problem has a bias or an activation";
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
