/// @file gemm_problem.hpp
/// @brief The parameters of a GEMM.
#pragma once

#include <cmath>
#include <string>

#include "core/activation.hpp"
#include "core/arithmetic.hpp"
#include "core/types.hpp"

namespace convladder {

/// c[m,n] = activated(scale * sum over k of a[m,k] * b[k,n] + bias[n]); all matrices are row-major.
/// Accumulators are float, and results are rounded once if c has another type; bias is float for
/// all types of a and b. Trivially copyable.
///
/// FP8 has a limited range, so an FP8 matrix represents its elements times a scale. The product of
/// both scales, as a float, is the scale of c, which is then float.
struct GemmProblem {
  int M = 1, N = 1, K = 1;  ///< c is M x N, sums have K terms. K may be 0: all sums are then 0.
  /// The assignment of tiles of c to blocks; the result does not depend on it. Rungs without tiles
  /// ignore it, rungs with tiles decline the maps that they do not support.
  TileMap map = TileMap::row_major;
  DType dtype = DType::f32;                  ///< Of all three: f32, f16 or bf16; f8 is the type of
                                             ///< a and b only.
  Precision precision = Precision::fp32;     ///< Least precision of the products of f32.
  float scale_a = 1;                         ///< Scale of a, if it is f8.
  float scale_b = 1;                         ///< Scale of b, if it is f8.
  bool bias = false;                         ///< Add bias[n] to all sums of column n.
  Activation activation = Activation::none;  ///< Applied to the sums with their bias.

  /// Scale of the sums: 1 unless the dtype is f8.
  HOST_DEVICE float scale() const { return scale_a * scale_b; }

  /// The final value of a complete sum before it is rounded and stored; the scaled sum is not
  /// rounded before the bias is added. @param bias_n bias[n] of its column, or 0
  HOST_DEVICE float finished(float sum, float bias_n) const {
    return activated(activation, std::fma(scale(), sum, bias_n));
  }
};

/// As on the command line: "fp16".
const char* dtype_name(const GemmProblem& problem);

/// The same problem. @throws BadInput if M or N is less than 1, K less than 0, the dtype is an
/// integer type, a scale is not positive or so large that products overflow, or the dtype with a
/// scale is not f8.
GemmProblem validated(GemmProblem problem);

/// One line: "m 512, n 512, k 512", and every parameter that is not the default: bias, activation,
/// map, dtype, scales.
std::string describe(const GemmProblem& problem);

/// The arrays: a, b (and bias) to c.
Signature gemm_signature(const GemmProblem& problem);

/// The arrays at the place where a rung runs.
struct GemmArrays {
  using Problem = GemmProblem;  ///< The problem type of these arrays.
  Input a = {};                 ///< [M][K]
  Input b = {};                 ///< [K][N]
  Input bias = {};              ///< [N], float, or null
  Output c = {};                ///< [M][N]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const GemmProblem& problem, const GemmArrays& arrays);

}  // namespace convladder
