/// @file gemm_problem.hpp
/// @brief The parameters of a matrix product.
#pragma once

#include <cmath>
#include <string>

#include "core/activation.hpp"
#include "core/arithmetic.hpp"
#include "core/types.hpp"

namespace convladder {

/// c[m,n] = activated(scale * sum over k of a[m,k] * b[k,n] + bias[n]); all matrices are row-major.
/// Sums are in float, and rounded once where c is of another type; bias is of float, whatever a and
/// b are. Trivially copyable.
///
/// Numbers of 8 bits have a range of their own: what a matrix stands for are its numbers times a
/// scale. The product of both scales, as a float, is that of c, which is of float then.
struct GemmProblem {
  int M = 1, N = 1, K = 1;  ///< c is M x N, the sums are K long. K may be 0: all sums are 0 then.
  /// Which block computes which tile of c; the result is the same. Rungs whose blocks have no tiles
  /// ignore it, rungs with tiles decline the maps that they cannot work under.
  TileMap map = TileMap::row_major;
  DType dtype = DType::f32;                  ///< Of all three: f32, f16 or bf16; of a and b: f8.
  Precision precision = Precision::fp32;     ///< Of the products of f32; more is welcome.
  float scale_a = 1;                         ///< Of the numbers of a, if they are of f8.
  float scale_b = 1;                         ///< Of the numbers of b, likewise.
  bool bias = false;                         ///< Add bias[n] to all sums of column n.
  Activation activation = Activation::none;  ///< Of the sums with their bias.

  /// Of the sums: 1 unless the problem is of f8.
  HOST_DEVICE float scale() const { return scale_a * scale_b; }

  /// What becomes of a complete sum before it is rounded and stored; the scaled sum is not rounded
  /// before the bias is added. @param bias_n bias[n] of its column, or 0
  HOST_DEVICE float finished(float sum, float bias_n) const {
    return activated(activation, std::fma(scale(), sum, bias_n));
  }
};

/// As on the command line: "fp16".
const char* dtype_name(const GemmProblem& problem);

/// The same problem. @throws BadInput if M or N is less than 1, or K less than 0, its numbers are
/// integers, or a scale is not positive, beyond what products leave room for, or none of f8.
GemmProblem validated(GemmProblem problem);

/// One line: "m 512, n 512, k 512", and what else the problem has: bias, activation, a map, another
/// type than fp32, scales.
std::string describe(const GemmProblem& problem);

/// The arrays: a, b (and bias) to c.
Signature gemm_signature(const GemmProblem& problem);

/// The arrays where a rung computes.
struct GemmArrays {
  using Problem = GemmProblem;  ///< Whose arrays these are.
  Input a = {};                 ///< [M][K]
  Input b = {};                 ///< [K][N]
  Input bias = {};              ///< [N], float, or null
  Output c = {};                ///< [M][N]
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const GemmProblem& problem, const GemmArrays& arrays);

}  // namespace convladder
