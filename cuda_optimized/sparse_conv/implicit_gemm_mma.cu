/// @file implicit_gemm_mma.cu
/// @brief sparse_conv on the tensor cores: a tile of rows with like taps is a matrix product.
///
/// - Before: implicit_gemm_longest_first.cu
/// - After: implicit_gemm_wgmma.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** At one tap, 128 output rows are a matrix product, and it needs no pass that
/// gathers: the rows of its left factor are gathered on their way into shared memory. `cp.async`
/// copies 16 bytes from anywhere, and writes zeros if told to read nothing: that is a row that
/// meets nothing.
///
///     order -> rows of the tile     nbr[tap][row]          features       stage (shared memory)
///       0      row 17                  40          ---->   row 40    ->   | row 40 | W[tap]    |
///       1      row 90                  -1          ---->   nothing   ->   | zeros  | 32 chan-  |
///       2      row  3                   8          ---->   row  8    ->   | row  8 | nels deep |
///
/// A tile does a tap if any of its rows has it. Rows in the order of their masks have like taps, so
/// few are done in vain. A block lists the taps of its rows, and which warps, of 32 rows each, need
/// them; the others skip the product. float32 is rounded to TF32 on its way to registers.
///
/// **Expect.** sweep-64-subm3: 7.1 GFLOP for the pairs. Warps of 32 rows multiply 1.6 times that;
/// in the order of the sites it would be 2.7 times. In TF32 220 MB of rows and 220 MB of weights
/// come from L2, in float16 half of that. Predicted on an H200 for sweep-32-subm3, sweep-64-subm3,
/// sweep-128-subm3: TF32 55, 110, 300 us; float16 38, 60, 150 us.
/// **Costs.** 13 to 99 KB of shared memory. Rows that are no 16-byte pieces are copied element by
/// element. Declined: float32 with precision fp32; GPUs before compute capability 8.0; more taps
/// than 1024 or than fit shared memory.
/// **Try.** Take the rows in the order of the sites (GatheredTile::prepare() in
/// implicit_gemm_mma.cuh). How many taps does a tile have now?
#include "core/cuda/device_attribute.hpp"
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/with_type.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_mma.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

/// Block Shape::kThreads; grid: all tiles, those of the same rows side by side.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    implicit_gemm_tile(GatheredRows<typename Shape::Number> conv, FastDivision by_chunks,
                       unsigned tiles_n) {
  // The last rows of the order have the most taps: their tiles begin first.
  const unsigned last = gridDim.x / tiles_n - 1;
  GatheredTile<Shape> tile(conv, by_chunks, std::int64_t{last - blockIdx.x / tiles_n} * Shape::M,
                           static_cast<int>(blockIdx.x % tiles_n) * Shape::N);
  tile.prepare();
  WarpSums<typename Shape::Number, Shape::kWarpN> sums;
  tile.multiply(&sums);
  tile.store(sums);
}

/// Calls body(shape) with the tile that suits a problem.
/// @param pieces whether rows consist of pieces
template <class T, class Body>
void with_shape(const SparseConvProblem& conv, bool pieces, const Body& body) {
  constexpr int kNarrowRow = static_cast<int>(32 * sizeof(T));
  // Tests that make the machine small get large tiles, which their problems are too small for.
  const bool few_rows = conv.M <= 1024 && max_strided_blocks >= kMaxGridX;
  if (!pieces) {
    body(MmaShape<T, 32, 32, 32, 64, 3, 4, false>{});
  } else if (few_rows) {
    body(MmaShape<T, 32, 32, 32, 64, 3, 8, true>{});
  } else if (conv.Cout <= 32 && conv.Cin <= 16) {
    body(MmaShape<T, 128, 32, 32, kNarrowRow, 3, 4, true, 2>{});
  } else if (conv.Cout <= 32) {
    body(MmaShape<T, 128, 32, 32, kNarrowRow, 3, 4, true>{});
  } else if (conv.Cout <= 64) {
    // cvt makes many numbers in registers dear for floats; for halves, more warps hide more.
    constexpr bool kFloat = std::is_same_v<T, float>;
    body(MmaShape < T, 128, 64, kFloat ? 64 : 32, 128, 3, kFloat ? 3 : 2, true > {});
  } else if (has_few_tiles(conv.M, conv.Cout)) {
    body(MmaShape<T, 64, 64, 32, 128, 3, 3, true>{});
  } else {
    body(MmaShape<T, 128, 128, 64, 128, 3, 2, true>{});
  }
}

template <class T>
Declined supports_as(const SparseConvProblem& conv) {
  // The tile for pieces is the larger one; whether there are any is known when there are arrays.
  std::size_t bytes = 0;
  with_shape<T>(conv, true, [&]<class Shape>(Shape) { bytes = Shape::shared_bytes(conv.book.KV); });
  if (bytes > max_shared_bytes()) {
    return text("tile and list of ", conv.book.KV, " taps take ", bytes,
                " bytes of shared memory, more than this device has");
  }
  return {};
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (compute_capability() < 80) {
    return "tensor cores take these numbers from compute capability 8.0 on";
  }
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  // Types of 16 bits have the same tiles.
  return conv.dtype == DType::f32 ? supports_as<float>(conv) : supports_as<Half>(conv);
}

template <class T>
void run_as(const SparseConvProblem& problem, const Arguments& arrays) {
  const GatheredRows<T> conv = gathered_rows<T>(problem, arrays);
  with_shape<T>(problem, consists_of_pieces(conv),
                [&]<class Shape>(Shape) { launch_tiles<Shape>(implicit_gemm_tile<Shape>, conv); });
}

void run(const SparseConvProblem& conv, const Arguments& arrays) {
  with_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
}

template <class T>
std::string words_as(const SparseConvProblem& conv) {
  std::string words;
  with_shape<T>(conv, would_consist_of_pieces<T>(conv.Cin, conv.Cout), [&]<class Shape>(Shape) {
    words = text(dtype_name(conv), ", ", Shape::M, " x ", Shape::N,
                 Shape::kTaps > 1 ? ", two taps a stage" : "", Shape::kPieces ? ", in pieces" : "");
  });
  return words;
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return with_type(conv.dtype, [&]<class T>(T) { return words_as<T>(conv); });
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_mma() {
  return {.supports = supports, .run = run, .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
