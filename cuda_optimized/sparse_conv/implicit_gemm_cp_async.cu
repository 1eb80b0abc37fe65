/// @file implicit_gemm_cp_async.cu
/// @brief sparse_conv: cp.async; rows are gathered asynchronously, and each warp skips taps.
///
/// - Before: implicit_gemm_sorted.cu
/// - After: implicit_gemm_mma.cu
/// - The copies: shared/async_copies.cuh; the problem: shared/implicit_gemm.cuh
/// - The same maths: cpu_reference/sparse_conv/direct.cpp
///
/// **The idea.** A gathered row costs two dependent loads: its index, and the row. Both are copied
/// asynchronously into rings in shared memory. For a missing row, cp.async copies 0 bytes and
/// writes zeros.
///
///     while step ...      is multiplied          a step: one tap, 32 of its channels
///     step ... + 1        is in flight           rows and weights: cp.async, 16 bytes each
///     step ... + 2        is looked up           indices of rows: cp.async, 4 bytes each
///
/// A block of 64 or 128 rows shares the weights of every tap that any of its rows has, but a warp
/// gathers and multiplies only if one of its 16 or 32 rows has the tap. The launch for the second
/// half of the taps overlaps the end of the first (PDL).
///
/// **Expect.** Executed over useful multiply-adds as for tiles of 16 rows: 1.09 in sweep-64-subm3,
/// 1.02 in large-64-subm3. Predicted on an H200: 40 TFLOP/s, 195 us for sweep-64-subm3.
/// @expect lanes.features.load 0
/// @expect loads_per_output.features 3838 * 8 / 16384 = 1.8740, a load for each pair, in vectors
/// @expect bytes_per_lane.features.async 16
/// @expect launches 2
/// **Costs.** 27 to 53 KB of shared memory. Float32, up to 1024 taps, sizes up to 2^30.
/// **Try.** Remove the first __syncwarp() of the kernel and run it in cuda_on_cpu. Which race is
/// reported?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"
#include "cuda_optimized/sparse_conv/shared/async_copies.cuh"
#include "cuda_optimized/sparse_conv/shared/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kMostTaps = 1024;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< tiles.

using gemm::ThreadTile;
/// Warps of 16 rows and all of the tile's channels, 8 x 8 accumulators per thread. These take 168
/// registers, so that an SM holds 12 warps; with 128 registers and 16 warps some registers spill,
/// which costs more than the other warps gain.
using Wide = AsyncRows<ThreadTile<64, 128, 32, 8, 8, 2>, 2>;
/// Warps of 16 rows again, 4 x 8 accumulators per thread. With 8 x 8 accumulators warps have 32
/// rows, and skip less.
using Medium = AsyncRows<ThreadTile<64, 64, 32, 4, 8, 4>, 2>;
/// 16 rows, or 32 where there are enough of them to skip few taps less.
using Narrow = AsyncRows<ThreadTile<64, 32, 32, 4, 4, 4>, 2>;
using NarrowTall = AsyncRows<ThreadTile<128, 32, 32, 8, 4, 4>, 2>;

/// Permutes the lanes of a ThreadTile, such that four neighbouring lanes have a square of 2 x 2 of
/// its positions instead of four in a row:
///
///     lanes 0  1  4  5  8  9 12 13     instead of     lanes 0  1  2  3  4  5  6  7
///           2  3  6  7 10 11 14 15                          8  9 10 11 12 13 14 15
///          16 17 ...                                       16 17 ...
///
/// On an H200, a 16-byte load from shared memory serves 8 lanes per wavefront, but 16 where each
/// lane reads the same address as its neighbour or as the lane after that (measured with a
/// profiler). In a square this holds for rows and for weights.
template <int kLanesN>
__device__ unsigned thread_in_squares(unsigned thread) {
  const unsigned lane = thread % 32, square = lane / 4, squares_n = kLanesN / 2;
  const unsigned m = square / squares_n * 2 + lane / 2 % 2, n = square % squares_n * 2 + lane % 2;
  return thread - lane + m * kLanesN + n;
}

/// Block (Tile::kThreads), any one-dimensional grid: it strides over the tiles in descending order:
/// the largest masks, which mostly have the most taps, are at the end.
/// @param across divides by the tiles along the channels @param tiles all of them
template <class Shape, bool kAligned, int kBlocks>
__global__ void __launch_bounds__(Shape::Tile::kThreads, kBlocks)
    sparse_conv_implicit_gemm_cp_async(HalfOfTaps half, FastDivision across, int tiles) {
  using Tile = typename Shape::Tile;
  constexpr int kStages = Shape::kStages;
  const ImplicitGemm& conv = half.conv;
  let_next_kernel_begin();  // the next kernel waits only before it stores
  const int last = across.quotient(tiles - 1);
  const Tile tile(thread_in_squares<Tile::kLanesN>(threadIdx.x));
  for (std::int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const int place = across.quotient(static_cast<int>(i));
    const std::int64_t number = last - place;
    const int co0 = across.remainder(static_cast<int>(i), place) * Tile::kBlockN;
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    const ListedTaps<Shape> taps(half, number * Tile::kBlockM);
    AsyncCopies<ListedTaps<Shape>, kAligned> copies(conv, taps, co0);
    for (int step = 0; step < kStages - 1; ++step) copies.find_inputs();
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncwarp();  // makes the inputs that one lane has copied visible to the others
    for (int step = 0; step < kStages - 1; ++step) {
      copies.ask_for_next();
      __syncwarp();  // all lanes have read this step's indices; with more than two stages the next
                     // copies may overwrite them with those of a later step
    }

    // Without the pipeline this loop would be
    //
    //     for the listed taps, for chunks of 32 channels:                       (a step)
    //       a_tile[m][k] = features[nbr[tap][row m]][chunk + k], or 0           (rows of a warp)
    //       b_tile[k][n] = weights[tap][chunk + k][co0 + n]
    //       __syncthreads()
    //       for k, i, j: sums[i][j] += a_tile[row i of this thread][k] * b_tile[k][column j]
    for (Step now; now.entry < taps.count(); copies.advance(now)) {
      // After the wait, this thread's copies have landed. The barrier makes those of all threads
      // visible, and separates the loads of the previous step from the copies into its stage.
      ptx::cp_async_wait_group<kStages - 2>();
      __syncthreads();
      copies.ask_for_next();
      if (taps.warp_has(now.entry)) {  // else no row of this warp has the tap
        tile.template multiply_along_k<Shape::kPitchA, Shape::kPitchB>(
            Shape::rows_at(now.stage), Shape::weights_at(now.stage), sums);
      }
    }

    if (conv.add) wait_for_kernel_before();  // the previous kernel stored the values to add to
    tile.for_each_four_along_k(sums, [&](int m, int n, float4 four) {
      const int row = Shape::rows()[m], co = co0 + n;
      if (row >= 0 && co < conv.Cout) store_sums<kAligned>(conv, row, co, four);
    });
    __syncthreads();  // all threads have read rows and list before the next tile overwrites them
  }
}

/// Whether there are so many tiles of 128 rows that the tail of the last wave is negligible.
bool has_many_rows(int M) { return M / 128 >= enough_blocks(2400); }

/// Calls body.operator()<shape, blocks that should be resident on an SM>().
template <class Body>
void with_shape(const SparseConvProblem& conv, const Body& body) {
  if (conv.Cout > Medium::Tile::kBlockN) {
    body.template operator()<Wide, 3>();
  } else if (conv.Cout > Narrow::Tile::kBlockN) {
    body.template operator()<Medium, 4>();
  } else if (!has_many_rows(conv.M)) {
    body.template operator()<Narrow, 6>();
  } else {
    body.template operator()<NarrowTall, 4>();
  }
}

/// The list of a tile's taps is in shared memory, which limits their number; rows, tiles and bytes
/// of a row are counted in 32 bits.
Declined supports(const SparseConvProblem& conv) {
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

/// Whether rows and weights consist of float4, if they begin at multiples of 16 bytes.
bool channels_in_fours(const SparseConvProblem& conv) {
  return conv.Cin % 4 == 0 && conv.Cout % 4 == 0;
}

/// Computes a half. The second launch overlaps the end of the first, and waits only before it adds
/// to y.
void run_half(const SparseConvProblem& conv, const HalfOfTaps& half) {
  const auto at_16 = [](const float* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  const bool aligned = channels_in_fours(conv) && at_16(half.conv.features) &&
                       at_16(half.conv.weights) && at_16(half.conv.y);
  with_shape(conv, [&]<class Shape, int kBlocks>() {
    using Tile = typename Shape::Tile;
    const int across = ceil_div(conv.Cout, Tile::kBlockN);
    const std::int64_t tiles = ceil_div<std::int64_t>(conv.M, Tile::kBlockM) * across;
    const auto kernel = aligned ? sparse_conv_implicit_gemm_cp_async<Shape, true, kBlocks>
                                : sparse_conv_implicit_gemm_cp_async<Shape, false, kBlocks>;
    const LaunchConfig config = {blocks_for(tiles, 1, kMaxBlocks), Tile::kThreads,
                                 Shape::shared_bytes(conv.book.KV)};
    if (half.conv.add) {
      launch_early(kernel, config, half, FastDivision(across), static_cast<int>(tiles));
    } else {
      launch(kernel, config, half, FastDivision(across), static_cast<int>(tiles));
    }
  });
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M], mask [M][words], split_order [2][M],
/// y [M][Cout].
void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  for (int half = 0; half < 2; ++half) run_half(conv, half_of(conv, arrays, half));
}

std::string choice_in_words(const SparseConvProblem& conv) {
  std::string words;
  with_shape(conv, [&]<class Shape, int kBlocks>() {
    words = text(Shape::Tile::kBlockM, " x ", Shape::Tile::kBlockN,
                 channels_in_fours(conv) ? ", channels in fours" : "");
  });
  return words;
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm_cp_async = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
