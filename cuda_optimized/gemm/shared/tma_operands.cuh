/// @file tma_operands.cuh
/// @brief The host's half of products by wgmma: which shape, what work, and in words.
#pragma once

#include <string>

#include "core/cuda/device_attribute.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/half_types.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

/// The work of a product with this shape. @param step of k, what a stage holds
/// @param below an item is so many tiles below each other
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm, int step, int below = 1) {
  return {.tiles_m = ceil_div(gemm.M, below * Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, step),
          .map = gemm.map};
}

/// Calls body(Shape) for the first of the shapes of which there is a tile for nine of ten
/// multiprocessors; for the last one, if there is none.
template <class Shape, class... Smaller, class Body>
auto with_shape_of(const GemmProblem& gemm, const Body& body) {
  if constexpr (sizeof...(Smaller) == 0) {
    return body(Shape{});
  } else {
    const std::int64_t tiles =
        std::int64_t{ceil_div(gemm.M, Shape::M)} * ceil_div(gemm.N, Shape::N);
    if (tiles >= ceil_div(9 * multiprocessors(), 10)) return body(Shape{});
    return with_shape_of<Smaller...>(gemm, body);
  }
}

/// Why tiles of this shape cannot be handed out as the problem's map says.
template <class Shape>
Declined why_no_order(const GemmProblem& gemm) {
  if (gemm.map == TileMap::row_major) return {};  // an order of its own, without a grid
  return tile_map::why_no_whole_tiles({.map = gemm.map,
                                       .tiles_m = ceil_div(gemm.M, Shape::M),
                                       .tiles_n = ceil_div(gemm.N, Shape::N)});
}

/// Whether pairs of c begin at multiples of two numbers, if its first row does.
inline bool columns_in_pairs(const GemmProblem& gemm) { return gemm.N % 2 == 0; }

/// How a product in 16 bits is computed with this shape. @param also what else there is to say
template <class Shape>
std::string in_words(const GemmProblem& gemm, const char* also = "") {
  return text(dtype_name(gemm.dtype, gemm.precision), ", ", Shape::M, " x ", Shape::N, also,
              rows_in_eights(gemm) ? ", by TMA" : ", by a warp",
              columns_in_pairs(gemm) ? ", columns in pairs" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
