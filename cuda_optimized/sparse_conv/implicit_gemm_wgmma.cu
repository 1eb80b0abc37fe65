/// @file implicit_gemm_wgmma.cu
/// @brief sparse_conv: wgmma on gathered rows; cp.async writes them to shared memory in swizzled
/// order.
///
/// - Before: implicit_gemm_mma.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** Tiles, tap lists and rings are those of implicit_gemm_mma.cu. A warpgroup executes
/// one `wgmma` per 32 bytes of depth, instead of 4 ldmatrix and 8 mma.sync per warp.
///
///     cp.async, row by row            stage                 two warpgroups
///     features[nbr[tap][row]]  ->  a [128][64]  128 bytes   d [64][Cout] += a [64][64] * b
///     weights of the tap       ->  b [Cout][64]   a row     d [64][Cout] += a [64][64] * b
///
/// Threads copy gathered rows with cp.async and apply TMA's 128-byte swizzle themselves.
/// fence.proxy.async makes these writes visible to wgmma, which reads through the async proxy. Both
/// operands must be contiguous along k: one kernel transposes the weights. wgmma truncates float32
/// to TF32: another kernel rounds all features first.
///
/// **Expect.** As many bytes from L2 as implicit_gemm_mma, and a third of its instructions.
/// Predicted on an H200 in float16: 70 us for sweep-64-subm3, 160 us for sweep-128-subm3.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect loads_per_output.workspace (3838 + 98 * 32) * 8 / 16384 = 3.4053, 98 taps of tiles
/// @expect loads_per_output.weights 27 * 32 * 32 / 16384 = 1.6875, transposed once
/// @expect loads_per_output.features 1, rounded once
/// @expect launches 3
/// **Costs.** All 128 rows of a tile are multiplied if any of them needs the tap. Stages are 128
/// bytes deep: with 32 fp16 channels, half of each is zeros. Needs workspace. Not supported:
/// precision fp32, GPUs other than sm_90a, over 1024 taps.
/// **Try.** Leave out fence.proxy.async. Does a test notice, on the emulator or on a GPU?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/sparse_conv/shared/gathered_rows.cuh"
#include "cuda_optimized/sparse_conv/shared/gathered_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kStages = 3;           ///< Number of stages in shared memory.
constexpr int kAhead = kStages - 1;  ///< Steps whose rows are in flight.
/// Indices have a separate ring, which is kAhead steps ahead of the rows.
constexpr int kIndexStages = 2 * kAhead;
constexpr int kCopyThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< elements.

/// The sizes of a kernel: two warpgroups, of kWarpgroupRows rows each, have all its channels.
struct TileSizes {
  int channels;        ///< Size of a block's tile.
  bool pieces = true;  ///< Rows are aligned to 16 bytes and multiples of 16 bytes long.
};
constexpr TileSizes kElements = {.channels = 64, .pieces = false};
constexpr TileSizes kNarrow = {.channels = 64};
constexpr TileSizes kLarge = {.channels = 128};

/// The constants that follow from these sizes for a type.
template <class T, TileSizes kSizes>
struct WgmmaShape {
  using Number = T;  ///< Type of features, weights and result.
  static constexpr int M = 2 * kWarpgroupRows, N = kSizes.channels;  ///< Size of a block's tile.
  static constexpr int kThreads = 256;                               ///< Per block.
  static constexpr int kBlocks = 2;                          ///< Blocks that should be resident
                                                             ///< on an SM.
  static constexpr bool kPieces = kSizes.pieces;             ///< Whether cp.async can copy.
  static constexpr int kTaps = 1;                            ///< Per stage.
  static constexpr int kSize = static_cast<int>(sizeof(T));  ///< Bytes of an element.
  static constexpr int kRowBytes = 128;             ///< Of a row in a stage, as wgmma takes them.
  static constexpr int kDepth = kRowBytes / kSize;  ///< Products of a step.
  static constexpr int kTapDepth = kDepth;          ///< Products of one tap.
  static constexpr int kBytesA = M * kRowBytes;     ///< Of a stage's rows [M][kDepth].
  static constexpr int kBytesB = N * kRowBytes;     ///< Of its weights [N][kDepth].
  static constexpr int kStageBytes = kBytesA + kBytesB;  ///< Rows, followed by weights.
  static_assert(kBytesA % kSwizzleAtom == 0 && kBytesB % kSwizzleAtom == 0);
  /// Shared memory of a block: stages, which begin at a multiple of kSwizzleAtom, indices, and the
  /// list of taps.
  static std::size_t shared_bytes(int taps) {
    return kSwizzleAtom + kStages * kStageBytes + sizeof(std::int32_t) * kIndexStages * kTaps * M +
           TapList<WgmmaShape>::bytes(taps);
  }
};

/// Starts the copies of a step's weights of channels n0 and up; zeros past the last channels.
/// @param stage shared memory [Shape::N], rows of Shape::kRowBytes
template <class Shape>
__device__ void ask_for_weights(const GatheredRows<typename Shape::Number>& conv,
                                const TapList<Shape>& list, int step, int n0, char* stage) {
  using T = typename Shape::Number;
  constexpr int kPieces = Shape::kRowBytes / kPiece, kRows = Shape::kThreads / kPieces;
  static_assert(Shape::N % kRows == 0 && kRows % 8 == 0, "the permutation must repeat");
  const int entry = list.entry(step), s0 = list.channel(step);
  const int thread = static_cast<int>(threadIdx.x);
  const int piece = thread % kPieces, row = thread / kPieces;
  const int s = s0 + piece * (kPiece / Shape::kSize), left = conv.summed - s;
  char* const b = stage + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;
  const T* const from =
      conv.weights + (std::int64_t{list.tap(entry)} * conv.channels + n0 + row) * conv.summed + s;
  const int rows = conv.channels - n0 - row;
#pragma unroll
  for (int i = 0; i < Shape::N; i += kRows) {
    copy_piece<Shape::kPieces>(b + i * Shape::kRowBytes, from + std::int64_t{i} * conv.summed,
                               i < rows ? left : 0);
  }
}

/// Block Shape::kThreads; grid: all tiles, those of the same rows are consecutive.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    sparse_conv_implicit_gemm_wgmma(GatheredRows<typename Shape::Number> conv,
                                    FastDivision by_chunks, unsigned tiles_n) {
  char* stages = dynamic_shared<char>();
  stages += (kSwizzleAtom - ptx::shared_address(stages) % kSwizzleAtom) % kSwizzleAtom;
  auto* const indices = reinterpret_cast<std::int32_t*>(stages + kStages * Shape::kStageBytes);
  const auto indices_at = [=](int place) { return indices + place * Shape::kTaps * Shape::M; };
  const auto stage_at = [=](int place) { return stages + place * Shape::kStageBytes; };
  // The last rows of the order have the most taps: their tiles start first.
  const unsigned last = gridDim.x / tiles_n - 1;
  const std::int64_t m0 = std::int64_t{last - blockIdx.x / tiles_n} * Shape::M;
  const int n0 = static_cast<int>(blockIdx.x % tiles_n) * Shape::N;
  TapList<Shape> list(conv, by_chunks, m0, indices_at(kIndexStages));
  list.find(reinterpret_cast<std::uint32_t*>(stages));  // not yet in use as stages

  const int group = static_cast<int>(threadIdx.x) / 128, warp = static_cast<int>(threadIdx.x) / 32;
  WarpgroupSums<typename Shape::Number, Shape::N> sums;

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
  // Positions in the two rings are counted, which is cheaper than a remainder.
  int read = 0, write = kAhead, known = kAhead, asked = 0;
#pragma unroll 1
  for (int step = 0; step < list.steps(); ++step) {
    ptx::cp_async_wait_group<kAhead - 1>();
    ptx::fence_proxy_async();  // cp.async writes through the generic proxy, wgmma reads through the
                               // async proxy
    // Makes the copies of all threads visible to all: this step's rows and weights, and the indices
    // of the rows to copy next. Separates the loads of the previous step from the copies that
    // overwrite its stage.
    __syncthreads();
    const char* const a = stage_at(read);
    const std::uint64_t left = ptx::wgmma_descriptor(a + group * kWarpgroupRows * Shape::kRowBytes);
    const std::uint64_t right = ptx::wgmma_descriptor(a + Shape::kBytesA);
    ptx::wgmma_fence();
#pragma unroll
    for (int deep = 0; deep < Shape::kRowBytes; deep += kDeep) {
      // Descriptors count in units of 16 bytes.
      const auto next = static_cast<std::uint64_t>(deep / 16);
      sums.add(left + next, right + next);
    }
    ptx::wgmma_commit_group();
    ask_for_step(step + kAhead, write, known, asked);  // while the wgmmas execute
    ptx::wgmma_wait_group<0>();
    read = read + 1 == kStages ? 0 : read + 1;
    write = write + 1 == kStages ? 0 : write + 1;
    known = known + 1 == kIndexStages ? 0 : known + 1;
    asked = asked + 1 == kIndexStages ? 0 : asked + 1;
  }
  store_rows(conv, list, sums, n0, 16 * warp, 0);
}

/// Rounds elements [count]. Any one-dimensional grid.
__global__ void sparse_conv_implicit_gemm_wgmma_round_numbers(std::int64_t count, const float* from,
                                                              float* to) {
  for (const std::int64_t i : grid_stride(count)) to[i] = as_factor(from[i]);
}

/// to [taps][channels][summed] from weights [taps][summed][channels]. Any one-dimensional grid.
template <class T>
__global__ void sparse_conv_implicit_gemm_wgmma_transpose_weights(std::int64_t count, int summed,
                                                                  int channels, const T* weights,
                                                                  T* to) {
  for (const std::int64_t i : grid_stride(count)) {
    const std::int64_t row = i / summed, s = i % summed, tap = row / channels, c = row % channels;
    to[i] = as_factor(weights[(tap * summed + s) * channels + c]);
  }
}

std::int64_t weights_of(const SparseConvProblem& conv) {
  return std::int64_t{conv.book.KV} * conv.Cin * conv.Cout;
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  return why_not("sm_90a");
}

/// Layout of the workspace, in order of addresses.
template <class T>
struct Workspace {
  T* transposed;      ///< Weights.
  T* rounded;         ///< Features; of float32 alone.
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
template <class T>
Workspace<T> workspace_at(const SparseConvProblem& conv, std::byte* begin) {
  Workspace<T> work{};
  WorkspaceCutter cutter(begin);
  work.transposed = cutter.take<T>(weights_of(conv));
  if (conv.dtype == DType::f32) work.rounded = cutter.take<T>(std::int64_t{conv.N} * conv.Cin);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  return with_float_type(conv.dtype,
                         [&]<class T>(T) { return workspace_at<T>(conv, nullptr).bytes; });
}

/// Calls body(shape) with the tile that suits a problem.
/// @param pieces whether rows consist of pieces
template <class T, class Body>
void with_shape(const SparseConvProblem& conv, bool pieces, const Body& body) {
  if (!pieces) {
    body(WgmmaShape<T, kElements>{});
  } else if (conv.Cout <= 64) {
    body(WgmmaShape<T, kNarrow>{});
  } else {
    body(WgmmaShape<T, kLarge>{});
  }
}

template <class Shape>
void launch_shape(const GatheredRows<typename Shape::Number>& conv) {
  const std::int64_t tiles_m = ceil_div<std::int64_t>(conv.rows, Shape::M);
  const auto tiles_n = static_cast<unsigned>(ceil_div(conv.channels, Shape::N));
  launch(sparse_conv_implicit_gemm_wgmma<Shape>,
         {blocks_for(tiles_m * tiles_n, 1), static_cast<unsigned>(Shape::kThreads),
          Shape::shared_bytes(conv.taps)},
         conv, FastDivision(ceil_div(conv.summed, Shape::kDepth)), tiles_n);
}

template <class T>
void run_as(const SparseConvProblem& problem, const SparseConvArrays& arrays,
            const Context& context) {
  const Workspace<T> work = workspace_at<T>(problem, context.workspace_as<std::byte>());
  launch(sparse_conv_implicit_gemm_wgmma_transpose_weights<T>,
         {blocks_for(weights_of(problem), kCopyThreads, kMaxBlocks), kCopyThreads},
         weights_of(problem), problem.Cin, problem.Cout, arrays.weights, work.transposed);
  GatheredRows<T> conv = gathered_rows<T>(problem, arrays);
  conv.weights = work.transposed;
  if constexpr (std::is_same_v<T, float>) {
    const std::int64_t count = std::int64_t{problem.N} * problem.Cin;
    launch(sparse_conv_implicit_gemm_wgmma_round_numbers,
           {blocks_for(count, kCopyThreads, kMaxBlocks), kCopyThreads}, count, conv.from,
           work.rounded);
    conv.from = work.rounded;
  }
  with_shape<T>(problem, consists_of_pieces(conv),
                [&]<class Shape>(Shape) { launch_shape<Shape>(conv); });
}

void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context& context) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays, context); });
}

template <class T>
std::string words_as(const SparseConvProblem& conv) {
  std::string words;
  with_shape<T>(conv, would_consist_of_pieces<T>(conv.Cin, conv.Cout), [&]<class Shape>(Shape) {
    words = text(dtype_name(conv), ", ", Shape::M, " x ", Shape::N,
                 Shape::kPieces ? ", in pieces" : "");
  });
  return words;
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return with_float_type(conv.dtype, [&]<class T>(T) { return words_as<T>(conv); });
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm_wgmma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
