/// @file implicit_gemm_cp_async.cu
/// @brief sparse_conv: rows are gathered while others are multiplied; each warp skips taps.
///
/// - Before: implicit_gemm_split.cu
/// - After: implicit_gemm_longest_first.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
/// - The kernel: implicit_gemm_async.cuh
///
/// **The idea.** A gathered row costs two loads, one after the other: its number, and the row. So
/// both are copied asynchronously into rings in shared memory. A missing row is a copy of no bytes,
/// which fills in zeros.
///
///     while step ...      is multiplied          a step: one tap, 32 channels of it
///     step ... + 1        is on its way          rows and weights: cp.async, 16 bytes each
///     step ... + 2        is looked up           numbers of rows: cp.async, 4 bytes each
///
/// And each warp skips taps by itself. A block of 64 or 128 rows shares the weights of a tap that
/// any of its rows has, but a warp gathers and multiplies only if one of its own 16 or 32 has it.
/// So weights are read as for a tall tile, and taps are executed as for a low one. The second half
/// of the taps is launched early: its blocks fill the gaps at the end of the first, and wait only
/// before they add to y.
///
/// **Expect.** Executed over useful as for tiles of 16 rows: 1.09 in sweep-64-subm3, 1.02 in
/// large-64-subm3. A thread's 4 x 8 sums take 12 loads of 16 bytes for 128 multiply-adds. On an
/// H200 that may be 40 TFLOP/s of what is executed: 195 us for sweep-64-subm3.
/// **Costs.** 27 to 53 KB of shared memory. Before sm_80 copies are loads and stores; before sm_90
/// the second half waits for the first. Declines other types than float32, more than 1024 taps, and
/// sizes beyond 2^30.
/// **Try.** Take the first __syncwarp() out of add_taps(): cuda_on_cpu finds what a GPU would
/// hardly ever show. What does one lane read that another has copied?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_async.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kMostTaps = 1024;

using gemm::ThreadTile;
/// Warps of 16 rows and all of the tile's channels, 8 x 8 sums a thread. These take 168 registers,
/// so that an SM holds 12 warps; with 128 registers and 16 warps some registers spill, which costs
/// more than the other warps gain.
using Wide = AsyncRows<ThreadTile<64, 128, 32, 8, 8, 2>, 2>;
/// Warps of 16 rows again, 4 x 8 sums a thread. With 8 x 8 sums warps have 32 rows, and skip less.
using Medium = AsyncRows<ThreadTile<64, 64, 32, 4, 8, 4>, 2>;
/// 16 rows, or 32 where there are so many of them that few are wasted.
using Narrow = AsyncRows<ThreadTile<64, 32, 32, 4, 4, 4>, 2>;
using NarrowTall = AsyncRows<ThreadTile<128, 32, 32, 8, 4, 4>, 2>;

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M], mask [M][words], split_order [2][M],
/// y [M][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  for (int half = 0; half < 2; ++half)
    launch_implicit_gemm_async(half_of_implicit_gemm(conv, arrays, half));
}

/// Calls body.operator()<shape, blocks that should fit on an SM>().
template <class Body>
void with_shape(std::int64_t rows, int channels, const Body& body) {
  if (channels > Medium::Tile::kBlockN) {
    body.template operator()<Wide, 3>();
  } else if (channels > Narrow::Tile::kBlockN) {
    body.template operator()<Medium, 4>();
  } else if (!has_many_rows(rows)) {
    body.template operator()<Narrow, 6>();
  } else {
    body.template operator()<NarrowTall, 4>();
  }
}

}  // namespace

Declined supports_listed_taps(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.book.KV > kMostTaps) return text("up to ", kMostTaps, " taps");
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (conv.Cout >= kMost || conv.book.KV * std::int64_t{conv.Cin} >= kMost) {
    return "Cout and KV * Cin below 2^30";
  }
  constexpr auto kRows = Narrow::Tile::kBlockM, kChannels = Narrow::Tile::kBlockN;
  if (ceil_div(conv.M, kRows) * std::int64_t{ceil_div(conv.Cout, kChannels)} >= kMost) {
    return text("below 2^30 tiles of ", kRows, " rows and ", kChannels, " channels");
  }
  return {};
}

bool has_many_rows(std::int64_t rows) {
  return rows / 128 >= std::min<std::int64_t>(2400, max_strided_blocks);
}

int async_tile_rows(std::int64_t rows, int channels) {
  return has_many_rows(rows) && channels <= NarrowTall::Tile::kBlockN ? 128 : 64;
}

void launch_implicit_gemm_async(const ImplicitGemm& conv, const TileQueue& queue) {
  with_shape(conv.rows, conv.channels,
             [&]<class Shape, int kBlocks>() { launch_async_rows<Shape, kBlocks>(conv, queue); });
}

std::string implicit_gemm_async_in_words(const SparseConvProblem& conv) {
  std::string words;
  with_shape(conv.M, conv.Cout, [&]<class Shape, int kBlocks>() {
    words = text(Shape::Tile::kBlockM, " x ", Shape::Tile::kBlockN,
                 channels_in_fours(conv.Cin, conv.Cout) ? ", channels in fours" : "");
  });
  return words;
}

Implementation<SparseConvProblem> implicit_gemm_cp_async() {
  return {.supports = supports_listed_taps, .run = run, .choice = implicit_gemm_async_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
