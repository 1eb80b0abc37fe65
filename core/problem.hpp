/// @file problem.hpp
/// @brief Any problem of any ladder.
#pragma once

#include <string>
#include <variant>

#include "core/conv2d_gradients.hpp"
#include "core/gemm_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/tile_map_problem.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder {

/// A ladder's problems are all of one of these types.
using Problem =
    std::variant<Conv2dProblem, Im2colProblem, GemmProblem, TileMapProblem, RulebookProblem,
                 SparseConvProblem, SparsePoolProblem, SparseToDenseProblem, VoxelizeProblem>;

/// One line, by the describe() of its type.
inline std::string describe(const Problem& problem) {
  return std::visit([](const auto& typed) { return describe(typed); }, problem);
}

/// How exactly its products must be computed.
inline Precision precision_of(const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) return conv->precision;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->precision;
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) return sparse->precision;
  return Precision::fp32;
}

/// The type of what it multiplies.
inline DType dtype_of(const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) return conv->dtype;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->dtype;
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) return sparse->dtype;
  return DType::f32;
}

}  // namespace convladder
