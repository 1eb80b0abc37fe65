/// @file implicit_gemm_mma.cu
/// @brief sparse_dgrad: tensor cores; mma.sync in TF32, fp16 and bf16, without transposing weights.
///
/// - Before: implicit_gemm.cu
/// - After: implicit_gemm_warp_specialized.cu
/// - The same maths: cpu_reference/sparse_dgrad/gather_gemm_scatter.cpp
///
/// **The idea.** The tiles of implicit_gemm, multiplied by mma.sync, which reads 32 bytes of both
/// operands with k contiguous. Here k is co. A row of dy has its co contiguous, and so has a row
/// [ci] of W_k. The forward pass must transpose its weights; W_k^T in the "col" layout of mma.sync
/// is W_k as stored. All copies are asynchronous, in units of 16 bytes:
///
///     dy         row of the tile [co ...]  - 128 bytes ->  a  [row][co]   ldmatrix
///     weights    W_k, row ci     [co ...]  - 128 bytes ->  b  [ci][co]    ldmatrix
///
/// A warp computes 32 rows and skips the taps that none of them has. One launch executes all taps,
/// in the order of whole masks. Two halves would save a third of the taps of a tile, but tensor
/// cores make these cheaper than a second launch and a second pass over dx.
///
/// **Expect.** sweep-64-subm3 on an H200: the rows of dy are read 6.9 times from L2 (111 MB in
/// fp16), and W_k once per tile and tap (13.5 taps a tile, 8 KB each: 108 MB). At 5 TB/s that is 44
/// us in fp16 and 88 us in TF32; the MMAs take a third of it. Predicted: 90 and 165 us, about twice
/// that, because a block finds its rows and taps before its first copies.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect loads_per_output.dy 3838 * 8 / 16384 = 1.8740, a load for each pair, in vectors
/// @expect loads_per_output.weights 373 * 32 * 8 / 16384 = 5.828, 373 taps of 32 rows
/// @expect bytes_per_lane.weights.async 16
/// **Costs.** Not supported: GPUs before sm_80; float32 with precision fp32.
/// **Try.** Which operand must `sparse_conv` transpose, and which instruction does it for fp16?
#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_dgrad/shared/mma_rows.cuh"
#include "cuda_optimized/sparse_dgrad/shared/tile_taps.cuh"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

using sparse_wgrad::copy_piece;

/// A block's tile of dx, and how it is staged.
struct TileSizes {
  int rows, channels;   ///< Of dx.
  int row_bytes = 128;  ///< Of co that are staged at a time: 64 or 128.
  int stages = 3;       ///< Number of stages in shared memory.
  int blocks;           ///< Blocks that should be resident on an SM.
};

/// What follows from them; a warp computes 32 rows.
template <TileSizes kSizes>
struct Shape {
  static constexpr int kM = kSizes.rows, kN = kSizes.channels;
  static constexpr int kBytes = kSizes.row_bytes, kStages = kSizes.stages;
  static constexpr int kWarpM = 32, kWarpN = kN < 64 ? kN : 64;
  static constexpr int kWarpsN = kN / kWarpN;
  static constexpr int kThreads = kM / kWarpM * kWarpsN * 32;
  static constexpr int kBlocks = kSizes.blocks;  ///< blocks that should be resident on an SM
};

using Wide = Shape<TileSizes{.rows = 128, .channels = 128, .blocks = 2}>;
using Medium = Shape<TileSizes{.rows = 128, .channels = 64, .blocks = 2}>;
using Narrow =
    Shape<TileSizes{.rows = 128, .channels = 32, .row_bytes = 64, .stages = 4, .blocks = 3}>;
using Small = Shape<TileSizes{.rows = 32, .channels = 32, .row_bytes = 64, .blocks = 8}>;
constexpr std::int64_t kEnoughTiles = 64;  ///< Number of tiles of 128 rows below which smaller
                                           ///< tiles are used.

/// The parameters of the kernel.
template <class T>
struct Gradient {
  int KV, rows, Cin, Cout;
  const std::int32_t *table, *mask, *order;  ///< nbr_back, mask_back, order_back
  const T *dy, *weights;
  T* dx;
};

/// What a block has in shared memory.
template <class T, class S>
struct Shared {
  T a[S::kStages][S::kM * Rows<T, S>::kStep];  ///< dy
  T b[S::kStages][S::kN * Rows<T, S>::kStep];  ///< weights
  TileTaps<S::kM, S::kWarpM> taps;             ///< which rows of dy
};

/// Copies the tiles of one step after the other: through all channels of a tap, then the next tap.
template <class T, class S, bool kAligned>
class TapCopies {
 public:
  __device__ TapCopies(const Gradient<T>& gradient, Shared<T, S>& shared, int word, unsigned taps,
                       int ci0)
      : gradient_(gradient), shared_(shared), left_(taps), word_(word), ci0_(ci0) {}

  /// Starts the copies of the next step's tiles, if there is one, and commits the group.
  __device__ void ask_for_next() {
    if (left_ != 0) {
      const int co = co0_ + piece() * R::kNumbers, Cout = gradient_.Cout;
      const int count = Cout - co;
#pragma unroll
      for (int i = 0; i < S::kM; i += kRowsAtOnce) {
        const int from = shared_.taps.met[ordinal_][first_row() + i];
        const bool exists = count > 0 && from >= 0;
        copy_piece<T, kAligned>(&shared_.a[stage_][R::at(first_row() + i, piece())],
                                gradient_.dy + (exists ? std::int64_t{from} * Cout + co : 0),
                                exists ? count : 0);
      }
      const int k = 32 * word_ + __ffs(static_cast<int>(left_)) - 1;
      const std::int64_t tap = std::int64_t{k} * gradient_.Cin;
#pragma unroll
      for (int i = 0; i < S::kN; i += kRowsAtOnce) {
        const int ci = ci0_ + first_row() + i;
        const bool exists = count > 0 && ci < gradient_.Cin;
        copy_piece<T, kAligned>(&shared_.b[stage_][R::at(first_row() + i, piece())],
                                gradient_.weights + (exists ? (tap + ci) * Cout + co : 0),
                                exists ? count : 0);
      }
      co0_ += R::kStep;
      if (co0_ >= Cout) {
        co0_ = 0;
        left_ &= left_ - 1;
        ++ordinal_;
      }
      stage_ = stage_ + 1 == S::kStages ? 0 : stage_ + 1;
    }
    ptx::cp_async_commit_group();  // committed even without copies, since the waits count groups
  }

 private:
  using R = Rows<T, S>;
  static constexpr int kRowsAtOnce = S::kThreads / R::kPieces;  // that a block copies
  static_assert(S::kM % kRowsAtOnce == 0 && S::kN % kRowsAtOnce == 0);

  __device__ static int piece() { return static_cast<int>(threadIdx.x) % R::kPieces; }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / R::kPieces; }

  const Gradient<T>& gradient_;
  Shared<T, S>& shared_;
  unsigned left_;  // taps whose copies have not all been started
  int word_, ci0_;
  int co0_ = 0, ordinal_ = 0, stage_ = 0;  // of the next step
};

/// Grid (tiles of rows or fewer, tiles of channels), block (S::kThreads).
/// @tparam kAligned rows of dy, weights and dx begin at multiples of 16 bytes
template <class T, class S, bool kAligned>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    sparse_dgrad_implicit_gemm_mma(Gradient<T> gradient) {
  auto& shared = *dynamic_shared<Shared<T, S>>();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int group = warp / S::kWarpsN, n0 = warp % S::kWarpsN * S::kWarpN;
  const int ci0 = static_cast<int>(blockIdx.y) * S::kN;
  const int steps_of_tap = ceil_div(gradient.Cout, Rows<T, S>::kStep);

  const int tiles = ceil_div(gradient.rows, S::kM);
  for (int index = static_cast<int>(blockIdx.x); index < tiles;
       index += static_cast<int>(gridDim.x)) {
    // The last rows have the largest masks and mostly the most taps. Their tiles start first, so
    // that no long tile runs alone at the end.
    const std::int64_t first = std::int64_t{tiles - 1 - index} * S::kM;
    __syncthreads();  // all threads have finished with the rows of the previous tile
    shared.taps.choose_rows(gradient.order, first, gradient.rows);
    float sums[2][S::kWarpN / 8][4] = {};
    const int words = mask_words(gradient.KV);
    for (int word = 0; word < words; ++word) {
      const unsigned taps =
          shared.taps.find(gradient.table, gradient.mask, words, word, ~0u, gradient.rows);
      const unsigned mine = shared.taps.groups[group];
      // Without the pipeline:
      //
      //     for the taps k of the word, for chunks of channels:
      //       a[m] = dy[table[k][row m]][chunk], or 0;   b[n] = W_k[ci0 + n][chunk];
      //       __syncthreads() for 32 bytes along co:  fragments of a and b, mma.sync into the
      //       accumulators
      TapCopies<T, S, kAligned> copies(gradient, shared, word, taps, ci0);
      for (int stage = 0; stage < S::kStages - 1; ++stage) copies.ask_for_next();
      int stage = 0;
      for (unsigned left = taps; left != 0; left &= left - 1) {
        const bool skipped = (mine & left & (~left + 1)) == 0;  // no row of this warp has the tap
        for (int step = 0; step < steps_of_tap; ++step) {
          ptx::cp_async_wait_group<S::kStages - 2>();
          // This thread's copies of the step have landed. The barrier makes those of all threads
          // visible, and separates the loads of the previous step from the copies into its stage.
          __syncthreads();
          copies.ask_for_next();
          if (!skipped) {
            multiply<T, S>(shared.a[stage], shared.b[stage], group * S::kWarpM, n0, sums);
          }
          stage = stage + 1 == S::kStages ? 0 : stage + 1;
        }
      }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = shared.taps.row[group * S::kWarpM + 8 * i + lane / 4];
      if (row < 0) continue;
#pragma unroll
      for (int j = 0; j < S::kWarpN / 8; ++j) {
        const int ci = ci0 + n0 + 8 * j + lane % 4 * 2;
        if (ci >= gradient.Cin) break;
        const std::int64_t at = std::int64_t{row} * gradient.Cin + ci;
        store_two<T, kAligned>(gradient.dx + at, sums[i / 2][j][i % 2 * 2],
                               sums[i / 2][j][i % 2 * 2 + 1], gradient.Cin - ci);
      }
    }
  }
}

template <class T, class S, bool kAligned>
void launch_with(const Gradient<T>& gradient) {
  launch(sparse_dgrad_implicit_gemm_mma<T, S, kAligned>,
         {dim3(blocks_for(gradient.rows, S::kM, kMaxGridYZ),
               static_cast<unsigned>(ceil_div(gradient.Cin, S::kN))),
          dim3(S::kThreads), sizeof(Shared<T, S>)},
         gradient);
}

template <class T>
bool rows_are_aligned(const Gradient<T>& gradient) {
  const auto address = reinterpret_cast<std::uintptr_t>(gradient.dy) |
                       reinterpret_cast<std::uintptr_t>(gradient.weights) |
                       reinterpret_cast<std::uintptr_t>(gradient.dx);
  return (gradient.Cin | gradient.Cout) * sizeof(T) % 16 == 0 && address % 16 == 0;
}

/// Calls body.operator()<shape, aligned>() for the shape that suits the problem.
template <class T, class Body>
void with_shape(bool aligned, const SparseConvProblem& conv, const Body& body) {
  const std::int64_t enough = enough_blocks(kEnoughTiles);
  if (!aligned) {
    body.template operator()<Small, false>();
  } else if (ceil_div(conv.N, Medium::kM) < enough) {
    body.template operator()<Small, true>();
  } else if (conv.Cin <= 32) {
    body.template operator()<Narrow, true>();
  } else if (conv.Cin <= 64 || max_shared_bytes() < sizeof(Shared<T, Wide>)) {
    body.template operator()<Medium, true>();
  } else {
    body.template operator()<Wide, true>();
  }
}

/// dy [M][Cout], weights [KV][Cin][Cout], nbr_back [KV][N] with masks and order, dx [N][Cin].
template <class T>
void run_in(const SparseConvProblem& conv, const SparseDgradArrays& arrays) {
  const Gradient<T> gradient = {.KV = conv.book.KV,
                                .rows = conv.N,
                                .Cin = conv.Cin,
                                .Cout = conv.Cout,
                                .table = arrays.nbr_back,
                                .mask = arrays.mask_back,
                                .order = arrays.order_back,
                                .dy = arrays.dy,
                                .weights = arrays.weights,
                                .dx = arrays.dx};
  with_shape<T>(rows_are_aligned(gradient), conv,
                [&]<class S, bool kAligned>() { launch_with<T, S, kAligned>(gradient); });
}

template <class T>
std::string words_in(const SparseConvProblem& conv) {
  Gradient<T> gradient{};  // null arrays count as aligned
  gradient.Cin = conv.Cin;
  gradient.Cout = conv.Cout;
  std::string words;
  with_shape<T>(rows_are_aligned(gradient), conv, [&]<class S, bool kAligned>() {
    words = text(dtype_name(conv), ", ", S::kM, " x ", S::kN, kAligned ? ", in pieces" : "");
  });
  return words;
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = why_not("sm_80")) return why;
  if (conv.dtype == DType::f32 && conv.precision == Precision::fp32) {
    return "float32 with precision fp32: tensor cores round to TF32";
  }
  if (conv.Cin > kMaxGridYZ * Small::kN) return "more than 2097120 input channels";
  return {};
}

void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context&) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_in<T>(conv, arrays); });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return with_float_type(conv.dtype, [&]<class T>(T) { return words_in<T>(conv); });
}

}  // namespace

extern const Implementation<SparseDgradArrays> implicit_gemm_mma = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
