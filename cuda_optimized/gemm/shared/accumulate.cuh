/// @file accumulate.cuh
/// @brief What products in tiles decline: sums of nothing, and those without an epilogue more than
/// plain sums.
#pragma once

#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// Why a rung whose tiles add up step by step along k declines a problem without any.
inline Declined why_no_steps(const GemmProblem& gemm) {
  if (gemm.K > 0) return {};
  return "has at least one step along k, and k = 0";
}

/// Why a rung that stores its sums as they are declines a problem that wants more, or
/// has no sums.
inline Declined why_no_plain_sums(const GemmProblem& gemm) {
  if (const Declined why = why_no_steps(gemm)) return why;
  if (!gemm.bias && gemm.activation == Activation::none) return {};
  return "stores sums as they are, and the problem has a bias or an activation";
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
