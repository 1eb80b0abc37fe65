/// @file implicit_gemm_cp_async.cu
/// @brief sparse_conv: rows are gathered while others are multiplied, and every warp skips taps for
/// itself.
///
/// - Before: implicit_gemm_split.cu (a block waits for each tile, and skips as a whole)
/// - After: implicit_gemm_longest_first.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
///
/// **The idea.** A gathered row costs two loads, one after the other: which row, and the row. So
/// both are copied asynchronously into rings in shared memory, the row a few steps ahead of the
/// products, its number as many steps ahead of the row. A missing row is a copy of no bytes: the
/// hardware fills it with zeros.
///
///     step           0     1     2     3     4         a step: one tap, 16 or 32 channels of it
///     multiply       #
///     rows, weights  # # # # # # #                     on their way: cp.async, 16 bytes each
///     numbers        # # # # # # # # # # # # #         of the rows that come after: 4 bytes each
///
/// And the tile that decides is the warp's. A block of 64 or 128 rows shares the weights of a tap
/// that any of its rows has, but a warp gathers and multiplies only if one of its own 16 or 32 has
/// it; others of the SM use the time. So weights are read as for a tall tile, and taps are executed
/// as for a low one.
///
/// **Expect.** Executed over useful as for tiles of 16 rows: 1.09 in a simulated sweep of 125,562
/// sites and 1.02 in one of 913,903, in two halves. A thread's 4 x 8 sums take 12 loads of 16 bytes
/// for 128 multiply-adds. Predicted on an H200 for 64 channels: 40 TFLOP/s of what is executed, so
/// 195 us for the sweep. Tuning runs had 37 in the large sweep (2.66 ms), but 30 in the small one
/// (258 us): its tiles have fewer taps each, over which to spread their beginning and end, and
/// implicit_gemm_longest_first.cu names another reason. At 128 channels, where threads have 8 x 8
/// sums: 41 (9.5 ms) and 35 (890 us). Other shapes for 64 channels, on the large sweep on
/// 2026-11-22, where this one took 2.66 ms: tiles of 128 rows, 32 or 16 deep, 2.75 and 3.06; 64
/// rows, 16 deep, in 4 or 6 stages 2.99 and 2.94; in two stages 2.66; 32 rows 2.95. So neither more
/// rows to a weight nor more copies on their way are what is missing.
/// **Costs.** 27 to 54 KB of shared memory for the rings. Where rows or channels do not come in
/// fours of floats, copies are of 4 bytes. Before sm_80 copies are loads and stores, one after the
/// other. Declines other types than float32, and more than 1024 taps.
///
/// **Try.** Take the __syncwarp() out of add_taps(): cuda_on_cpu finds what a GPU would hardly ever
/// show. Which lane reads what, and who has overwritten it?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_async.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kMostTaps = 1024;

using gemm::ThreadTile;
/// Warps of 16 rows and all of the tile's channels, 8 x 8 sums a thread. Those take 168 registers,
/// and so 12 warps an SM; with 128 registers and 16 warps some spill, and a tuning run had 10 %
/// less.
using Wide = AsyncRows<ThreadTile<64, 128, 32, 8, 8, 2>, 2>;
/// Warps of 16 rows again, 4 x 8 sums a thread. Warps of 32 rows with 8 x 8 were slower in a sweep
/// (292 us instead of 258) and not faster in the large one, and so were warps whose halves share
/// the depth of a step, 8 x 8 sums a thread (271).
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
  if (conv.channels > Medium::Tile::kBlockN) {
    launch_async_rows<Wide, 3>(conv, queue);
  } else if (conv.channels > Narrow::Tile::kBlockN) {
    launch_async_rows<Medium, 4>(conv, queue);
  } else if (!has_many_rows(conv.rows)) {
    launch_async_rows<Narrow, 6>(conv, queue);
  } else {
    launch_async_rows<NarrowTall, 4>(conv, queue);
  }
}

Implementation<SparseConvProblem> implicit_gemm_cp_async() {
  return {.supports = supports_listed_taps, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
