/// @file gemm_problem.hpp
/// @brief The parameters of a matrix product.
#pragma once

#include <string>

#include "core/types.hpp"

namespace convladder {

/// c[m,n] = sum over k of a[m,k] * b[k,n]; all three are row-major. Sums are in float, and rounded
/// once where c is of another type. Trivially copyable.
struct GemmProblem {
  int M = 1, N = 1, K = 1;  ///< c is M x N, the sums are K long.
  /// Which block computes which tile of c; the result is the same. Rungs whose blocks have no tiles
  /// ignore it, rungs with tiles decline the maps that they cannot work under.
  TileMap map = TileMap::row_major;
  DType dtype = DType::f32;               ///< Of all three: f32, f16 or bf16.
  Precision precision = Precision::fp32;  ///< Of the products of f32; more is welcome.
};

/// As on the command line: "fp16".
const char* dtype_name(const GemmProblem& problem);

/// The same problem. @throws BadInput if an extent is less than 1, or its numbers are integers.
GemmProblem validated(GemmProblem problem);

/// One line: "m 512, n 512, k 512", and map and type unless they are row_major and fp32.
std::string describe(const GemmProblem& problem);

/// The arrays: a, b to c.
Signature gemm_signature(const GemmProblem& problem);

/// The arrays where a rung computes.
struct GemmArrays {
  using Problem = GemmProblem;  ///< Whose arrays these are.
  Input a;                      ///< [M][K]
  Input b;                      ///< [K][N]
  Output c;                     ///< [M][N]
};

}  // namespace convladder
