/// @file implicit_gemm_producers.cu
/// @brief sparse_conv with producer warps: four warps gather, a warpgroup multiplies, and a stage
/// holds as many taps as fit 128 bytes.
///
/// - Before: implicit_gemm_wgmma.cu (all threads copy, all multiply, one tap a stage)
/// - The kernels: implicit_gemm_producers.cuh, which it shares with
///   cuda_optimized/sparse_dgrad/implicit_gemm_producers.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** Who copies has nothing to multiply, and who multiplies has nothing to look up.
/// Four warps find taps and rows and ask for them; a warpgroup waits for whole stages, and does
/// nothing but wgmma. No barrier of the block stands between them, only two kinds of mbarrier a
/// stage:
///
///     producers, 32 rows a warp            stages               consumers, 128 rows
///     wait for empty[s]               +---------------+         wait for full[s]
///     rows: cp.async, 16 bytes each ->| tap 3 | tap 7 |         wgmma, tap by tap
///     weights: one bulk copy a tap  ->| 32 channels   |         all but this stage's are done:
///     arrive at full[s] when landed   +---------------+---->    arrive at empty[s - 1]
///
/// A producer does not wait for its copies either: `cp.async.mbarrier.arrive.noinc` arrives in its
/// place when they have landed. So all stages may be on their way at once. And blocks stay: while
/// the consumers store a tile, the producers are in the next one, of which a counter tells the
/// number. Tiles are handed out from the end of the order, where the most taps are.
///
/// With 16 or 32 channels of 16 bits a row has 32 or 64 bytes. A stage of rows of 128 bytes would
/// be half zeros; so a stage holds four taps or two, each a tile of its own with rows as short as
/// that, for which wgmma has swizzles, too. Which taps share a stage differs from tile to tile:
/// that is why they are not one wide row. A list that does not fill its last stage is filled up
/// with a tap that no row has.
///
/// A lane owns a row of the tile: it has the row's mask in a register, and looks up an index only
/// where the row has the tap, one stage ahead. The others of its warp get it by a shuffle. A kernel
/// before this one puts the weights where wgmma wants them, in blocks of a tap, permuted, and
/// rounds float32 to TF32, weights and features. The product begins beside it: a programmatic
/// dependent launch (core/cuda/early_launch.hpp) lets blocks make themselves ready and look up
/// their first rows' numbers, and wait only then.
///
/// wgmma leaves a thread two neighbours of a row. Of 16 bits these are 4 bytes, and what a warp
/// stores at once is 16 bytes of each of eight rows: half a sector. So four lanes exchange pairs by
/// shuffles, until each has 16 bytes of neighbours (store_pieces()).
///
/// **Expect.** Simulated sweep of 125,562 voxels, 3^3, 6.9 pairs a row, H200, 16 bits. A tile of
/// 128 rows has 13.5 taps. From L2, in MB:
///
///     channels   rows   weights   indices   y    all    at 4 TB/s   wgmma    stages of a tile
///        16       28       7        28      4     67      17 us      2 us      4, of 4 taps
///        32       56      27        28      8    119      30 us      5 us      7, of 2 taps
///        64      111     108        28     16    263      66 us     17 us     14, of 1 tap
///       128      223     430        28     32    713     178 us     64 us     14 x 2, of 1 tap
///
/// (An index is 4 bytes of a sector of 32.) What counts is how much is on its way at once. Tuning
/// runs with two consumer warpgroups of 64 rows each, and so two blocks an SM, took 24, 37, 72 and
/// 192 us. With one warpgroup, three blocks (two with 128 channels) and the early launch: 25, 33,
/// 54 and 126. With stores of 16 bytes, measured on 2026-11-22: 24, 30, 46 and 115, which is 2.8 to
/// 6.2 TB/s of the bytes above (and in a sweep of 913,903 voxels, 64 channels, 420 instead of 454).
/// Asking for indices more than a stage ahead changed nothing or lost a little. Where
/// consumers were told of a tile, and not of each stage, registers were spilled, and 64 channels
/// took 64. TF32 has twice the bytes of rows and weights, and a pass over the features before: 32,
/// 51, 95 and 237 us.
/// **Costs.** 256 threads and 64 to 100 KB of shared memory a block. A workspace for the weights
/// and a copy of the features, which float32 and unaligned rows need. All 128 rows of a tile are
/// multiplied if any of them needs the tap; in two halves of the taps it would be a third less, and
/// one more launch with sums that wait in memory: that took 463 us with 128 channels of TF32.
/// Declined: float32 that must not be rounded; GPUs other than compute capability 9.0; over 1024
/// taps.
/// **Try.** Tune the table of shapes. With 128 channels a stage could hold half a tap's channels:
/// which of the numbers in the table above would change?
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/sparse_conv/implicit_gemm_producers.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

Declined supports(const SparseConvProblem& conv) {
  return declined_by_producers(conv, conv.M, conv.Cout);
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_type(conv.dtype, [&]<class T>(T) {
    return producers_workspace_bytes<T>(conv.book.KV, conv.M, conv.N, conv.Cin, conv.Cout);
  });
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M] with masks and order, y [M][Cout].
void run(const SparseConvProblem& conv, const Arguments& arrays) {
  with_type(conv.dtype, [&]<class T>(T) {
    multiply_by_producers<false>(gathered_rows<T>(conv, arrays), conv.N, arrays.workspace<char>());
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return producers_in_words(conv, conv.M, conv.Cin, conv.Cout);
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_producers() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
