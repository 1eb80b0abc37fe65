/// @file fp8_operands.cuh
/// @brief The host's half of the products in 8 bits by wgmma: copies whose k runs along memory.
#pragma once

#include <cstdint>
#include <string>

#include "core/cuda/tensor_map.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/accumulate.cuh"
#include "cuda_optimized/gemm/shared/fp8_repack.cuh"
#include "cuda_optimized/gemm/shared/tma_matrices.cuh"
#include "cuda_optimized/gemm/shared/tma_operands.cuh"
#include "cuda_optimized/gemm/shared/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {

inline constexpr int kBytesStep = 4 * kWgmmaStep;  ///< Of k in a stage: rows of 128 bytes.

/// Why a rung of 8-bit numbers that stores its sums as they are declines a problem, beside its map.
inline Declined why_no_bytes(const GemmProblem& gemm) {
  if (gemm.dtype != DType::f8) {
    return text("multiplies numbers of 8 bits, and the problem asks for ", dtype_name(gemm));
  }
  if (const Declined why = why_no_plain_sums(gemm)) return why;
  return why_no_wgmma();
}

/// Rows of what TMA reads begin at multiples of 16 bytes.
inline std::int64_t pitch_of(const GemmProblem& gemm) {
  return ceil_div(gemm.K, 16) * std::int64_t{16};
}

/// Copies with rows of pitch_of() bytes, in words: see TiledSource.
struct Copies {
  std::uint32_t *a,  ///< [M] rows
      *b;            ///< [N] rows
};

/// The copies, with the bytes that they take.
inline Copies copies_in(WorkspaceCutter& cutter, const GemmProblem& gemm) {
  const std::int64_t words = pitch_of(gemm) / 4;
  auto* const b = cutter.take<std::uint32_t>(gemm.N * words);
  return {cutter.take<std::uint32_t>(gemm.M * words), b};
}

/// Of the workspace that the copies take.
inline std::size_t bytes_of_copies(const GemmProblem& gemm) {
  WorkspaceCutter cutter(nullptr);
  copies_in(cutter, gemm);
  return cutter.bytes();
}

/// Whether all rows of a begin at multiples of 16 bytes, if the first one does.
inline bool rows_of_a_fit(const GemmProblem& gemm) { return gemm.K % 16 == 0; }

/// Turns b over, copies a where it must be, and describes both to TMA.
template <class Shape>
TiledSource<Shape> tiled_bytes(const GemmProblem& gemm, const GemmArrays& arrays,
                               const Context& context) {
  const Float8 *a = arrays.a, *b = arrays.b;
  const std::int64_t M = gemm.M, N = gemm.N, pitch = pitch_of(gemm), words = pitch / 4;
  WorkspaceCutter cutter(context.workspace_as<std::byte>());
  const Copies copies = copies_in(cutter, gemm);
  launch_repack({gemm.N, gemm.K, 1, N, pitch}, b, copies.b);
  const std::uint32_t* words_of_a = copies.a;
  if (rows_of_a_fit(gemm) && reinterpret_cast<std::uintptr_t>(a) % 16 == 0) {
    words_of_a = reinterpret_cast<const std::uint32_t*>(a);
  } else {
    launch_repack({gemm.M, gemm.K, gemm.K, 1, pitch}, a, copies.a);
  }
  return {tensor_map(TiledMap{2, {words, M}, {1, words}, {kWgmmaStep, Shape::M}}, words_of_a),
          tensor_map(TiledMap{2, {words, N}, {1, words}, {kWgmmaStep, Shape::N}}, copies.b)};
}

/// c by the threads.
template <class Shape>
RowMajor<Shape> rows_of_c(const GemmProblem& gemm, float* c) {
  return {c, gemm.M, gemm.N,
          reinterpret_cast<std::uintptr_t>(c) % 8 == 0 && columns_in_pairs(gemm)};
}

/// Stores a consumer's sums of 64 rows of a tile, from row `first` of c on. 128 threads call it.
template <class Shape>
__device__ void store_rows(const RowMajor<Shape>& result, const WgmmaItem& item, std::int64_t first,
                           const float (&sums)[Shape::N / 2]) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const auto place = result.place(item);
  const std::int64_t row = first + thread / 32 * 16 + lane / 4;
  float* const rows[2] = {result.row(place, row), result.row(place, row + 8)};
  // Two loops: one without a test for tiles that lie in c as a whole, as most do.
  if (result.whole(place, item)) {
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
      const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
      result.store_whole(pair, rows[0], sums[4 * j], sums[4 * j + 1]);
      result.store_whole(pair, rows[1], sums[4 * j + 2], sums[4 * j + 3]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < Shape::N / 8; ++j) {
      const auto pair = result.columns(place, j * 8 + lane % 4 * 2);
      result.store(pair, rows[0], sums[4 * j], sums[4 * j + 1]);
      result.store(pair, rows[1], sums[4 * j + 2], sums[4 * j + 3]);
    }
  }
}

/// How a product is computed with this shape.
template <class Shape>
std::string bytes_in_words(const GemmProblem& gemm) {
  return text(Shape::M, " x ", Shape::N, rows_of_a_fit(gemm) ? "" : ", a copied",
              columns_in_pairs(gemm) ? ", columns in pairs" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
