/// @file fetch_on_demand.cu
/// @brief sparse_conv: fetch-on-demand; gather, GEMM and atomic scatter in one kernel.
///
/// - Before: grouped_gemm.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** A block that computes a tile of a tap's GEMM gathers the rows itself and adds its
/// accumulators to y itself. Neither gathered rows nor products are stored (torchsparse calls this
/// fetch-on-demand). One launch covers all taps. Each tile belongs to one tap and needs the weights
/// of that tap only.
///
///     pairs of a tile    features             shared memory                 y
///     (k, in 7, out 3)   row 7 -------------> [128 rows x 16 ]   8 x 8      row 3  += by
///     (k, in 9, out 4)   row 9 -------------> [   channels   ] -> accu- --> row 4  += atomic
///     (k, in 2, out 8)   row 2 -------------> [ x 16 of W_k  ] mulators     row 8  += additions
///
/// **Expect.** Two launches: the first fills y with the bias (a third one applies an activation). A
/// pair's row is read once per 128 output channels, mostly from L2: the 870,810 pairs of
/// sweep-64-subm3 read the 32 MB of features seven times. They need P * Cout = 56 million
/// additions, in 14 million instructions. Predicted on an H200: 220 us, of which the arithmetic
/// takes 115 us.
/// @expect launches 2, with the fill
/// @expect loads_per_output.features 3838 / 512 = 7.496, once for 32 output channels; single floats
/// @expect lanes_per_output.y.atomic 3838 / 512 = 7.496
/// @expect loads_per_output.weights 132 * 32 * 8 / 16384 = 2.0625, for 132 tiles of 32 pairs
/// **Costs.** Not deterministic: the atomics fix no order of the additions. Registers limit an SM
/// to two blocks of 256 threads, or four of 128. Float32 only.
/// **Try.** Under `subm`, let an earlier launch store the centre tap's product instead of zeros.
/// How many atomics does this save?
#include "core/cuda/atomic_four.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/row_epilogue.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_conv/shared/row_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr std::int64_t kMaxTiles = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                             ///< tiles.
[[maybe_unused]] constexpr int kBlocks = 2;  ///< Blocks of 256 threads per SM: up to 128 registers
                                             ///< per thread.

/// A block's shared memory.
template <class Tile>
struct Shared {
  /// Whether the tile has the layout of memory, [m][k]; otherwise it is transposed, [k][m].
  static constexpr bool kAlongK = Tile::kBlockK > 16;
  /// Pitch of the tile's rows, padded by 4 floats: ThreadTile's loads along k, and the copies to
  /// [k][m], 8 channels of 4 rows for each warp, then access 32 different banks.
  static constexpr int kPitchA = (kAlongK ? Tile::kBlockK : Tile::kBlockM) + 4;
  static constexpr int kPitchB = Tile::kBlockN;
  static constexpr int kStepM = kAlongK ? kPitchA : 1;  ///< From a pair's row to the next one's.
  static constexpr int kStepK = kAlongK ? 1 : kPitchA;  ///< From a channel to the next.
  /// Floats of a tile of rows.
  static constexpr int kFloatsA = kPitchA * (kAlongK ? Tile::kBlockM : Tile::kBlockK);
  static constexpr int kStageFloats = kFloatsA + Tile::kBlockK * kPitchB;  ///< And one of weights.
  /// Dynamic shared memory: the stages, then the input and output rows of the pairs.
  static constexpr std::size_t kBytes = kStages<Tile> * kStageFloats * sizeof(float) +
                                        std::size_t{2} * Tile::kBlockM * sizeof(std::int32_t);
};

/// The parameters of the kernel; the products are added to y.
struct Fetch {
  int KV, Cin, Cout;            ///< As in the problem.
  std::int64_t count;           ///< Of all pairs.
  const std::int32_t* pairs;    ///< [count][3]
  const std::int32_t* offsets;  ///< [KV + 1]
  const float* features;        ///< [N][Cin]
  const float* weights;         ///< [KV][Cin][Cout]
  float* y;                     ///< [M][Cout]
};

/// y[out] += features[in] * weights[k] for all pairs: a tile of one tap at a time.
/// Any one-dimensional grid. Block (Tile::kThreads).
/// @tparam kAligned rows of features and weights can be read as float4, and those of y added to
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kBlocks * 256 / Tile::kThreads)
    sparse_conv_fetch_on_demand(Fetch conv) {
  using Sizes = Shared<Tile>;
  constexpr int kFloatsA = kAligned && Sizes::kAlongK ? 4 : 1, kFloatsB = kAligned ? 4 : 1;
  // Concurrent copies per row of a block, and the number of rows that it copies at once.
  constexpr int kCopiesA = Sizes::kAlongK ? Tile::kBlockK / kFloatsA : 8;
  constexpr int kRowsA = Tile::kThreads / kCopiesA;
  constexpr int kCopiesB = Tile::kBlockN / kFloatsB, kRowsB = Tile::kThreads / kCopiesB;
  constexpr int kLoadsA = Tile::kBlockM / kRowsA;  // rows that a thread copies a piece of
  static_assert(Tile::kBlockM % kRowsA == 0 && Tile::kBlockK % kRowsB == 0);
  float* stages = dynamic_shared<float>();
  auto* in_rows = reinterpret_cast<std::int32_t*>(stages + kStages<Tile> * Sizes::kStageFloats);
  std::int32_t* out_rows = in_rows + Tile::kBlockM;

  const std::int64_t Cin = conv.Cin, Cout = conv.Cout;
  const int thread = static_cast<int>(threadIdx.x);
  const int steps = ceil_div(conv.Cin, Tile::kBlockK);
  const std::int64_t across = ceil_div(conv.Cout, Tile::kBlockN);
  const std::int64_t slots = first_slot(conv.count, conv.KV, Tile::kBlockM);
  const Tile tile(threadIdx.x);

  for (std::int64_t t = blockIdx.x; t < slots * across; t += gridDim.x) {
    const PairTile rows = tile_in_slot(t / across, conv.offsets, conv.KV, Tile::kBlockM);
    if (rows.count <= 0) continue;  // the whole block
    const std::int64_t n0 = t % across * Tile::kBlockN;

    for (int m = thread; m < rows.count; m += Tile::kThreads) {
      const std::int32_t* pair = conv.pairs + (rows.first + m) * kPairColumns;
      in_rows[m] = pair[1];
      out_rows[m] = pair[2];
    }
    __syncthreads();  // separates these stores from the loads below

    // The first channels that this thread copies of each of its rows, and of the weights.
    const int a_row = thread / kCopiesA, a_column = thread % kCopiesA * kFloatsA;
    const int b_row = thread / kCopiesB, b_column = thread % kCopiesB * kFloatsB;
    const float* b_from = conv.weights + (rows.k * Cin + b_row) * Cout + n0 + b_column;
    const bool b_exists = n0 + b_column < Cout;

    // Starts the copies of a step. Rows beyond the tile and columns beyond Cout are not copied:
    // their accumulators are not stored. Channels beyond Cin must be zero.
    const auto copy = [&](int step, int stage) {
      float* a_to =
          stages + stage * Sizes::kStageFloats + a_row * Sizes::kStepM + a_column * Sizes::kStepK;
      float* b_to = stages + stage * Sizes::kStageFloats + Sizes::kFloatsA +
                    b_row * Sizes::kPitchB + b_column;
      const int c0 = step * Tile::kBlockK;
#pragma unroll
      for (int i = 0; i < kLoadsA; ++i) {
        const int m = i * kRowsA;
        if (a_row + m >= rows.count) break;
        const float* from = conv.features + in_rows[a_row + m] * Cin + c0 + a_column;
#pragma unroll
        for (int k = 0; k < Tile::kBlockK; k += kCopiesA * kFloatsA) {
          const bool exists = c0 + a_column + k < conv.Cin;
          ptx::cp_async<4 * kFloatsA>(a_to + m * Sizes::kStepM + k * Sizes::kStepK,
                                      exists ? from + k : conv.features, exists ? 4 * kFloatsA : 0);
        }
      }
      if (!b_exists) return;
#pragma unroll
      for (int k = 0; k < Tile::kBlockK; k += kRowsB) {
        const bool exists = c0 + b_row + k < conv.Cin;
        ptx::cp_async<4 * kFloatsB>(b_to + k * Sizes::kPitchB,
                                    exists ? b_from + (c0 + k) * Cout : conv.weights,
                                    exists ? 4 * kFloatsB : 0);
      }
    };

    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    // One group of copies per stage, even an empty one, so that waiting for all but the last
    // kStages<Tile> - 2 groups has the same meaning in every step.
    for (int stage = 0; stage < kStages<Tile> - 1; ++stage) {
      if (stage < steps) copy(stage, stage);
      ptx::cp_async_commit_group();
    }
    int read = 0, write = kStages<Tile> - 1;  // stages
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait_group<kStages<Tile> - 2>();
      // This thread's copies have landed. The barrier makes those of all threads visible, and
      // separates the loads of the previous step from the copies into its stage.
      __syncthreads();
      if (step + kStages<Tile> - 1 < steps) copy(step + kStages<Tile> - 1, write);
      ptx::cp_async_commit_group();
      const float* a_tile = stages + read * Sizes::kStageFloats;
      const float* b_tile = a_tile + Sizes::kFloatsA;
      if constexpr (Sizes::kAlongK) {
        tile.template multiply_along_k<Sizes::kPitchA, Sizes::kPitchB>(a_tile, b_tile, sums);
      } else {
        tile.template multiply<Sizes::kPitchA, Sizes::kPitchB>(a_tile, b_tile, sums);
      }
      read = read + 1 == kStages<Tile> ? 0 : read + 1;
      write = write + 1 == kStages<Tile> ? 0 : write + 1;
    }

    // Atomic, since tiles of different taps may add to the same row concurrently. From sm_90 on,
    // one instruction adds four neighbouring floats.
    const auto add = [&](int m, int n, float4 four) {
      if (m >= rows.count || n0 + n >= Cout) return;
      float* to = conv.y + out_rows[m] * Cout + n0 + n;
      if constexpr (kAligned) {
        atomic_add_four(to, four);
      } else {
        const float parts[] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4 && n0 + n + j < Cout; ++j) atomicAdd(to + j, parts[j]);
      }
    };
    if constexpr (Sizes::kAlongK) {
      tile.for_each_four_along_k(sums, add);
    } else {
      tile.for_each_four(sums, add);
    }
    __syncthreads();  // separates this tile's last loads from the next one's stores
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  return {};
}

void run(const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
  float* y = arrays.y;
  launch_fill_rows(conv.M, conv.Cout, arrays.bias, y);
  const Fetch fetch{.KV = conv.book.KV,
                    .Cin = conv.Cin,
                    .Cout = conv.Cout,
                    .count = conv.pairs,
                    .pairs = arrays.pairs,
                    .offsets = arrays.offsets,
                    .features = arrays.features,
                    .weights = arrays.weights,
                    .y = y};
  const bool aligned = channels_in_fours(conv.Cin) && channels_in_fours(conv.Cout) &&
                       is_aligned(fetch.features) && is_aligned(fetch.weights) && is_aligned(y);
  if (conv.pairs > 0) {
    with_tile(conv.pairs, conv, [&]<class Tile>(std::type_identity<Tile>) {
      const auto kernel = aligned ? sparse_conv_fetch_on_demand<Tile, true>
                                  : sparse_conv_fetch_on_demand<Tile, false>;
      const std::int64_t tiles =
          first_slot(conv.pairs, conv.book.KV, Tile::kBlockM) * ceil_div(conv.Cout, Tile::kBlockN);
      launch(kernel,
             {dim3(blocks_for(tiles, 1, kMaxTiles)), dim3(Tile::kThreads), Shared<Tile>::kBytes},
             fetch);
    });
  }
  launch_activate(conv.M, conv.Cout, conv.activation, y);
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return text(
      conv.pairs == 0 ? "no pairs" : tile_in_words(conv.pairs, conv),
      channels_in_fours(conv.Cin) && channels_in_fours(conv.Cout) ? ", channels in fours" : "",
      conv.activation == Activation::none ? "" : ", then the activation");
}

}  // namespace

extern const Implementation<SparseConvArrays> fetch_on_demand = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
