/// @file problem.hpp
/// @brief Any problem of any ladder.
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

/// A ladder's problems are all of one of these types; those of gemm of two.
using Problem =
    std::variant<Conv2dProblem, Im2colProblem, GemmProblem, TileMapProblem, RulebookProblem,
                 SparseConvProblem, SparsePoolProblem, SparseToDenseProblem,
                 SparseGlobalPoolProblem, VoxelizeProblem, FftProblem, GemmBatchProblem>;

/// One line, by the describe() of its type.
inline std::string describe(const Problem& problem) {
  return std::visit([](const auto& typed) { return describe(typed); }, problem);
}

/// How exactly its products must be computed.
inline Precision precision_of(const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) return conv->precision;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->precision;
  if (const auto* products = std::get_if<GemmBatchProblem>(&problem))
    return products->product.precision;
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) return sparse->precision;
  return Precision::fp32;
}

/// The type of what it multiplies.
inline DType dtype_of(const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) return conv->dtype;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->dtype;
  if (const auto* products = std::get_if<GemmBatchProblem>(&problem))
    return products->product.dtype;
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) return sparse->dtype;
  return DType::f32;
}

/// What its outputs can be compared with.
enum class Exactness {
  of_integers,  ///< Exactly where the data are small integers, else within a bound on rounding.
  never,        ///< Within a bound, whatever the data: it multiplies by irrational numbers.
  always        ///< Exactly: it computes with whole numbers alone.
};

/// Of a problem.
inline Exactness exactness_of(const Problem& problem) {
  const auto* fft = std::get_if<FftProblem>(&problem);
  if (fft == nullptr) return Exactness::of_integers;
  return fft->ring == FftRing::complex ? Exactness::never : Exactness::always;
}

}  // namespace convladder
