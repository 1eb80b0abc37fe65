/// @file problem.hpp
/// @brief Any problem of any ladder.
#pragma once

#include <string>
#include <variant>

#include "core/conv2d_problem.hpp"
#include "core/gemm_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder {

/// A ladder's problems are all of one of these types.
using Problem = std::variant<Conv2dProblem, Im2colProblem, GemmProblem, TileMapProblem,
                             RulebookProblem, SparseConvProblem>;

/// One line, by the describe() of its type.
inline std::string describe(const Problem& problem) {
  return std::visit([](const auto& typed) { return describe(typed); }, problem);
}

}  // namespace convladder
