/// @file implicit_gemm_mma.cu
/// @brief sparse_conv: tensor cores; mma.sync on gathered tiles of mask-sorted rows.
///
/// - Before: implicit_gemm_cp_async.cu
/// - After: implicit_gemm_warp_specialized.cu, implicit_gemm_direct_fragments.cu,
///   implicit_gemm_wgmma.cu
/// - The tile: shared/gathered_tiles.cuh; the accumulators: shared/warp_accumulators.cuh
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** At one tap, 128 output rows are a GEMM whose operand A is gathered on its way to
/// shared memory. `cp.async` copies 16 bytes from any address, and writes zeros for a missing row.
///
///     order -> rows of the tile     nbr[tap][row]          features       stage (shared memory)
///       0      row 17                  40          ---->   row 40    ->   | row 40 | W[tap]    |
///       1      row 90                  -1          ---->   no copy   ->   | zeros  | 32 chan-  |
///       2      row  3                   8          ---->   row  8    ->   | row  8 | nels deep |
///
/// A block lists the taps of its mask-sorted rows, and for each tap the warps, of 32 rows each,
/// that have it; the other warps skip it. FP32 operands are rounded to TF32 in registers.
///
/// **Expect.** sweep-64-subm3 has 7.1 GFLOP in its pairs; warps of 32 rows execute 1.6 times that.
/// In TF32 440 MB come from L2, in FP16 half of that. Predicted on an H200 for sweep-32-subm3,
/// sweep-64-subm3 and sweep-128-subm3: TF32 55, 110 and 300 us, FP16 38, 60 and 150 us.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect loads_per_output.features 3838 * 8 / 16384 = 1.8740, a load for each pair, in vectors
/// @expect loads_per_output.weights 373 * 32 * 8 / 16384 = 5.828, 373 taps of 32 rows
/// @expect bytes_per_lane.features.async 16
/// @expect excess.shared.load 0, of ldmatrix
/// **Costs.** 13 to 99 KB of shared memory. Not supported: precision fp32, more than 1024 taps.
/// **Try.** Take the rows in site order (TapList::find()). How many taps has a tile?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_tiles.cuh"
#include "cuda_optimized/sparse_conv/shared/warp_accumulators.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kStages = 3;           ///< Number of stages in shared memory.
constexpr int kAhead = kStages - 1;  ///< Steps whose rows are in flight.
/// Indices have a separate ring, which is kAhead steps ahead of the rows.
constexpr int kIndexStages = 2 * kAhead;

/// The sizes of a kernel.
struct TileSizes {
  int rows, channels;      ///< Size of a block's tile.
  int blocks;              ///< Blocks that should be resident on an SM.
  int warp_channels = 32;  ///< Of a warp, which has kWarpRows of the rows.
  int row_bytes = 128;     ///< Of a gathered row in a stage.
  int taps = 1;            ///< Per stage, contiguous in its rows; above 1 only for problems with no
                           ///< more input channels than one tap has room for.
  bool pieces = true;      ///< Rows are aligned to 16 bytes and multiples of 16 bytes long.
};
constexpr TileSizes kElements = {
    .rows = 32, .channels = 32, .blocks = 4, .row_bytes = 64, .pieces = false};
constexpr TileSizes kSmall = {.rows = 32, .channels = 32, .blocks = 8, .row_bytes = 64};
/// Up to 32 channels.
template <class T, int kTaps>
constexpr TileSizes kNarrow = {
    .rows = 128, .channels = 32, .blocks = 4, .row_bytes = 32 * int{sizeof(T)}, .taps = kTaps};
/// Up to 64: cvt needs many registers for floats; with 16-bit types, more warps hide more latency.
template <class T>
constexpr TileSizes kMiddle = {.rows = 128, .channels = 64, .blocks = 2};
template <>
constexpr TileSizes kMiddle<float> = {
    .rows = 128, .channels = 64, .blocks = 3, .warp_channels = 64};
constexpr TileSizes kFewTiles = {.rows = 64, .channels = 64, .blocks = 3};
constexpr TileSizes kLarge = {.rows = 128, .channels = 128, .blocks = 2, .warp_channels = 64};

/// The constants that follow from these sizes for a type.
template <class T, TileSizes kSizes>
struct MmaShape {
  using Number = T;                                              ///< Type of features, weights and
                                                                 ///< result.
  static constexpr int M = kSizes.rows, N = kSizes.channels;     ///< Size of a block's tile.
  static constexpr int kWarpN = kSizes.warp_channels;            ///< Channels of a warp.
  static constexpr int kWarpsN = N / kWarpN;                     ///< Warps along the channels.
  static constexpr int kThreads = M / kWarpRows * kWarpsN * 32;  ///< Per block.
  static constexpr int kBlocks = kSizes.blocks;                  ///< Blocks that should be resident
                                                                 ///< on an SM.
  static constexpr bool kPieces = kSizes.pieces;                 ///< Whether cp.async can copy.
  static constexpr int kTaps = kSizes.taps;                      ///< Per stage.
  static constexpr int kSize = static_cast<int>(sizeof(T));      ///< Bytes of an element.
  static constexpr int kRowBytes = kSizes.row_bytes;             ///< Of a gathered row in a stage.
  static constexpr int kDepth = kRowBytes / kSize;               ///< Products of a step.
  static constexpr int kTapBytes = kRowBytes / kTaps;            ///< Of a gathered row of one tap.
  static constexpr int kTapDepth = kDepth / kTaps;               ///< Products of one tap.
  static constexpr int kWeightBytes = N * kSize;         ///< Of a row of weights in a stage.
  static constexpr int kBytesA = M * kRowBytes;          ///< Of a stage's rows [M][kDepth].
  static constexpr int kBytesB = kDepth * kWeightBytes;  ///< Of its weights [kDepth][N].
  static constexpr int kStageBytes = kBytesA + kBytesB;  ///< Rows, followed by weights.
  /// Shared memory of a block: stages, indices, and the list of taps.
  static std::size_t shared_bytes(int taps) {
    return kStages * kStageBytes + sizeof(std::int32_t) * kIndexStages * kTaps * M +
           TapList<MmaShape>::bytes(taps);
  }
};

/// Starts the copies of a step's weights from channel n0 on; zeros past the last channels.
/// @param stage shared memory [Shape::kDepth], rows of Shape::kWeightBytes
template <class Shape>
__device__ void ask_for_weights(const GatheredRows<typename Shape::Number>& conv,
                                const TapList<Shape>& list, int step, int n0, char* stage) {
  using T = typename Shape::Number;
  constexpr int kPieces = Shape::kWeightBytes / kPiece, kRows = Shape::kThreads / kPieces;
  static_assert(Shape::kDepth % kRows == 0 && kRows % (std::is_same_v<T, float> ? 4 : 8) == 0,
                "the permutation must repeat");
  const int entry = list.entry(step), s0 = list.channel(step);
  const int thread = static_cast<int>(threadIdx.x);
  const int piece = thread % kPieces, row = thread / kPieces;
  const int channel = n0 + piece * (kPiece / Shape::kSize), left = conv.channels - channel;
  char* const b = stage + place_of_weights<T, Shape::kWeightBytes>(row, piece);
  if constexpr (Shape::kTaps == 1) {
    const T* const from = conv.weights +
                          (std::int64_t{list.tap(entry)} * conv.summed + s0 + row) * conv.channels +
                          channel;
    const int rows = conv.summed - s0 - row;
#pragma unroll
    for (int i = 0; i < Shape::kDepth; i += kRows) {
      copy_piece<Shape::kPieces>(b + i * Shape::kWeightBytes,
                                 from + std::int64_t{i} * conv.channels, i < rows ? left : 0);
    }
  } else {
#pragma unroll
    for (int i = 0; i < Shape::kDepth; i += kRows) {
      const int t = (row + i) / Shape::kTapDepth, s = (row + i) % Shape::kTapDepth;
      const bool there = list.exists(entry + t) && s < conv.summed && left > 0;
      const std::int64_t k =
          there ? std::int64_t{list.tap(entry + t)} * conv.summed + s : std::int64_t{0};
      copy_piece<Shape::kPieces>(b + i * Shape::kWeightBytes,
                                 conv.weights + (there ? k * conv.channels + channel : 0),
                                 there ? left : 0);
    }
  }
}

/// Block Shape::kThreads; grid: all tiles, those of the same rows are consecutive.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    sparse_conv_implicit_gemm_mma(GatheredRows<typename Shape::Number> conv, FastDivision by_chunks,
                                  unsigned tiles_n) {
  char* const stages = dynamic_shared<char>();
  auto* const indices = reinterpret_cast<std::int32_t*>(stages + kStages * Shape::kStageBytes);
  const auto indices_at = [=](int place) { return indices + place * Shape::kTaps * Shape::M; };
  const auto stage_at = [=](int place) { return stages + place * Shape::kStageBytes; };
  // The last rows of the order have the most taps: their tiles start first.
  const unsigned last = gridDim.x / tiles_n - 1;
  const std::int64_t m0 = std::int64_t{last - blockIdx.x / tiles_n} * Shape::M;
  const int n0 = static_cast<int>(blockIdx.x % tiles_n) * Shape::N;
  TapList<Shape> list(conv, by_chunks, m0, indices_at(kIndexStages));
  list.find(reinterpret_cast<std::uint32_t*>(stages));  // not yet in use as stages

  const int warp = static_cast<int>(threadIdx.x) / 32, part = warp / Shape::kWarpsN;
  const int warp_row = part * kWarpRows, warp_channel = warp % Shape::kWarpsN * Shape::kWarpN;
  using Sums = WarpSums<typename Shape::Number, Shape::kWarpN>;
  Sums sums;
  const int left_at = warp_row * Shape::kRowBytes + Sums::template first_left<Shape::kRowBytes>();
  const int right_at = Sums::template first_right<Shape::kWeightBytes>(warp_channel);

  // Starts the copies of a step's rows and weights, and of the indices of a later one.
  const auto ask_for_step = [&](int step, int place, int known, int asked) {
    if (step < list.steps()) {
      ask_for_rows(conv, list, step, indices_at(known), stage_at(place));
      ask_for_weights(conv, list, step, n0, stage_at(place) + Shape::kBytesA);
    }
    if (step + kAhead < list.steps()) {
      ask_for_indices(conv, list, step + kAhead, indices_at(asked));
    }
    ptx::cp_async_commit_group();  // committed even without copies, since the waits count groups
  };
#pragma unroll 1
  for (int step = 0; step < kAhead && step < list.steps(); ++step) {
    ask_for_indices(conv, list, step, indices_at(step));
  }
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  __syncthreads();  // makes the first indices of all threads visible to all
#pragma unroll 1
  for (int step = 0; step < kAhead; ++step) ask_for_step(step, step, step, step + kAhead);
  // Without the two rings the loop would be
  //
  //     for the listed taps, for chunks of channels:                              (a step)
  //       index[m] = nbr[tap][row m]                                              ask_for_indices()
  //       a[m] = index[m] >= 0 ? features[index[m]][chunk] : 0                    ask_for_rows()
  //       b[k] = weights[tap][chunk + k][n0 ...];   __syncthreads()               ask_for_weights()
  //       for 32 bytes along k:  fragments of a and b, mma.sync, accumulate         sums.add()
  //
  // Positions in the two rings are counted, which is cheaper than a remainder.
  int read = 0, write = kAhead, known = kAhead, asked = 0;
#pragma unroll 1
  for (int step = 0; step < list.steps(); ++step) {
    ptx::cp_async_wait_group<kAhead - 1>();
    // Makes the copies of all threads visible to all: this step's rows and weights, and the indices
    // of the rows to copy next. Separates the loads of the previous step from the copies that
    // overwrite its stage.
    __syncthreads();
    ask_for_step(step + kAhead, write, known, asked);
    const char* const a = stage_at(read);
    const int bytes = list.bytes_left(step);
#pragma unroll
    for (int t = 0; t < Shape::kTaps; ++t) {
      // A warp whose rows do not have this tap skips it.
      if (!list.meets(step, t, part)) continue;
#pragma unroll
      for (int deep = 0; deep < Shape::kTapBytes; deep += kDeep) {
        if (deep >= bytes) break;
        sums.template add<Shape::kRowBytes, Shape::kWeightBytes>(
            a, left_at, a + Shape::kBytesA, right_at, t * Shape::kTapBytes + deep);
      }
    }
    read = read + 1 == kStages ? 0 : read + 1;
    write = write + 1 == kStages ? 0 : write + 1;
    known = known + 1 == kIndexStages ? 0 : known + 1;
    asked = asked + 1 == kIndexStages ? 0 : asked + 1;
  }
  store_rows(conv, list, sums, n0, warp_row, warp_channel);
}

/// Calls body(shape) with the tile that suits a problem.
/// @param pieces whether rows consist of pieces
template <class T, class Body>
void with_shape(const SparseConvProblem& conv, bool pieces, const Body& body) {
  const bool few_rows = conv.M <= 8 * enough_blocks(128);  // 8 rows for each of 128 SMs
  if (!pieces) {
    body(MmaShape<T, kElements>{});
  } else if (few_rows) {
    body(MmaShape<T, kSmall>{});
  } else if (conv.Cout <= 32 && conv.Cin <= 16) {
    body(MmaShape<T, kNarrow<T, 2>>{});
  } else if (conv.Cout <= 32) {
    body(MmaShape<T, kNarrow<T, 1>>{});
  } else if (conv.Cout <= 64) {
    body(MmaShape<T, kMiddle<T>>{});
  } else if (has_few_tiles(conv.M, conv.Cout)) {
    body(MmaShape<T, kFewTiles>{});
  } else {
    body(MmaShape<T, kLarge>{});
  }
}

template <class T>
Declined supports_as(const SparseConvProblem& conv) {
  // The tile for pieces is the larger one; whether it applies depends on the alignment of the
  // arrays.
  std::size_t bytes = 0;
  with_shape<T>(conv, true, [&]<class Shape>(Shape) { bytes = Shape::shared_bytes(conv.book.KV); });
  return why_no_shared(static_cast<std::int64_t>(bytes));
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (const Declined why = why_not("sm_80")) return why;
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  // fp16 and bf16 have the same tiles.
  return conv.dtype == DType::f32 ? supports_as<float>(conv) : supports_as<Half>(conv);
}

template <class Shape>
void launch_shape(const GatheredRows<typename Shape::Number>& conv) {
  const std::int64_t tiles_m = ceil_div<std::int64_t>(conv.rows, Shape::M);
  const auto tiles_n = static_cast<unsigned>(ceil_div(conv.channels, Shape::N));
  launch(sparse_conv_implicit_gemm_mma<Shape>,
         {blocks_for(tiles_m * tiles_n, 1), static_cast<unsigned>(Shape::kThreads),
          Shape::shared_bytes(conv.taps)},
         conv, FastDivision(ceil_div(conv.summed, Shape::kDepth)), tiles_n);
}

template <class T>
void run_as(const SparseConvProblem& problem, const SparseConvArrays& arrays) {
  const GatheredRows<T> conv = gathered_rows<T>(problem, arrays);
  with_shape<T>(problem, consists_of_pieces(conv),
                [&]<class Shape>(Shape) { launch_shape<Shape>(conv); });
}

void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays); });
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
  return with_float_type(conv.dtype, [&]<class T>(T) { return words_as<T>(conv); });
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm_mma = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
