/// @file implicit_gemm_cp_async.cu
/// @brief sparse_conv: rows are gathered while others are multiplied, and every warp skips taps for
/// itself.
///
/// - Before: implicit_gemm_split.cu (a block waits for each tile, and skips as a whole)
/// - After: implicit_gemm_longest_first.cu
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
///
/// **The idea.** A gathered row costs two loads, one after the other: which row, and the row. So
/// both are copied asynchronously into rings in shared memory, the row a step ahead of the
/// products, its number a step ahead of the row. A missing row is a copy of no bytes: the hardware
/// fills it with zeros.
///
///     while step ...      is multiplied          a step: one tap, 32 channels of it
///     step ... + 1        is on its way          rows and weights: cp.async, 16 bytes each
///     step ... + 2        is looked up           numbers of rows: cp.async, 4 bytes each
///
/// And the tile that decides is the warp's. A block of 64 or 128 rows shares the weights of a tap
/// that any of its rows has, but a warp gathers and multiplies only if one of its own 16 or 32 has
/// it; others of the SM use the time. So weights are read as for a tall tile, and taps are executed
/// as for a low one.
///
/// The second half of the taps adds to what the first has stored, and needs it only then. So it is
/// launched early (core/cuda/early_launch.hpp): its blocks begin where those of the first leave
/// multiprocessors idle, and wait before they store.
///
/// **Expect.** Executed over useful as for tiles of 16 rows: 1.09 in a simulated sweep of 125,562
/// sites and 1.02 in one of 913,903, in two halves. A thread's 4 x 8 sums take 12 loads of 16 bytes
/// for 128 multiply-adds. Predicted on an H200 for 64 channels: 40 TFLOP/s of what is executed, so
/// 195 us for the sweep. A first version had 37 in the large sweep (2.66 ms), but 30 in the small
/// one (258 us). The profiler (ncu, 2026-11-22, large sweep, first half) told why, and what became
/// of it:
///
///                                                        first version   this one
///     instructions, those that multiply and add            1.08 G, 76 %    1.07 G, 77 %
///     cycles of shared memory for a load of 16 bytes         3.3             2.0
///     time that shared memory is busy                        78 %            51 %
///     cycles that issue an instruction                       73 %            76 %
///
/// A gathered piece took 14 instructions, most of them for its address; now 5. Loads of weights
/// took 4 cycles, since eight neighbouring lanes read eight places: see thread_in_squares(). With
/// two stages instead of three, all that came to 2.53 ms. The early launch gains 8 % in the small
/// sweep, where the last tiles of a half count, and next to nothing in the large one: 229 us, so 34
/// TFLOP/s there and 38 here. At 128 channels, where threads have 8 x 8 sums: 38 (812 us) and 43
/// (9.0 ms). What is left: in 24 of 100 cycles a scheduler has no warp that is ready. Samples find
/// a third of the warps' time at barriers and at the beginnings of tiles, where numbers, masks and
/// rows are read one after the other.
///
/// Other shapes for 64 channels, in the large sweep: three stages 2.58 ms; tiles of 128 rows 2.69,
/// of 32 rows 2.51 (but 174 us instead of 167 for a backbone's third stage); 16 deep 2.86; 8 x 8
/// sums a thread 3.03; five blocks an SM instead of four 2.55. Numbers in registers, exchanged by
/// shuffles instead of a ring, 2.59. And the loops written out for two stages, which changes only
/// the order of instructions, 2.58: so 2 % are the compiler's luck.
/// **Costs.** 27 to 53 KB of shared memory for the rings. Where rows or channels do not come in
/// fours of floats, copies are of 4 bytes. Before sm_80 copies are loads and stores, one after the
/// other; before sm_90 the second half begins when the first has ended. Declines other types than
/// float32, more than 1024 taps, and sizes beyond 2^30.
///
/// **Try.** Take the first __syncwarp() out of add_taps(): cuda_on_cpu finds what a GPU would
/// hardly ever show. Which lane reads what, and who has copied it? From how many stages on is the
/// second one needed?
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

/// Calls body.operator()<shape, blocks that shall fit an SM>().
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
