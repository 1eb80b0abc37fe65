/// @file problem.hpp
/// @brief A problem of any ladder.
#pragma once

#include <string>
#include <variant>

#include "core/conv2d_gradients.hpp"
#include "core/fft_problem.hpp"
#include "core/gemm_batch_problem.hpp"
#include "core/gemm_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/sparse_global_pool_problem.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/tile_map_problem.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder {

/// All problems of a ladder have one of these types; those of gemm have two.
using Problem =
    std::variant<Conv2dProblem, Im2colProblem, GemmProblem, TileMapProblem, RulebookProblem,
                 SparseConvProblem, SparsePoolProblem, SparseToDenseProblem,
                 SparseGlobalPoolProblem, VoxelizeProblem, FftProblem, GemmBatchProblem>;

/// One line, by describe() of the problem's type.
inline std::string describe(const Problem& problem) {
  return std::visit([](const auto& typed) { return describe(typed); }, problem);
}

/// The required precision of its products.
inline Precision precision_of(const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) return conv->precision;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->precision;
  if (const auto* products = std::get_if<GemmBatchProblem>(&problem))
    return products->product.precision;
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) return sparse->precision;
  return Precision::fp32;
}

/// The type of its operands.
inline DType dtype_of(const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) return conv->dtype;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->dtype;
  if (const auto* products = std::get_if<GemmBatchProblem>(&problem))
    return products->product.dtype;
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) return sparse->dtype;
  return DType::f32;
}

/// How its outputs can be compared.
enum class Exactness {
  of_integers,  ///< Exactly if the data are small integers, otherwise within a bound on rounding.
  never,        ///< Within a bound for all data: it multiplies by irrational numbers.
  always        ///< Exactly: it computes with integers only.
};

/// Of a problem.
inline Exactness exactness_of(const Problem& problem) {
  const auto* fft = std::get_if<FftProblem>(&problem);
  if (fft == nullptr) return Exactness::of_integers;
  return fft->ring == FftRing::complex ? Exactness::never : Exactness::always;
}

}  // namespace convladder
